//! Zip archives with one file in them.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use self_cell::{MutBorrow, self_cell};
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use super::Compression;
use crate::trace::TraceError;

/// First bytes of a zip archive with files, and of one without, which are also those of its last record.
pub(super) const MAGICS: [[u8; 4]; 2] = [*b"PK\x03\x04", *b"PK\x05\x06"];

/// Bytes of the last record of an archive without its comment, and with the longest.
const MIN_END_BYTES: usize = 22;
const MAX_END_BYTES: u64 = MIN_END_BYTES as u64 + 0xffff;

const SPOOL_BUFFER_BYTES: usize = 64 * 1024;

/// Files that an error names, and characters of a name that it shows.
const NAMED: usize = 5;
const SHOWN_CHARACTERS: usize = 60;

/// Folder of a Mac's archives that has the attributes of their files, one more member for each.
const MAC_ATTRIBUTES: &str = "__MACOSX/";

type Member<'a> = zip::read::ZipFile<'a, File>;

self_cell!(
    /// The file in an archive, with the archive that it is read from.
    struct OpenMember {
        owner: MutBorrow<ZipArchive<File>>,
        #[not_covariant]
        dependent: Member,
    }
);

impl Read for OpenMember {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.with_dependent_mut(|_, member| member.read(buffer))
    }
}

/// Opens the file inside a zip archive, and returns its decompressed bytes and its name; `None` if the archive has no
/// files.
///
/// # Errors
/// An archive that is truncated or damaged, or has several files; a file that is encrypted, or compressed with
/// another method than deflate.
pub(super) fn open(
    path: &Path,
    mut file: File,
) -> Result<Option<(impl Read + use<>, String)>, TraceError> {
    let archive = match file.try_clone().map_err(ZipError::from).and_then(ZipArchive::new) {
        Ok(archive) => archive,
        Err(error) => return Err(failure(path, &mut file, error)),
    };
    let names: Vec<_> = archive.file_names_raw().map(String::from_utf8_lossy).collect();
    let is_file = |name: &str| !name.ends_with('/') && !name.starts_with(MAC_ATTRIBUTES);
    let files: Vec<usize> = (0..names.len()).filter(|&at| is_file(&names[at])).collect();
    let (at, name) = match files[..] {
        [] => return Ok(None),
        [at] => (at, names[at].clone().into_owned()),
        _ => {
            let names: Vec<&str> = files.iter().map(|&at| &*names[at]).collect();
            return Err(TraceError::Archive { path: path.to_path_buf(), problem: several(&names) });
        }
    };
    let is_readable = archive.by_index_data(at).is_ok_and(|entry| {
        let methods = [CompressionMethod::Stored, CompressionMethod::Deflated];
        !entry.encrypted() && methods.contains(&entry.compression())
    });
    if !is_readable {
        let problem = format!(
            "the file {} in this archive is encrypted, or compressed with another method than deflate: unzip it first",
            shown(&name)
        );
        return Err(TraceError::Archive { path: path.to_path_buf(), problem });
    }
    OpenMember::try_new(MutBorrow::new(archive), |archive| archive.borrow_mut().by_index(at))
        .map(|member| Some((member, name)))
        .map_err(|error| failure(path, &mut file, error))
}

/// Returns the error of an archive that is not read because it has several files.
fn several(names: &[&str]) -> String {
    let shown_names: Vec<String> = names.iter().take(NAMED).map(|name| shown(name)).collect();
    let more = match names.len() - shown_names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "there are {} files in this archive ({}{more}), and a trace is one: pipe it, as in unzip -p FILE {} | haypile \
         trace info -; or unzip the files and name those that are one trace",
        names.len(),
        shown_names.join(", "),
        shown_names[0]
    )
}

/// Returns a name as a message can show it.
fn shown(name: &str) -> String {
    let mut characters = name.chars();
    let text: String =
        characters.by_ref().take(SHOWN_CHARACTERS).flat_map(char::escape_debug).collect();
    let end = if characters.next().is_some() { "..." } else { "" };
    format!("'{text}{end}'")
}

/// Returns the error of an archive that cannot be opened.
fn failure(path: &Path, file: &mut File, error: ZipError) -> TraceError {
    let (path, compression) = (path.to_path_buf(), Compression::Zip);
    let source = match error {
        ZipError::Io(source) if source.raw_os_error().is_some() => {
            return TraceError::Io { path, source };
        }
        error => io::Error::new(ErrorKind::InvalidData, error),
    };
    match has_end(file) {
        Ok(true) => TraceError::Damaged { path, compression, source },
        Ok(false) => TraceError::Truncated { path, compression },
        Err(source) => TraceError::Io { path, source },
    }
}

/// Returns whether the last record of an archive is there.
fn has_end(file: &mut File) -> io::Result<bool> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_END_BYTES)))?;
    let mut end = Vec::new();
    file.take(MAX_END_BYTES).read_to_end(&mut end)?;
    let mut begins = memchr::memmem::find_iter(&end, &MAGICS[1]);
    Ok(begins.any(|begin| begin + MIN_END_BYTES <= end.len()))
}

/// Copies a stream with a zip archive to a temporary file, because the list of the archive's files is at its end;
/// returns that file.
///
/// # Errors
/// Errors of the stream, and of the temporary file.
pub(super) fn spool(path: &Path, mut stream: impl Read) -> Result<File, TraceError> {
    let mut file = tempfile::tempfile().map_err(TraceError::temporary)?;
    let mut buffer = vec![0; SPOOL_BUFFER_BYTES];
    loop {
        let read = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(source) => return Err(TraceError::Io { path: path.to_path_buf(), source }),
        };
        file.write_all(&buffer[..read]).map_err(TraceError::temporary)?;
    }
    Ok(file)
}
