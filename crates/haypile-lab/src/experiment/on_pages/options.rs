//! Options of experiments that load pages.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::bail;
use haypile::ByteSize;
use haypile_origin::link::LinkProfile;

use crate::experiment::value::size;

/// The smallest allowed size of a disk cache, which is that of a cache file.
pub(crate) const MIN_DISK_BYTES: u64 = 1 << 20;

/// Parses the description of an emulated network (a link). Its properties may be separated by
/// semicolons, because commas separate the links of a list.
pub(crate) fn link(text: &str) -> anyhow::Result<LinkProfile> {
    Ok(text.replace(';', ",").parse()?)
}

/// Parses the size of a disk cache in bytes.
pub(crate) fn disk_size(text: &str) -> anyhow::Result<ByteSize> {
    match size(text)? {
        ByteSize(bytes) if bytes < MIN_DISK_BYTES => {
            bail!(
                "a disk cache cannot be smaller than {}; write a larger size",
                ByteSize(MIN_DISK_BYTES)
            )
        }
        size => Ok(size),
    }
}

/// A storage medium for disk caches: its name and a directory on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Medium {
    /// Name of the storage medium in results.
    pub name: String,
    /// A directory on the storage medium, for disk caches.
    pub path: PathBuf,
}

impl FromStr for Medium {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let is_name = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        match text.split_once('=') {
            Some((name, path)) if is_name(name) && !path.is_empty() => {
                Ok(Self { name: name.to_owned(), path: path.into() })
            }
            _ => bail!("write a storage medium as a name and a directory, as in card=/media/card"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_have_names_and_links_are_lists() {
        let medium: Medium = "card=/media/card=x".parse().unwrap();
        assert_eq!((medium.name.as_str(), medium.path.to_str()), ("card", Some("/media/card=x")));
        for wrong in ["", "card", "=x", "a b=x", "card="] {
            assert!(wrong.parse::<Medium>().is_err(), "{wrong}");
        }
        let profile = link("down=5Mbit/s;rtt=30ms").unwrap();
        assert_eq!(profile.down_bits_per_second, Some(5_000_000));
        assert!(link("wi-fi").is_err());
    }
}
