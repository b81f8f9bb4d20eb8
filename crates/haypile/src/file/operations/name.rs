//! Keys and namespaces.

use std::borrow::Cow;

use crate::file::area::{Area, Key};
use crate::file::platform::ground::Ground;

/// The length of the longest name of a namespace, 255 bytes: the length is stored in one byte.
pub(in crate::file) const MAX_NAMESPACE_BYTES: usize = 255;

/// A key as it is stored in the cache file: after the name of its namespace, if it has one.
#[derive(Debug)]
pub(in crate::file) struct FullKey<'a> {
    bytes: Cow<'a, [u8]>,
    has_namespace: bool,
}

impl<'a> FullKey<'a> {
    pub(in crate::file) fn new(namespace: Option<&str>, key: &'a [u8]) -> Self {
        let Some(namespace) = namespace else {
            return Self { bytes: Cow::Borrowed(key), has_namespace: false };
        };
        let length = u8::try_from(namespace.len()).expect("opening checks it");
        let bytes = [&[length], namespace.as_bytes(), key].concat();
        Self { bytes: Cow::Owned(bytes), has_namespace: true }
    }

    pub(in crate::file) fn hashed<G: Ground>(&self, area: &Area<G>) -> Key<'_> {
        area.key(&self.bytes, self.has_namespace)
    }

    /// Returns the stored key of an entry without the name of its namespace, if the entry is in
    /// this namespace. A store without a namespace sees only entries without one.
    pub(in crate::file) fn stripped(
        namespace: Option<&str>,
        key: Vec<u8>,
        has_namespace: bool,
    ) -> Option<Vec<u8>> {
        match namespace {
            None => (!has_namespace).then_some(key),
            Some(_) if !has_namespace => None,
            Some(namespace) => Self::without(namespace, &key).map(<[u8]>::to_vec),
        }
    }

    /// Returns whether the stored key of an entry is in this namespace, or, for `None`, in no
    /// namespace.
    pub(in crate::file) fn is_of(namespace: Option<&str>, key: &[u8], has_namespace: bool) -> bool {
        namespace.is_some() == has_namespace
            && namespace.is_none_or(|namespace| Self::without(namespace, key).is_some())
    }

    fn without<'k>(namespace: &str, key: &'k [u8]) -> Option<&'k [u8]> {
        let (length, rest) = key.split_first()?;
        let rest = (usize::from(*length) == namespace.len()).then_some(rest)?;
        rest.strip_prefix(namespace.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_kept_apart() {
        let full = FullKey::new(Some("ab"), b"c");
        assert_eq!((&*full.bytes, full.has_namespace), (&b"\x02abc"[..], true));
        let stripped =
            |namespace| FullKey::stripped(namespace, full.bytes.to_vec(), full.has_namespace);
        assert_eq!(stripped(Some("ab")), Some(b"c".to_vec()));
        assert_eq!(stripped(Some("a")), None);
        assert_eq!(stripped(None), None);
        assert_eq!(FullKey::stripped(Some("ab"), b"\x02abc".to_vec(), false), None);
        assert_eq!(FullKey::stripped(None, b"c".to_vec(), false), Some(b"c".to_vec()));
    }
}
