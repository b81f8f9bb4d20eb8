//! The recording file of one process.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::time::SystemTime;

use haypile_policy::recording::{
    BLOCK_HEADER_BYTES, Block, BlockHeader, End, FileHeader, HEADER_BYTES,
};

use super::RecordOptions;
use crate::clock::{Clock, nanos};
use crate::private_file::{GuardedFile, append};

/// File names that are tried before creating the file fails.
const MAX_NAMES: u32 = 10_000;

/// The reason why a recording of cache operations writes no more operations to its file: it is
/// full, or writing failed.
#[derive(Debug)]
pub(super) enum Stop {
    /// The file has reached its bound.
    Full,
    /// A system call failed.
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// The file of a recording of cache operations, to which blocks of operations are appended.
#[derive(Debug)]
pub(super) struct RecordFile {
    file: GuardedFile,
    path: PathBuf,
    process: u32,
    /// The origin of the file's times, by the cache's clock.
    origin_ns: u64,
    written_bytes: u64,
    max_bytes: u64,
}

impl RecordFile {
    /// Creates the file of this process's recording of cache operations, under the first free file
    /// name.
    pub(super) fn create(options: &RecordOptions, clock: &dyn Clock) -> io::Result<Self> {
        let process = process::id();
        let (path, file) = create_new(&options.path, process)?;
        Self::begin(file, path, options, clock)
    }

    fn begin(
        file: File,
        path: PathBuf,
        options: &RecordOptions,
        clock: &dyn Clock,
    ) -> io::Result<Self> {
        let since_1970 = clock.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let process = process::id();
        let origin_ns = clock.now_ns();
        let max_bytes = options.max_bytes;
        let file = GuardedFile::new(file)?;
        let mut this = Self { file, path, process, origin_ns, written_bytes: 0, max_bytes };
        let header = FileHeader {
            origin_unix_ns: nanos(since_1970),
            process,
            hashed_keys: options.hash_keys,
        };
        this.append(&header.to_bytes())?;
        Ok(this)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    pub(super) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Whether this process, and not its parent before a fork, created the file of this recording.
    pub(super) fn is_ours(&self) -> bool {
        self.process == process::id()
    }

    /// Appends a block of recorded cache operations to the file. Its header is written into the
    /// space at the start of `block`.
    pub(super) fn block(&mut self, header: BlockHeader, block: &mut [u8]) -> Result<(), Stop> {
        // The end block, which states why there is no more, always fits.
        let room_bytes = self.max_bytes.saturating_sub(self.written_bytes);
        if (block.len() + BLOCK_HEADER_BYTES) as u64 > room_bytes {
            return Err(Stop::Full);
        }
        let (head, payload) = block.split_at_mut(BLOCK_HEADER_BYTES);
        head.copy_from_slice(&header.to_bytes(payload));
        Ok(self.append(block)?)
    }

    /// Appends the last block of a recording, which states why the recording ends, to the file.
    pub(super) fn end(&mut self, end: End, floor_ns: u64) -> io::Result<()> {
        let header = BlockHeader { block: Block::End(end), first_ns: floor_ns, floor_ns };
        self.append(&header.to_bytes(&[]))
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = self.file.get()?;
        if let Err(error) = append(file, bytes) {
            // Readers cannot use half a block. If truncating fails too, they stop before it.
            let _ = file.set_len(self.written_bytes);
            return Err(error);
        }
        self.written_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Checks that the file of this recording still has its name, without which no program can read
    /// it.
    pub(super) fn check_name(&mut self) -> io::Result<()> {
        #[cfg(unix)]
        if std::os::unix::fs::MetadataExt::nlink(&self.file.get()?.metadata()?) == 0 {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the file was removed"));
        }
        Ok(())
    }
}

const _: () =
    assert!(super::RecordOptions::MIN_MAX_BYTES > (HEADER_BYTES + BLOCK_HEADER_BYTES) as u64);

fn create_new(path: &Path, process: u32) -> io::Result<(PathBuf, File)> {
    let path = std::path::absolute(path)?;
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    // Keys are as private as the values of the cache.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut result = Err(io::ErrorKind::AlreadyExists.into());
    for number in 1..=MAX_NAMES {
        let mut name = OsString::from(&path);
        name.push(format!(".{process}"));
        if number > 1 {
            name.push(format!(".{number}"));
        }
        let name = PathBuf::from(name);
        result = options.open(&name);
        match result {
            Err(ref error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return Ok((name, result?)),
        }
    }
    result.map(|file| (path, file))
}

#[cfg(test)]
impl RecordFile {
    /// Makes the file of a recording look as it does in a forked child, for tests.
    pub(super) fn pretend_to_be_of_the_parent(&mut self) {
        self.process = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use haypile_policy::recording::{FULL_PAYLOAD_BYTES, HeaderError};

    fn block(payload_bytes: u32) -> (BlockHeader, Vec<u8>) {
        let block = Block::Records { payload_bytes, records: 1, stripe: 0 };
        let header = BlockHeader { block, first_ns: 0, floor_ns: 0 };
        (header, vec![1; BLOCK_HEADER_BYTES + payload_bytes as usize])
    }

    #[test]
    fn a_name_that_is_taken_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let options = RecordOptions::new(dir.path().join("a.rec"));
        let process = process::id();
        let first = dir.path().join(format!("a.rec.{process}"));
        std::fs::write(&first, "an earlier process").unwrap();
        let second = RecordFile::create(&options, &ManualClock::new()).unwrap();
        assert_eq!(second.path(), dir.path().join(format!("a.rec.{process}.2")));
        let third = RecordFile::create(&options, &ManualClock::new()).unwrap();
        assert_eq!(third.path(), dir.path().join(format!("a.rec.{process}.3")));
        assert_eq!(std::fs::read(&first).unwrap(), b"an earlier process");
        let header = std::fs::read(third.path()).unwrap();
        let header: Result<_, HeaderError> = FileHeader::from_bytes(header[..].try_into().unwrap());
        assert_eq!(header.unwrap().process, process);
    }

    #[test]
    fn a_file_never_exceeds_its_bound_and_has_room_for_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let max_bytes = super::super::RecordOptions::MIN_MAX_BYTES;
        let options = RecordOptions::new(dir.path().join("a.rec")).max_bytes(max_bytes);
        let mut file = RecordFile::create(&options, &ManualClock::new()).unwrap();
        let mut blocks = 0;
        loop {
            let (header, mut bytes) = block(u32::try_from(FULL_PAYLOAD_BYTES).unwrap());
            match file.block(header, &mut bytes) {
                Ok(()) => blocks += 1,
                Err(Stop::Full) => break,
                Err(Stop::Failed(error)) => panic!("{error}"),
            }
        }
        assert_eq!(blocks, 15);
        file.end(End::Full, 0).unwrap();
        assert_eq!(std::fs::metadata(file.path()).unwrap().len(), file.written_bytes());
        assert!(file.written_bytes() <= max_bytes);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error() {
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let options = RecordOptions::new("/dev/full");
        let error = RecordFile::begin(file, "/dev/full".into(), &options, &ManualClock::new());
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_was_removed_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let options = RecordOptions::new(dir.path().join("a.rec"));
        let mut file = RecordFile::create(&options, &ManualClock::new()).unwrap();
        file.check_name().unwrap();
        drop(dir);
        assert!(file.check_name().is_err());
    }
}
