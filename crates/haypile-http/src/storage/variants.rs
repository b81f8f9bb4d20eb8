//! The responses to one target that depend on more of the request than the target.
//!
//! Each is an entry of its own, under a name that has the fields of the request in it. The target's own
//! entry knows which fields those are, and which variants there are, and counts: a variant counts if it
//! has the generation of the target's entry, so that what makes that another forgets all variants.

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use xxhash_rust::xxh3::xxh3_128;

use crate::semantics::{CodingSet, Selection, Variant, accepted_coding};

/// The largest number of variants of one URL.
pub(crate) const MOST_VARIANTS: usize = 1024;
/// The largest number of different `Vary` fields among the responses of one URL.
pub(super) const MOST_VARIES: usize = 4;
/// The largest number of header fields in a `Vary` of stored responses, and of remembered generations that soft purges
/// have ended: older ones are forgotten.
pub(super) const MOST_FIELDS: usize = 64;
pub(super) const MOST_EXPIRED: usize = 8;
/// The largest number of sets of accepted content codings whose response coding is remembered for one URL.
pub(super) const MOST_CODING_SETS: usize = 64;
/// The longest of them.
const LONGEST_CODING_SET: usize = 256;
/// The begin of the value, in the place of a set of codings, of a variant that answers several. No set has it.
const CODED: &[u8] = b"=";

/// The list of a URL's variants (responses that depend on request fields), in the URL's own entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variants {
    /// The sets of header fields by which the URL's responses vary (`Vary`), that of the latest response first, each
    /// sorted.
    pub(super) varies: Vec<Vec<HeaderName>>,
    /// The generation numbers of variants that a soft purge has made stale.
    pub(super) expired: Vec<u64>,
    /// The known variants of the URL, the oldest first.
    pub(super) known: Vec<Known>,
    /// The sets of accepted content codings whose requests the origin has answered.
    pub(super) codings: Vec<KnownCoding>,
}

/// The content coding (such as `gzip`) in which an origin answers requests that accept one set of codings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownCoding {
    pub(super) set: CodingSet,
    /// The content coding of the origin's responses to requests with this set of accepted codings; `None` if they had
    /// several, or one that the set does not have.
    pub(super) coding: Option<Vec<u8>>,
}

/// A known variant of a URL: the hash of its entry's name, its length, and whether it was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The hash of the name of the variant's entry.
    pub(super) hash: u128,
    /// The length of the variant's entry with its body, in bytes.
    pub(super) bytes: u64,
    /// Whether the variant has answered another request than its own.
    pub(super) is_used: bool,
}

impl Variants {
    pub(crate) fn is_empty(&self) -> bool {
        self.varies.is_empty()
    }

    /// Returns the names of the entries of all variants that could answer a request.
    pub(super) fn names(
        &self,
        selection: Selection<'_>,
        name: &Bytes,
        request: &HeaderMap,
    ) -> Vec<(Bytes, Variant)> {
        let named = |fields: &Vec<HeaderName>| {
            let variant = Variant::of_fields(selection, request, fields);
            (self.stored_name(name, &variant), variant)
        };
        self.varies.iter().map(named).collect()
    }

    /// Returns the name of the entry in which a variant is stored: one for all sets of codings that the origin answers
    /// with the same coding.
    pub(super) fn stored_name(&self, name: &Bytes, variant: &Variant) -> Bytes {
        match self.coding_of(variant) {
            None => variant_name(name, variant),
            Some(coding) => variant_name(name, &variant.with_codings(&[CODED, coding].concat())),
        }
    }

    /// Whether a variant's entry is shared by several sets of accepted content codings.
    pub(super) fn is_of_several(&self, variant: &Variant) -> bool {
        self.coding_of(variant).is_some()
    }

    /// Returns the coding in which the origin answers the set of codings of a variant; `None` if that is not known, or
    /// not always the same.
    fn coding_of(&self, variant: &Variant) -> Option<&[u8]> {
        let set = variant.codings()?;
        self.codings.iter().find(|known| known.set == *set)?.coding.as_deref()
    }

    /// Records, from a response, in which content coding the origin answers requests with the variant's set of accepted
    /// codings.
    pub(super) fn learn_coding(&mut self, variant: &Variant, response: &HeaderMap) {
        let Some(set) = variant.codings() else { return };
        let coding = accepted_coding(set, response);
        if let Some(known) = self.codings.iter_mut().find(|known| known.set == *set) {
            if known.coding != coding {
                // What depends on more than the set is for the set alone.
                known.coding = None;
            }
        } else if self.codings.len() < MOST_CODING_SETS
            && set.as_ref().is_none_or(|set| set.len() <= LONGEST_CODING_SET)
        {
            self.codings.push(KnownCoding { set: set.clone(), coding });
        }
    }

    /// Returns the entry name of the variant that a request asks for, by the `Vary` of the latest response.
    pub(crate) fn latest_name(
        &self,
        selection: Selection<'_>,
        name: &Bytes,
        request: &HeaderMap,
    ) -> Option<Bytes> {
        let fields = self.varies.first()?;
        Some(variant_name(name, &Variant::of_fields(selection, request, fields)))
    }

    /// Adds a variant to the URL's list, and returns the hashes of the variants to remove in exchange: with more than
    /// [`MOST_VARIANTS`], or more bytes in all than `most`.
    pub(super) fn add(
        &mut self,
        name: &Bytes,
        variant: &Variant,
        bytes: u64,
        most: u64,
    ) -> Vec<u128> {
        let fields: Vec<HeaderName> =
            variant.fields().iter().map(|(name, _)| name.clone()).collect();
        if self.varies.first() != Some(&fields) {
            self.varies.retain(|other| *other != fields);
            self.varies.insert(0, fields);
            self.varies.truncate(MOST_VARIES);
        }
        let hash = xxh3_128(&self.stored_name(name, variant));
        match self.known.iter_mut().find(|known| known.hash == hash) {
            Some(known) => {
                // A little more or less is not worth a write.
                if known.bytes.abs_diff(bytes) > known.bytes / 4 {
                    known.bytes = bytes;
                }
            }
            None => self.known.push(Known { hash, bytes, is_used: false }),
        }
        let mut gone = Vec::new();
        let mut total: u64 = self.known.iter().map(|known| known.bytes).sum();
        while self.known.len() > MOST_VARIANTS || (total > most && self.known.len() > 1) {
            let is_other = |known: &Known| known.hash != hash;
            let unused = |known: &Known| is_other(known) && !known.is_used;
            let place = self.known.iter().position(unused);
            let place =
                place.or_else(|| self.known.iter().position(is_other)).expect("two or more");
            let known = self.known.remove(place);
            total -= known.bytes;
            gone.push(known.hash);
        }
        gone
    }

    /// Removes a variant from the list by the name of its entry.
    pub(super) fn remove(&mut self, name: &[u8]) {
        let hash = xxh3_128(name);
        self.known.retain(|known| known.hash != hash);
    }

    /// Whether the list has a variant, by the name of its entry.
    pub(super) fn knows(&self, name: &[u8]) -> bool {
        let hash = xxh3_128(name);
        self.known.iter().any(|known| known.hash == hash)
    }

    /// Whether a variant is in the list, and has answered no other request than its own.
    pub(super) fn is_unused(&self, name: &[u8]) -> bool {
        let hash = xxh3_128(name);
        self.known.iter().any(|known| known.hash == hash && !known.is_used)
    }

    /// Records that a variant has answered a request other than its own.
    pub(super) fn note_use(&mut self, name: &[u8]) {
        let hash = xxh3_128(name);
        if let Some(known) = self.known.iter_mut().find(|known| known.hash == hash) {
            known.is_used = true;
        }
    }

    /// Marks all variants of the URL that have this generation number as stale, for a soft purge.
    pub(super) fn expire(&mut self, generation: u64) {
        if self.is_empty() {
            return;
        }
        self.expired.insert(0, generation);
        self.expired.truncate(MOST_EXPIRED);
    }
}

/// Returns the name of the entry for a variant of a URL; the URL's own name if the variant does not depend on request
/// fields.
pub(crate) fn variant_name(name: &Bytes, variant: &Variant) -> Bytes {
    if variant.fields().is_empty() {
        return name.clone();
    }
    // No target has a NUL.
    [&name[..], b"\0", &variant.key()].concat().into()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const NAME: Bytes = Bytes::from_static(b"http://a/");

    fn variant(language: usize) -> Variant {
        let field = HeaderName::from_static("x");
        let value = HeaderValue::from(language);
        Variant::of_fields(
            Selection::default(),
            &[(field.clone(), value)].into_iter().collect(),
            &[field],
        )
    }

    fn hash(language: usize) -> u128 {
        xxh3_128(&variant_name(&NAME, &variant(language)))
    }

    #[test]
    fn those_that_were_used_once_go_first() {
        let mut variants = Variants::default();
        for language in 0..MOST_VARIANTS {
            assert!(variants.add(&NAME, &variant(language), 1, u64::MAX).is_empty());
        }
        for used in [0, 1, 3] {
            let name = variant_name(&NAME, &variant(used));
            assert!(variants.is_unused(&name));
            variants.note_use(&name);
            assert!(!variants.is_unused(&name));
        }
        let gone: Vec<u128> = (5_000..8_000)
            .flat_map(|other| variants.add(&NAME, &variant(other), 1, u64::MAX))
            .collect();
        assert_eq!((gone.len(), gone[0], gone[1]), (3_000, hash(2), hash(4)));
        for used in [0, 1, 3] {
            assert!(!gone.contains(&hash(used)), "{used}");
        }
        assert_eq!(variants.known.len(), MOST_VARIANTS);
    }

    #[test]
    fn they_have_a_part_of_the_store() {
        let mut variants = Variants::default();
        for language in 0..10 {
            assert!(variants.add(&NAME, &variant(language), 100, 1_000).is_empty());
        }
        variants.note_use(&variant_name(&NAME, &variant(0)));
        assert_eq!(variants.add(&NAME, &variant(10), 150, 1_000), [hash(1), hash(2)]);
        // One that is as large as all is alone.
        assert_eq!(variants.add(&NAME, &variant(11), 5_000, 1_000).len(), 9);
        assert_eq!(variants.known.len(), 1);
    }
}
