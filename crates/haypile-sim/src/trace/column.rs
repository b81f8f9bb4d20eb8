//! A column that grows at its end, in memory first and in a temporary file later.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use super::TraceError;
use super::bytes::Bytes;

/// A column of a trace that is being built (such as all keys or all sizes), which grows in memory or in a temporary
/// file.
#[derive(Debug, Default)]
pub(crate) struct Column {
    buffer: Vec<u8>,
    spilled: Option<File>,
}

impl Column {
    /// Creates a column of `bytes` zero bytes, in memory if they are at most `memory_bytes`, and otherwise in a
    /// temporary file.
    pub(crate) fn zeros(bytes: usize, memory_bytes: usize) -> Result<Self, TraceError> {
        if bytes <= memory_bytes {
            return Ok(Self { buffer: vec![0; bytes], spilled: None });
        }
        let file = || {
            let mut file = tempfile::tempfile()?;
            file.set_len(bytes as u64)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        Ok(Self { buffer: Vec::new(), spilled: Some(file().map_err(TraceError::temporary)?) })
    }

    /// Appends one entry to the column.
    pub(crate) fn push(&mut self, entry: &[u8]) {
        self.buffer.extend_from_slice(entry);
    }

    /// Returns the number of the column's bytes held in memory.
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Moves the column's bytes in memory to a temporary file, which is created at the first call.
    pub(crate) fn spill(&mut self) -> Result<(), TraceError> {
        self.try_spill().map_err(TraceError::temporary)
    }

    fn try_spill(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let file = match &mut self.spilled {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Returns the bytes of the completed column, from memory or mapped from its temporary file.
    pub(crate) fn finish(mut self) -> Result<Bytes, TraceError> {
        if self.spilled.is_none() {
            return Ok(Bytes::Memory(self.buffer));
        }
        self.spill()?;
        let file = self.spilled.as_ref().expect("tested above");
        Bytes::map(file).map_err(TraceError::temporary)
    }
}
