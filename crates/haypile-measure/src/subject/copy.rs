//! `copy`: a subject that measures the time a disk takes for this number of bytes. It keeps
//! everything in one buffer, writes it to a file as it is, and reads that whole. It finds keys only
//! in the order in which they were written.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};

use super::error::{Cause, SubjectError};
use super::table::{Kind, UNCHECKED};
use super::{Found, Subject, Worker};

pub(super) const KIND: Kind = Kind {
    name: "copy",
    usage: "copy",
    help: "a buffer, written to a file and read as it is: what a disk takes for the same bytes",
    language: "rust",
    version: env!("CARGO_PKG_VERSION"),
    hidden: true,
    shared: false,
    open: |spec, room, _| match Copy::open(room.found) {
        Ok(copy) => Ok(Box::new(copy)),
        Err(error) => Err(SubjectError::open(spec)(error)),
    },
    check: UNCHECKED,
};

/// The file, in the working directory.
const FILE: &str = "copy";

/// Bytes before each key and value: the sizes of both.
const HEAD_BYTES: usize = 8;

/// Entries one after the other, and a place among them.
struct Copy {
    log: Vec<u8>,
    entries: u64,
    /// Position of the entry after the one that was read last.
    next: usize,
}

impl Copy {
    fn open(found: Found) -> io::Result<Self> {
        let log = match found {
            Found::Nothing => Vec::new(),
            Found::Cache => match fs::read(FILE) {
                Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
                read => read?,
            },
        };
        Ok(Self { log, entries: 0, next: 0 })
    }

    /// The key and the value of the entry at a place, and where the next one begins.
    fn entry(&self, at: usize) -> Option<(&[u8], &[u8], usize)> {
        let head = self.log.get(at..at + HEAD_BYTES)?;
        let size = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four")) as usize;
        let (key_end, value_bytes) = (at + HEAD_BYTES + size(&head[..4]), size(&head[4..]));
        let key = self.log.get(at + HEAD_BYTES..key_end)?;
        let value = self.log.get(key_end..key_end + value_bytes)?;
        Some((key, value, key_end + value_bytes))
    }
}

impl Subject for Copy {
    fn version(&self) -> String {
        KIND.version.to_owned()
    }

    fn workers(
        &mut self,
        threads: usize,
    ) -> Result<Vec<Box<dyn Worker + Send + '_>>, SubjectError> {
        if threads > 1 {
            let subject = KIND.name.to_owned();
            return Err(SubjectError::Threads { subject, limit: 1, threads });
        }
        Ok(vec![Box::new(self)])
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        *self = Self { log: Vec::new(), entries: 0, next: 0 };
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Cause> {
        let mut file = File::create(FILE)?;
        file.write_all(&self.log)?;
        Ok(file.sync_all()?)
    }

    fn entries(&mut self) -> Option<u64> {
        (self.entries > 0).then_some(self.entries)
    }
}

impl Worker for &mut Copy {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Cause> {
        // From the next one on, and once around: in order, the first is the one.
        for start in [self.next, 0] {
            let mut at = start;
            while let Some((found, value, end)) = self.entry(at) {
                if found == key {
                    buffer.clear();
                    buffer.extend_from_slice(value);
                    self.next = end;
                    return Ok(true);
                }
                at = end;
            }
        }
        Ok(false)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        for bytes in [key, value] {
            self.log.extend_from_slice(&u32::try_from(bytes.len())?.to_le_bytes());
        }
        self.log.extend_from_slice(key);
        self.log.extend_from_slice(value);
        self.entries += 1;
        Ok(())
    }

    fn delete(&mut self, _key: &[u8]) -> Result<bool, Cause> {
        Err("a copy forgets nothing".into())
    }
}
