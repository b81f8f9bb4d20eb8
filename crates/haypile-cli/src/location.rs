//! The cache that an argument names: by a URL, or by the path of its file.
//!
//! A URL has absolute paths. On a command line, paths are also relative to the current directory, and `~` is the home
//! directory; a shell expands it only at the start of a word.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::bail;
use haypile::url::{CacheUrl, Level, UrlError};

/// Returns the URL of the cache that the user named on the command line by a path or a URL.
pub(crate) fn cache_url(text: &OsStr) -> anyhow::Result<CacheUrl> {
    Base::of_process().cache_url(text)
}

/// The directories that paths are relative to.
struct Base {
    /// The path of the current directory; `None` if it was removed.
    current: Option<PathBuf>,
    home: Option<OsString>,
}

impl Base {
    fn of_process() -> Self {
        let home = env::var_os("HOME").filter(|home| !home.is_empty());
        Self { current: env::current_dir().ok(), home }
    }

    fn cache_url(&self, text: &OsStr) -> anyhow::Result<CacheUrl> {
        if is_path(text) {
            let level = Level::new("file").and_then(|level| level.with_path(self.path(text)?));
            return Ok(level?.into());
        }
        let Some(text) = text.to_str() else {
            bail!("the URL is not UTF-8; write other bytes of a path as %XX, in hexadecimal");
        };
        let url: CacheUrl = text.parse()?;
        if text.contains("://") {
            return Ok(url);
        }
        let levels = url.levels().iter().map(|level| self.located(level));
        Ok(CacheUrl::new(levels.collect::<anyhow::Result<_>>()?)?)
    }

    /// Returns a level of the short form with an absolute path: what precedes the first slash of a relative one looks
    /// like a server.
    fn located(&self, level: &Level) -> anyhow::Result<Level> {
        if level.scheme() != "file" || level.server().is_empty() {
            return Ok(level.clone());
        }
        let mut path = OsString::from(level.server());
        path.push(level.path());
        Ok(level.clone().with_server("").with_path(self.path(&path)?)?)
    }

    /// Returns the absolute path of a file.
    ///
    /// # Errors
    ///
    /// [`UrlError::RelativePath`] if the directory that the path is relative to is not known.
    fn path(&self, text: &OsStr) -> Result<PathBuf, UrlError> {
        let path = Path::new(text);
        let absolute = match path.strip_prefix("~") {
            Ok(rest) => self.home.as_ref().map(|home| Path::new(home).join(rest)),
            Err(_) if path.has_root() => Some(path.to_owned()),
            Err(_) => self.current.as_ref().map(|current| current.join(path)),
        };
        let absolute =
            absolute.ok_or_else(|| UrlError::RelativePath { path: path.display().to_string() })?;
        Ok(absolute.components().collect())
    }
}

/// Whether an argument is a path and not a URL: no scheme has a slash, or a dot without a colon after it.
fn is_path(text: &OsStr) -> bool {
    let bytes = text.as_encoded_bytes();
    let before = bytes.split(|byte| *byte == b':').next().unwrap_or(bytes);
    before.contains(&b'/') || before.starts_with(b"~") || before == bytes && bytes.contains(&b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(text: &str) -> String {
        let base = Base { current: Some("/srv/app".into()), home: Some("/home/ada".into()) };
        base.cache_url(text.as_ref())
            .map_or_else(|error| format!("{error:#}"), |url| url.to_string())
    }

    #[test]
    fn a_path_is_a_cache_file() {
        for (text, url) in [
            ("/tmp/a", "file:///tmp/a"),
            ("a.haypile", "file:///srv/app/a.haypile"),
            ("./a", "file:///srv/app/a"),
            ("caches/a", "file:///srv/app/caches/a"),
            ("~/a", "file:///home/ada/a"),
            ("/tmp/my cache, v2 + a->b:c", "file:///tmp/my%20cache%2C%20v2%20%2B%20a-%3Eb:c"),
        ] {
            assert_eq!(located(text), url);
        }
    }

    #[test]
    fn a_short_url_takes_relative_paths() {
        for (text, url) in [
            ("file:a.haypile", "file:///srv/app/a.haypile"),
            ("file:a.haypile,mode=ro", "file:///srv/app/a.haypile?mode=ro"),
            ("file:caches/a,size=1MiB", "file:///srv/app/caches/a?size=1MiB"),
            ("file:~/a", "file:///home/ada/a"),
            ("file:../a", "file:///srv/app/../a"),
            ("memory:size=1MiB+file:a", "memory://?size=1MiB -> file:///srv/app/a"),
            ("file:/tmp/a", "file:///tmp/a"),
            ("memory:", "memory://"),
            ("redis:127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
        ] {
            assert_eq!(located(text), url);
        }
    }

    /// It may be a mistake for three slashes, and a file in the current directory would hide that.
    #[test]
    fn a_canonical_url_stays_as_it_is() {
        assert_eq!(located("file://tmp/a"), "file://tmp/a");
    }

    /// A file at the root would be another one than the user means.
    #[test]
    fn without_a_current_directory_a_relative_path_is_refused() {
        let base = Base { current: None, home: None };
        for text in ["./a", "file:a", "a.haypile", "~/a"] {
            let error = base.cache_url(text.as_ref()).unwrap_err().to_string();
            assert!(error.contains("is not absolute"), "{text}: {error}");
        }
        assert_eq!(base.cache_url("/tmp/a".as_ref()).unwrap().to_string(), "file:///tmp/a");
    }

    #[cfg(unix)]
    #[test]
    fn a_path_has_any_bytes() {
        use std::os::unix::ffi::OsStrExt;
        let base = Base { current: Some("/srv/app".into()), home: None };
        let url = |bytes: &[u8]| base.cache_url(OsStr::from_bytes(bytes));
        assert_eq!(url(b"/tmp/\xFF").unwrap().to_string(), "file:///tmp/%FF");
        assert!(url(b"file:/tmp/\xFF").unwrap_err().to_string().contains("%XX"));
        assert!(url(b"~/a").unwrap_err().to_string().contains("not absolute"));
    }
}
