//! The cache that an argument names: by a URL, or by the path of its file.
//!
//! A URL has absolute paths. On a command line, paths are also relative to the current directory, and `~` is the home
//! directory; a shell expands it only at the start of a word.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::bail;
use haypile::url::{CacheUrl, Level, UrlError};

/// Returns the URL of the cache that an argument names.
pub(crate) fn cache_url(text: &OsStr) -> anyhow::Result<CacheUrl> {
    Base::of_process().cache_url(text)
}

/// The directories that paths are relative to.
struct Base {
    current: PathBuf,
    home: Option<OsString>,
}

impl Base {
    fn of_process() -> Self {
        // A directory that was removed: paths that need it fail when they are opened.
        let current = env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        Self { current, home: env::var_os("HOME") }
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
        let located = Level::new(level.scheme())?.with_path(self.path(&path)?)?;
        let options = level.options();
        Ok(options
            .into_iter()
            .try_fold(located, |level, (name, value)| level.with_option(name, value))?)
    }

    /// Returns the absolute path.
    fn path(&self, text: &OsStr) -> Result<PathBuf, UrlError> {
        let path = Path::new(text);
        match path.strip_prefix("~") {
            Ok(rest) => {
                let home = self.home.as_ref().filter(|home| !home.is_empty());
                let home = home
                    .ok_or_else(|| UrlError::RelativePath { path: path.display().to_string() })?;
                Ok(Path::new(home).join(rest))
            }
            Err(_) => Ok(self.current.join(path).components().collect()),
        }
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
        let base = Base { current: "/work".into(), home: Some("/home/ada".into()) };
        base.cache_url(text.as_ref())
            .map_or_else(|error| format!("{error:#}"), |url| url.to_string())
    }

    #[test]
    fn a_path_is_a_cache_file() {
        for (text, url) in [
            ("/tmp/a", "file:///tmp/a"),
            ("a.haypile", "file:///work/a.haypile"),
            ("./a", "file:///work/a"),
            ("caches/a", "file:///work/caches/a"),
            ("~/a", "file:///home/ada/a"),
            ("/tmp/my cache, v2 + a->b:c", "file:///tmp/my%20cache%2C%20v2%20%2B%20a-%3Eb:c"),
        ] {
            assert_eq!(located(text), url);
        }
    }

    #[test]
    fn a_short_url_takes_relative_paths() {
        for (text, url) in [
            ("file:a.haypile", "file:///work/a.haypile"),
            ("file:a.haypile,mode=ro", "file:///work/a.haypile?mode=ro"),
            ("file:caches/a,size=1MiB", "file:///work/caches/a?size=1MiB"),
            ("file:~/a", "file:///home/ada/a"),
            ("file:../a", "file:///work/../a"),
            ("memory:size=1MiB+file:a", "memory://?size=1MiB -> file:///work/a"),
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

    #[cfg(unix)]
    #[test]
    fn a_path_has_any_bytes() {
        use std::os::unix::ffi::OsStrExt;
        let base = Base { current: "/work".into(), home: None };
        let url = |bytes: &[u8]| base.cache_url(OsStr::from_bytes(bytes));
        assert_eq!(url(b"/tmp/\xFF").unwrap().to_string(), "file:///tmp/%FF");
        assert!(url(b"file:/tmp/\xFF").unwrap_err().to_string().contains("%XX"));
        assert!(url(b"~/a").unwrap_err().to_string().contains("not absolute"));
    }
}
