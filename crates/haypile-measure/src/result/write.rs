//! Writes rows, each as soon as it is finished.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::error::ResultsError;
use super::row::Row;

/// A writer that appends rows (runs and samples) to a results file.
#[derive(Debug)]
pub struct ResultsWriter {
    path: PathBuf,
    file: File,
}

impl ResultsWriter {
    /// Opens a results file to append rows to it, or creates it. An incomplete last line is ended
    /// first, so that the next row has its own line.
    ///
    /// # Errors
    ///
    /// [`ResultsError::Io`].
    pub fn append(path: impl Into<PathBuf>) -> Result<Self, ResultsError> {
        let path = path.into();
        match open(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(source) => Err(ResultsError::Io { path, source }),
        }
    }

    /// Writes a row to the results file by one system call, so that no part of it stays buffered.
    ///
    /// # Errors
    ///
    /// [`ResultsError::Io`].
    pub fn write(&mut self, row: &Row) -> Result<(), ResultsError> {
        let mut line = serde_json::to_vec(row).expect("a row has names for keys and no other type");
        line.push(b'\n');
        let written = self.file.write_all(&line);
        written.map_err(|source| ResultsError::Io { path: self.path.clone(), source })
    }

    /// Returns the path of the results file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    // A pipe has no end to look at.
    if file.metadata()?.is_file() && file.seek(SeekFrom::End(0))? > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}
