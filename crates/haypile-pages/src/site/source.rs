//! Sites read from files, and the reading of files with a bound.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::error::SiteError;
use super::model::Site;

/// A site that was read from a file, with warnings about its differences from the file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SiteSource {
    /// The site that was read, which obeys the rules of [`Site::validate`].
    pub site: Site,
    /// Warnings for users about parts of the file that the site lacks, or has changed.
    pub warnings: Vec<String>,
}

/// Reads a whole file; returns an error if it has more than `limit` bytes, whatever its metadata
/// say.
pub(super) fn read_bounded(
    path: &Path,
    limit: u64,
    advice: &'static str,
) -> Result<Vec<u8>, SiteError> {
    let io = |source| SiteError::Io { path: path.into(), source };
    let mut bytes = Vec::new();
    File::open(path).map_err(io)?.take(limit + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > limit {
        return Err(SiteError::TooLarge { path: path.into(), limit, advice });
    }
    Ok(bytes)
}

/// Returns the contents of a file as UTF-8 text, without a byte order mark.
pub(super) fn text_of<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, SiteError> {
    let text = str::from_utf8(bytes).map_err(|error| SiteError::Line {
        path: path.into(),
        line: bytes[..error.valid_up_to()].split(|&byte| byte == b'\n').count(),
        wrong: "not UTF-8".to_owned(),
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        std::fs::write(&path, "1234").unwrap();
        assert_eq!(read_bounded(&path, 4, "").unwrap(), b"1234");
        let error = read_bounded(&path, 3, "split it").unwrap_err().to_string();
        assert!(error.contains('x') && error.contains("3 bytes, the limit; split it"), "{error}");
        assert!(read_bounded(&directory.path().join("none"), 3, "").is_err());
    }

    #[test]
    fn a_byte_order_mark_is_dropped_and_other_encodings_have_their_line() {
        let path = Path::new("x");
        assert_eq!(text_of(path, b"\xEF\xBB\xBFa").unwrap(), "a");
        assert_eq!(
            text_of(path, b"a\nb\xFF").unwrap_err().to_string(),
            "x: line 2 cannot be used: not UTF-8"
        );
    }
}
