//! A file for each entry, as caches on disk are written that use no library. It evicts nothing.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process;

use haypile_measure::subject::{Cause, Found, Room, Subject, SubjectError, Worker};
use rustix::fs::syncfs;

/// The directory of all entries, in the working directory.
const DIRECTORY: &str = "cache.files";

/// Files are in 256 directories, by the first two digits of their names: none gets so large
/// that looking into it is slow.
const LAST_SHARD: u8 = u8::MAX;

/// Extension of a file that is not whole yet. Names of entries have no dot.
const NEW: &str = "new";

/// The largest file that is written or read.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// The length of the key, at the end of a file.
const LENGTH_BYTES: usize = size_of::<u32>();

/// A cache that keeps each entry in a file of one directory.
///
/// A file is the value, then the key, then the length of the key: it can be read into the buffer
/// for the value as it is, and what is behind the value is cut off.
pub(crate) struct Files {
    directory: PathBuf,
}

impl Files {
    pub(crate) fn open(room: &Room) -> Result<Self, Cause> {
        // Workers go on where they are, wherever that is called later.
        let files = Self { directory: std::path::absolute(DIRECTORY)? };
        if room.found == Found::Nothing {
            files.remove()?;
        }
        files.make()?;
        Ok(files)
    }

    fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn make(&self) -> io::Result<()> {
        for shard in 0..=LAST_SHARD {
            fs::create_dir_all(self.directory.join(format!("{shard:02x}")))?;
        }
        Ok(())
    }

    fn count(&self) -> io::Result<u64> {
        let mut entries = 0;
        for shard in fs::read_dir(&self.directory)? {
            for file in fs::read_dir(shard?.path())? {
                let is_whole = Path::new(&file?.file_name()).extension() != Some(OsStr::new(NEW));
                entries += u64::from(is_whole);
            }
        }
        Ok(entries)
    }
}

impl Subject for Files {
    fn version(&self) -> String {
        env!("VERSION_RUSTC").to_owned()
    }

    fn workers(
        &mut self,
        threads: usize,
    ) -> Result<Vec<Box<dyn Worker + Send + '_>>, SubjectError> {
        let user = |thread| User {
            directory: &self.directory,
            new: format!("{}-{thread}.{NEW}", process::id()),
            file: Vec::new(),
        };
        Ok((0..threads).map(|thread| Box::new(user(thread)) as Box<dyn Worker + Send>).collect())
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        self.remove().and_then(|()| self.make()).map_err(SubjectError::open("files"))
    }

    fn flush(&mut self) -> Result<(), Cause> {
        // One call for all files and the directories that name them. It waits for whatever else is
        // to be written to the file system, too.
        Ok(syncfs(File::open(&self.directory)?)?)
    }

    fn entries(&mut self) -> Option<u64> {
        self.count().ok()
    }
}

/// One of the threads.
struct User<'a> {
    directory: &'a Path,
    /// Name of the file that the thread writes, until that file is whole. No other thread of any
    /// process has it.
    new: String,
    /// Contents of the file that the thread writes, in one call.
    file: Vec<u8>,
}

/// Where an entry is. Keys of the same hash replace each other.
struct Place {
    shard: PathBuf,
    file: PathBuf,
}

impl User<'_> {
    fn place(&self, key: &[u8]) -> Place {
        // The same in all processes: its own keys are constants.
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let name = format!("{hash:016x}");
        let (shard, rest) = name.split_at(2);
        let shard = self.directory.join(shard);
        Place { file: shard.join(rest), shard }
    }
}

impl Worker for User<'_> {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Cause> {
        let file = match File::open(self.place(key).file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        let bytes = file.metadata()?.len();
        check(bytes)?;
        buffer.clear();
        buffer.reserve(usize::try_from(bytes)?);
        file.take(bytes).read_to_end(buffer)?;
        let value = value_of(key, buffer).map(<[u8]>::len);
        buffer.truncate(value.unwrap_or(0));
        Ok(value.is_some())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        check((value.len() + key.len() + LENGTH_BYTES) as u64)?;
        self.file.clear();
        self.file.extend_from_slice(value);
        self.file.extend_from_slice(key);
        self.file.extend_from_slice(&u32::try_from(key.len())?.to_le_bytes());
        let place = self.place(key);
        // In the directory where it stays: between two, the system lets nobody else rename.
        let new = place.shard.join(&self.new);
        File::create(&new)?.write_all(&self.file)?;
        Ok(fs::rename(new, place.file)?)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Cause> {
        match fs::remove_file(self.place(key).file) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            removed => Ok(removed.map(|()| true)?),
        }
    }
}

fn check(bytes: u64) -> Result<(), Cause> {
    if bytes > MAX_FILE_BYTES {
        return Err(format!("a file of {bytes} bytes; at most {MAX_FILE_BYTES} are allowed").into());
    }
    Ok(())
}

/// The value in a file, if that is of this key.
fn value_of<'a>(key: &[u8], file: &'a [u8]) -> Option<&'a [u8]> {
    let (file, length) = file.split_last_chunk()?;
    let is_as_long = usize::try_from(u32::from_le_bytes(*length)) == Ok(key.len());
    is_as_long.then(|| file.strip_suffix(key))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_of_its_key_alone() {
        let file = b"valuekey\x03\0\0\0";
        assert_eq!(value_of(b"key", file), Some(&b"value"[..]));
        // Where hashes are the same, or somebody else has written the file.
        for other in [&b"ekey"[..], b"ey", b"kez", b""] {
            assert_eq!(value_of(other, file), None);
        }
        for cut in 0..file.len() {
            assert_eq!(value_of(b"key", &file[..cut]), None);
        }
        assert_eq!(value_of(b"", &[0; 4]), Some(&[][..]));
        assert!(check(MAX_FILE_BYTES).is_ok() && check(MAX_FILE_BYTES + 1).is_err());
    }
}
