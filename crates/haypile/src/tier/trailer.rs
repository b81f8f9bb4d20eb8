//! The trailer that the upper level keeps behind each value.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | the version in the last level, little endian, or 0 |
//! | 8 | nanoseconds by which the entry outlives its copy, little endian, or 0 |
//! | 1 | knowledge: 0 no version yet, 1 this version, 2 that there are none; plus 4: an expiry |
//! | 3 | `hpt`, so that an entry of another program is not taken for a copy |
//!
//! The entry's expiry is not stored as an instant, because levels may have different clocks: it is
//! the remaining life of the copy plus the difference.

use std::time::Duration;

use crate::store::Hit;
use crate::write::Version;

/// The length of the trailer (version and expiry) that the upper level stores after each value, in
/// bytes.
pub(super) const TRAILER_BYTES: usize = 20;

const MARK: [u8; 3] = *b"hpt";
const HAS_EXPIRY: u8 = 4;

/// The version of an entry as far as its copy in the upper level states it: not asked for yet,
/// known, or none, because the last level has no versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// The version is not known yet: nobody asked.
    Nothing,
    /// The copy has this version.
    Version(Version),
    /// The last level has no versions.
    HasNone,
}

/// The properties of an entry (version and expiry) that the upper level stores after the entry's
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trailer {
    pub(super) version: Known,
    /// The time by which the entry in the lower level outlives its copy in the upper level, in
    /// nanoseconds. `None` if the entry never expires, or the lower level did not report its life.
    pub(super) beyond_ns: Option<u64>,
}

impl Trailer {
    pub(super) fn encode(self) -> [u8; TRAILER_BYTES] {
        let (known, version) = match self.version {
            Known::Nothing => (0, 0),
            Known::Version(version) => (1, version.raw()),
            Known::HasNone => (2, 0),
        };
        let flags = known | if self.beyond_ns.is_some() { HAS_EXPIRY } else { 0 };
        let mut bytes = [0; TRAILER_BYTES];
        bytes[..8].copy_from_slice(&version.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.beyond_ns.unwrap_or(0).to_le_bytes());
        bytes[16] = flags;
        bytes[17..].copy_from_slice(&MARK);
        bytes
    }

    /// Splits the bytes that the upper level stores for a key into the value, of which it returns
    /// the length, and the trailer. Returns `None` if they are not a copy.
    pub(super) fn decode(kept: &[u8]) -> Option<(usize, Self)> {
        let (value, trailer) = kept.split_last_chunk::<TRAILER_BYTES>()?;
        let (numbers, [flags, mark @ ..]) = trailer.split_at(16) else { return None };
        let number = |at: usize| -> Option<u64> {
            Some(u64::from_le_bytes(numbers.get(at..at + 8)?.try_into().ok()?))
        };
        if *mark != MARK || *flags >= 2 * HAS_EXPIRY {
            return None;
        }
        let version = match flags & !HAS_EXPIRY {
            0 => Known::Nothing,
            1 => Known::Version(Version::from_raw(number(0)?)),
            2 => Known::HasNone,
            _ => return None,
        };
        let beyond_ns = if flags & HAS_EXPIRY == 0 { None } else { Some(number(8)?) };
        Some((value.len(), Self { version, beyond_ns }))
    }

    /// Returns the properties (version and remaining life) of an entry, given those of its `copy`
    /// in the upper level.
    pub(super) fn hit(self, copy: Hit) -> Hit {
        let version = match self.version {
            Known::Version(version) => Some(version),
            Known::Nothing | Known::HasNone => None,
        };
        let expires_in = self.beyond_ns.and_then(|beyond_ns| {
            Some(copy.expires_in?.saturating_add(Duration::from_nanos(beyond_ns)))
        });
        Hit::new(version, expires_in)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn known() -> impl Strategy<Value = Known> {
        prop_oneof![
            Just(Known::Nothing),
            Just(Known::HasNone),
            any::<u64>().prop_map(|raw| Known::Version(Version::from_raw(raw))),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            value in prop::collection::vec(any::<u8>(), 0..50),
            version in known(),
            beyond_ns in prop::option::of(any::<u64>()),
        ) {
            let trailer = Trailer { version, beyond_ns };
            let mut kept = value.clone();
            kept.extend(trailer.encode());
            prop_assert_eq!(Trailer::decode(&kept), Some((value.len(), trailer)));
        }

        #[test]
        fn what_is_no_copy_is_none(mut kept in prop::collection::vec(any::<u8>(), 0..50)) {
            if kept.ends_with(b"hpt") {
                kept.clear();
            }
            prop_assert_eq!(Trailer::decode(&kept), None);
        }
    }

    #[test]
    fn flags_that_nobody_writes_are_no_copy() {
        for flags in [3, 7, 8, 255] {
            let mut kept = Trailer { version: Known::Nothing, beyond_ns: None }.encode();
            kept[16] = flags;
            assert_eq!(Trailer::decode(&kept), None, "{flags}");
        }
    }

    #[test]
    fn an_entry_lives_on_after_its_copy() {
        let ns = Duration::from_nanos;
        let trailer = Trailer { version: Known::HasNone, beyond_ns: Some(7) };
        assert_eq!(trailer.hit(Hit::new(None, Some(ns(3)))).expires_in, Some(ns(10)));
        assert_eq!(trailer.hit(Hit::new(None, None)).expires_in, None);
        let trailer = Trailer { beyond_ns: None, ..trailer };
        assert_eq!(trailer.hit(Hit::new(None, Some(ns(3)))).expires_in, None);
    }
}
