//! File of a cache, named by its path or by the cache's URL.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::bail;
use clap::builder::{OsStringValueParser, TypedValueParser};
use haypile::Registry;

use crate::location::cache_url;

/// The file of a `file://` cache that a command works on.
#[derive(Clone, Debug)]
pub(crate) struct CacheFile {
    pub(crate) path: PathBuf,
}

impl CacheFile {
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(Self::read)
    }

    fn read(text: OsString) -> anyhow::Result<Self> {
        if !text.as_encoded_bytes().starts_with(b"file:") {
            return Ok(Self { path: text.into() });
        }
        let url = Registry::new().resolve(&cache_url(&text)?)?;
        match url.levels() {
            [level] => Ok(Self { path: level.path().into() }),
            _ => bail!(
                "the URL joins several caches, and this command takes a single file; write the \
                 path of the cache file"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_as_it_is_and_a_url_names_its_path() {
        let path = |text: &str| CacheFile::read(text.into()).map(|file| file.path);
        assert_eq!(path("some/file").expect("a path"), PathBuf::from("some/file"));
        for url in ["file:/tmp/a", "file:///tmp/a?size=1MiB", "file:/tmp/a,namespace=x"] {
            assert_eq!(path(url).expect("a URL"), PathBuf::from("/tmp/a"), "{url}");
        }
        let error = path("file:/tmp/a,siz=1MiB").expect_err("no such option").to_string();
        assert!(error.contains("'file' has no option 'siz'"), "{error}");
    }
}
