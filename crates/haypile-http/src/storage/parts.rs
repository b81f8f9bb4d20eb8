//! Bodies of which only parts are stored.

use std::ops::Range;

use super::entry::Chunks;
use super::{CHUNK_BYTES, chunk_of};

/// The largest number of stored parts of one response body.
pub(crate) const MOST_PARTS: usize = 16;

/// The stored parts of a response body, ordered by position. They may overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The length of the whole response body in bytes.
    pub(crate) bytes: u64,
    parts: Vec<Part>,
}

/// A stored part of a response body, in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The position at which the part begins in the response body, in bytes.
    pub(crate) begin: u64,
    pub(crate) chunks: Chunks,
}

impl Part {
    fn range(self) -> Range<u64> {
        self.begin..self.begin.saturating_add(self.chunks.bytes)
    }

    fn contains(self, other: Self) -> bool {
        let (own, other) = (self.range(), other.range());
        own.start <= other.start && other.end <= own.end
    }
}

impl Parts {
    /// Returns the stored parts of a response body of this length, with one part; `None` if the
    /// part is outside of the body.
    pub(crate) fn new(bytes: u64, part: Part) -> Option<Self> {
        Self::of(bytes, vec![part])
    }

    /// Returns the stored parts of a response body of this length; `None` if one is outside of the
    /// body, or there are too many.
    pub(crate) fn of(bytes: u64, parts: Vec<Part>) -> Option<Self> {
        let is_inside = |part: &Part| {
            let end = part.begin.checked_add(part.chunks.bytes);
            part.chunks.bytes > 0 && end.is_some_and(|end| end <= bytes)
        };
        let is_sound = (1..=MOST_PARTS).contains(&parts.len())
            && parts.iter().all(is_inside)
            && parts.is_sorted_by_key(|part| part.begin);
        is_sound.then_some(Self { bytes, parts })
    }

    /// Adds a stored part of the same response body. If there are too many, the shortest is
    /// removed.
    pub(crate) fn add(&mut self, part: Part) {
        if self.parts.iter().any(|own| own.contains(part)) {
            return;
        }
        self.parts.retain(|own| !part.contains(*own));
        let place = self.parts.partition_point(|own| own.begin < part.begin);
        self.parts.insert(place, part);
        if self.parts.len() > MOST_PARTS {
            let places = 0..self.parts.len();
            let shortest = places.min_by_key(|place| self.parts[*place].chunks.bytes);
            self.parts.remove(shortest.expect("there are some"));
        }
    }

    /// Returns the stored parts of the response body, ordered by position.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Part> {
        self.parts.iter().copied()
    }

    /// Returns the stored part that has a byte of the response body, and extends furthest beyond
    /// it.
    pub(super) fn at(&self, at: u64) -> Option<Part> {
        let has_it = self.iter().filter(|part| part.range().contains(&at));
        has_it.max_by_key(|part| part.range().end)
    }
}

/// The position of a response body's byte in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InChunk {
    pub(crate) chunks: Chunks,
    /// The index of the chunk among those of the response body, from 0.
    pub(crate) index: u64,
    /// The number of bytes of the chunk before the byte.
    pub(crate) skipped: usize,
    /// The number of bytes of the chunk from the byte on.
    pub(crate) left: u64,
}

impl InChunk {
    /// Returns the chunk that has a byte of a response body, with the position in it.
    pub(super) fn of(chunks: Chunks, at: u64) -> Self {
        let (index, skipped) = chunk_of(at);
        let left = (CHUNK_BYTES - skipped) as u64;
        Self { chunks, index, skipped, left: left.min(chunks.bytes - at) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part(begin: u64, bytes: u64) -> Part {
        Part { begin, chunks: Chunks { id: u128::from(begin) << 64 | u128::from(bytes), bytes } }
    }

    #[test]
    fn parts_that_are_none() {
        for (parts, is_sound) in [
            (vec![part(0, 10)], true),
            (vec![part(9, 1)], true),
            (vec![part(9, 2)], false),
            (vec![part(u64::MAX, 2)], false),
            (vec![part(0, 0)], false),
            (vec![], false),
            (vec![part(5, 1), part(0, 1)], false),
            (vec![part(0, 1); MOST_PARTS + 1], false),
        ] {
            assert_eq!(Parts::of(10, parts.clone()).is_some(), is_sound, "{parts:?}");
        }
    }

    proptest! {
        /// The part that was added last is there, at its place; there are never too many.
        #[test]
        fn parts_of_a_model(added in prop::collection::vec((0_u64..90, 1_u64..10), 1..60)) {
            let mut parts: Option<Parts> = None;
            for (begin, bytes) in added {
                let new = part(begin, bytes);
                match &mut parts {
                    None => parts = Parts::new(100, new),
                    Some(parts) => parts.add(new),
                }
                let parts = parts.as_ref().expect("they are in the body");
                prop_assert_eq!(Parts::of(100, parts.iter().collect()), Some(parts.clone()));
                for at in 0..100 {
                    if let Some(found) = parts.at(at) {
                        prop_assert!(found.range().contains(&at));
                    }
                }
                let is_shortest = parts.iter().all(|own| own.chunks.bytes >= bytes);
                prop_assert!(parts.at(begin).is_some() || is_shortest);
            }
        }
    }
}
