//! The layout of the file: sizes and offsets, which follow from the file's size.

use crate::file::format::header;
use crate::file::format::segment::{QUEUES, QUEUES_WITHOUT_CLASSES};
use crate::groups;
use crate::removals;

/// The length of a line of the processor's cache, 64 bytes, of which all regions of the cache file
/// are multiples.
pub(in crate::file) const LINE_BYTES: u64 = 64;
/// The length in bytes of an owner slot, the entry of one user in the cache file.
pub(in crate::file) const OWNER_SLOT_BYTES: u64 = 384;
/// Segments begin at a multiple of this.
const PAGE_BYTES: u64 = 4096;
/// The number of slots (entries of the index) in one 64-byte line of the index.
pub(in crate::file) const SLOTS: u64 = 7;
/// Entries that a bucket is planned for.
const ENTRIES_PER_BUCKET: u64 = 6;

/// The size of the smallest cache file, in bytes.
pub(in crate::file) const MIN_FILE_BYTES: u64 = 1 << 20;
/// The size of the largest cache file, in bytes: the highest offset that an index slot can hold.
pub(in crate::file) const MAX_FILE_BYTES: u64 = 1 << 40;
/// The smallest value of the option `entry_size=` of a cache file, in bytes.
pub(in crate::file) const MIN_ENTRY_BYTES: u64 = 32;
/// The largest value of the option `entry_size=` of a cache file, in bytes.
pub(in crate::file) const MAX_ENTRY_BYTES: u64 = 64 << 10;
/// The default of the option `entry_size=` (expected size of an entry) of a cache file, in bytes.
pub(in crate::file) const DEFAULT_ENTRY_BYTES: u64 = 256;

/// The highest number of owner slots (entries for the file's users) of a cache file: more do not
/// fit in an owner token.
pub(in crate::file) const MAX_OWNER_SLOTS: u64 = 1023;

const MIN_SEGMENT_LOG2: u32 = 16;
const MAX_SEGMENT_LOG2: u32 = 20;
/// One of this number of segments is open at most, but one for each queue in small files.
const SEGMENTS_PER_LANE: u64 = 16;
/// A line of removals for each part of the file of this length: 0.4 % of the file.
const BYTES_PER_REMOVALS: u64 = 16_384;
/// More lines of removals than this serve nobody.
const MOST_REMOVALS: u64 = 1 << 20;
/// A word for groups for each part of a file of this length: 0.1 % of the file, unless an option says otherwise.
const BYTES_PER_GROUP_WORD: u64 = 8192;
/// More words than this have to be asked for.
const MOST_GROUP_WORDS: u64 = 1 << 20;
/// However many are asked for, most of the file is for entries.
const LEAST_BYTES_PER_GROUP_WORD: u64 = 64;
/// The words of the last clearings of namespaces.
const CLEARINGS: u64 = 256;
/// The number of tables in a cache file that each count live entries by segment; writers are spread
/// over the tables to avoid contention.
pub(in crate::file) const LIVE_TABLES: u32 = 8;
/// The most segments: in larger files they are longer, for choosing one goes through all of them.
const MAX_SEGMENTS: u64 = 8192;
/// Of the segments of the largest file.
const LONGEST_SEGMENT_LOG2: u32 = (MAX_FILE_BYTES / MAX_SEGMENTS).ilog2();
/// A file needs as many: open ones, the reserve, and one to recycle.
const MIN_SEGMENTS: u64 = 8;
/// From this number on, entries are kept apart by their TTL.
const SEGMENTS_FOR_CLASSES: u64 = 64;

/// The counts in the header of a cache file that determine its layout, such as those of segments,
/// index buckets and owner slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct Numbers {
    pub(in crate::file) owner_slots: u32,
    pub(in crate::file) lanes: u32,
    pub(in crate::file) claims: u32,
    pub(in crate::file) removals: u32,
    /// The number of words that hold the last invalidations of groups of entries; each group is
    /// hashed to one of them.
    pub(in crate::file) groups: u32,
    pub(in crate::file) buckets: u32,
    pub(in crate::file) overflows: u32,
    pub(in crate::file) ghosts: u32,
    pub(in crate::file) segments: u32,
    pub(in crate::file) segment_log2: u32,
}

/// The layout of a cache file: the counts in its header, and the offset of each region (such as the
/// index and the segments) that follows from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct Geometry {
    pub(in crate::file) numbers: Numbers,
    pub(in crate::file) file_bytes: u64,
    pub(in crate::file) owner_slots: u64,
    pub(in crate::file) lanes: u64,
    pub(in crate::file) claims: u64,
    pub(in crate::file) removals: u64,
    pub(in crate::file) clearings: u64,
    pub(in crate::file) groups: u64,
    pub(in crate::file) index: u64,
    pub(in crate::file) overflow: u64,
    pub(in crate::file) ghosts: u64,
    pub(in crate::file) table: u64,
    pub(in crate::file) live: u64,
    pub(in crate::file) pins: u64,
    pub(in crate::file) segments: u64,
}

impl Geometry {
    /// Returns the layout of a new cache file of `file_bytes` bytes for entries of about
    /// `entry_bytes` bytes, with at most `groups` words for groups of entries. The size is within
    /// the limits.
    pub(in crate::file) fn plan(file_bytes: u64, entry_bytes: u64, groups: Option<u64>) -> Self {
        let groups =
            groups.unwrap_or_else(|| (file_bytes / BYTES_PER_GROUP_WORD).min(MOST_GROUP_WORDS));
        let groups = groups.min(file_bytes / LEAST_BYTES_PER_GROUP_WORD).next_multiple_of(8);
        let count = |number: u64| u32::try_from(number).expect("limits of size and entry size");
        let owner_slots: u64 = match file_bytes >> 20 {
            0..4 => 32,
            4..16 => 64,
            16..64 => 256,
            _ => MAX_OWNER_SLOTS,
        };
        let buckets = file_bytes / entry_bytes / ENTRIES_PER_BUCKET;
        // However small entries are, most of the file is for them.
        let buckets = buckets.clamp(8, file_bytes / 512);
        let mut segment_log2 = (file_bytes / 512).max(1).ilog2();
        segment_log2 = segment_log2.clamp(MIN_SEGMENT_LOG2, MAX_SEGMENT_LOG2);
        while file_bytes >> segment_log2 > MAX_SEGMENTS {
            segment_log2 += 1;
        }
        let numbers = Numbers {
            owner_slots: count(owner_slots),
            lanes: count(lanes_for(file_bytes >> segment_log2)),
            claims: count(owner_slots / 4),
            removals: count((file_bytes / BYTES_PER_REMOVALS).min(MOST_REMOVALS)),
            groups: count(groups),
            buckets: count(buckets),
            overflows: count((buckets * 7 / 16).max(4)),
            ghosts: count((buckets / 3).max(2)),
            segments: count(file_bytes >> segment_log2),
            segment_log2,
        };
        // The segments get what the rest leaves, their table included.
        let room = |segments| {
            let start = Self::of(Numbers { segments, ..numbers }, file_bytes).segments;
            count(file_bytes.saturating_sub(start) >> segment_log2)
        };
        let fewest = room(numbers.segments);
        let segments = if room(fewest + 1) > fewest { fewest + 1 } else { fewest };
        let lanes = count(lanes_for(segments.into())).min(numbers.lanes);
        Self::of(Numbers { lanes, segments, ..numbers }, file_bytes)
    }

    pub(in crate::file) fn of(numbers: Numbers, file_bytes: u64) -> Self {
        let after = |start: u64, count: u32, each: u64| start + u64::from(count) * each;
        let owner_slots = header::BYTES;
        let lanes = after(owner_slots, numbers.owner_slots, OWNER_SLOT_BYTES);
        let claims = after(lanes, numbers.lanes, LINE_BYTES);
        let removals = after(claims, numbers.claims, LINE_BYTES);
        let clearings = after(removals, numbers.removals, LINE_BYTES);
        let groups = clearings + CLEARINGS * 8;
        let index = after(groups, numbers.groups, 8);
        let overflow = after(index, numbers.buckets, LINE_BYTES);
        let ghosts = after(overflow, numbers.overflows, LINE_BYTES);
        let table = after(ghosts, numbers.ghosts, LINE_BYTES);
        let live = after(table, numbers.segments, LINE_BYTES);
        let pins = after(live, LIVE_TABLES, table_bytes(numbers));
        let segments = (pins + table_bytes(numbers)).next_multiple_of(PAGE_BYTES);
        Self {
            numbers,
            file_bytes,
            owner_slots,
            lanes,
            claims,
            removals,
            clearings,
            groups,
            index,
            overflow,
            ghosts,
            table,
            live,
            pins,
            segments,
        }
    }

    /// Returns the layout that a cache file's header states, if a file of this size can have it;
    /// otherwise `None`.
    pub(in crate::file) fn checked(numbers: Numbers, file_bytes: u64) -> Option<Self> {
        let possible = (1..=MAX_OWNER_SLOTS).contains(&numbers.owner_slots.into())
            && (u64::from(QUEUES_WITHOUT_CLASSES)..=MAX_SEGMENTS).contains(&numbers.lanes.into())
            && numbers.claims > 0
            && numbers.removals > 0
            && numbers.groups > 0
            && numbers.groups.is_multiple_of(8)
            && numbers.buckets > 0
            && numbers.overflows < u32::MAX
            && numbers.ghosts > 0
            && (MIN_SEGMENT_LOG2..=LONGEST_SEGMENT_LOG2).contains(&numbers.segment_log2)
            && (MIN_SEGMENTS..=MAX_SEGMENTS).contains(&numbers.segments.into())
            && (MIN_FILE_BYTES..=MAX_FILE_BYTES).contains(&file_bytes);
        if !possible {
            return None;
        }
        let geometry = Self::of(numbers, file_bytes);
        (geometry.segments_end() <= file_bytes).then_some(geometry)
    }

    fn segments_end(&self) -> u64 {
        self.segments + (u64::from(self.numbers.segments) << self.numbers.segment_log2)
    }

    #[inline]
    pub(in crate::file) fn segment_bytes(&self) -> u64 {
        1 << self.numbers.segment_log2
    }

    /// Returns the total size of all segments of the cache file, in bytes.
    pub(in crate::file) fn capacity_bytes(&self) -> u64 {
        u64::from(self.numbers.segments) << self.numbers.segment_log2
    }

    /// Returns whether the cache file keeps entries with a TTL in separate segments, by length of
    /// their TTL.
    #[inline]
    pub(in crate::file) fn has_classes(&self) -> bool {
        u64::from(self.numbers.segments) >= SEGMENTS_FOR_CLASSES && self.numbers.lanes >= QUEUES
    }

    /// Returns the number of queues (small, main, and those by length of TTL) to which the segments
    /// of the cache file belong.
    pub(in crate::file) fn queues(&self) -> u32 {
        if self.has_classes() { QUEUES } else { QUEUES_WITHOUT_CLASSES }
    }

    /// Returns the largest number of consecutive segments of the cache file that one record can
    /// take.
    #[inline]
    pub(in crate::file) fn longest_run(&self) -> u32 {
        self.numbers.segments.div_ceil(8).max(1)
    }

    #[inline]
    pub(in crate::file) fn lane(&self, lane: u32) -> u64 {
        self.lanes + u64::from(lane) * LINE_BYTES
    }

    /// Returns the offset in the cache file of the word that counts a segment's live entries in one
    /// of the tables of counts.
    #[inline]
    pub(in crate::file) fn live_word(&self, table: u32, segment: u32) -> u64 {
        self.live + u64::from(table) * table_bytes(self.numbers) + u64::from(segment) * 8
    }

    /// Returns the offset in the cache file of the word that counts the readers that use values of
    /// a segment in place.
    pub(in crate::file) fn pin_word(&self, segment: u32) -> u64 {
        self.pins + u64::from(segment) * 8
    }

    #[inline]
    pub(in crate::file) fn owner_slot(&self, owner_slot: u32) -> u64 {
        self.owner_slots + u64::from(owner_slot) * OWNER_SLOT_BYTES
    }

    pub(in crate::file) fn claim(&self, line: u32) -> u64 {
        self.claims + u64::from(line) * LINE_BYTES
    }

    /// Returns the offset in the cache file of the 64-byte line that counts removals of keys with
    /// this hash.
    #[inline]
    pub(in crate::file) fn removals_of(&self, hash: u64) -> u64 {
        let line = removals::line_of(hash, self.numbers.removals);
        self.removals + u64::from(line) * LINE_BYTES
    }

    /// Returns the offset in the cache file of the word that holds the last clearing of the
    /// namespace with this hash; other namespaces may share it.
    pub(in crate::file) fn clearings_of(&self, namespace: u64) -> u64 {
        self.clearings + 8 * (namespace % CLEARINGS)
    }

    /// Returns the offset in the cache file of the word that holds the last invalidation of the
    /// group with this hash; other groups may share it.
    #[inline]
    pub(in crate::file) fn group_word(&self, hash: u32) -> u64 {
        self.groups + 8 * u64::from(groups::word_of(hash, self.numbers.groups))
    }

    #[inline]
    pub(in crate::file) fn bucket(&self, bucket: u32) -> u64 {
        self.index + u64::from(bucket) * LINE_BYTES
    }

    pub(in crate::file) fn overflow_line(&self, line: u32) -> u64 {
        self.overflow + u64::from(line) * LINE_BYTES
    }

    #[inline]
    pub(in crate::file) fn ghost_line(&self, line: u32) -> u64 {
        self.ghosts + u64::from(line) * LINE_BYTES
    }

    #[inline]
    pub(in crate::file) fn segment_entry(&self, segment: u32) -> u64 {
        self.table + u64::from(segment) * LINE_BYTES
    }

    /// Returns the offset in the cache file at which the records of a segment begin.
    #[inline]
    pub(in crate::file) fn segment_start(&self, segment: u32) -> u64 {
        self.segments + (u64::from(segment) << self.numbers.segment_log2)
    }

    /// Returns the number of the index bucket that holds keys with this hash, from the hash's upper
    /// bits.
    #[inline]
    pub(in crate::file) fn bucket_of(&self, hash: u64) -> u32 {
        let wide = u128::from(hash) * u128::from(self.numbers.buckets);
        u32::try_from(wide >> 64).expect("less than the number of buckets")
    }

    /// Returns the number of the 64-byte line of the cache file that remembers evicted keys
    /// (ghosts) with this hash.
    #[inline]
    pub(in crate::file) fn ghost_line_of(&self, hash: u64) -> u32 {
        let wide = u128::from(hash) * u128::from(self.numbers.ghosts);
        u32::try_from(wide >> 64).expect("less than the number of lines")
    }
}

/// Returns the number of lanes in a file of this number of segments.
fn lanes_for(segments: u64) -> u64 {
    let queues = if segments >= SEGMENTS_FOR_CLASSES { QUEUES } else { QUEUES_WITHOUT_CLASSES };
    (segments / SEGMENTS_PER_LANE).max(queues.into())
}

/// Returns the length of a table with a word for each segment. Each begins with a line.
#[inline]
fn table_bytes(numbers: Numbers) -> u64 {
    (u64::from(numbers.segments) * 8).next_multiple_of(LINE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_fits_its_file_and_leaves_little() {
        for log2 in 20..=40 {
            for file_bytes in [1 << log2, (1 << log2) + 4096 * 37] {
                if file_bytes > MAX_FILE_BYTES {
                    continue;
                }
                for (entry_bytes, groups) in
                    [(MIN_ENTRY_BYTES, Some(1 << 24)), (MAX_ENTRY_BYTES, Some(8))]
                {
                    let geometry = Geometry::plan(file_bytes, entry_bytes, groups);
                    assert_eq!(Geometry::checked(geometry.numbers, file_bytes), Some(geometry));
                }
                let geometry = Geometry::plan(file_bytes, DEFAULT_ENTRY_BYTES, None);
                let left = file_bytes - geometry.segments_end();
                assert!(left <= geometry.segment_bytes(), "{file_bytes} leaves {left}");
            }
        }
    }

    #[test]
    fn numbers_that_do_not_fit_the_file_are_refused() {
        let geometry = Geometry::plan(MIN_FILE_BYTES, DEFAULT_ENTRY_BYTES, None);
        let numbers = geometry.numbers;
        for wrong in [
            Numbers { segments: numbers.segments + 1, ..numbers },
            Numbers { segments: 0, ..numbers },
            Numbers { owner_slots: 0, ..numbers },
            Numbers { lanes: 1, ..numbers },
            Numbers { buckets: u32::MAX, ..numbers },
            Numbers { segment_log2: 63, ..numbers },
            // The sum of all that would be 2^64 and little more.
            Numbers {
                owner_slots: 1023,
                lanes: 2,
                claims: u32::MAX,
                removals: u32::MAX,
                groups: u32::MAX - 7,
                buckets: u32::MAX,
                overflows: u32::MAX - 1,
                ghosts: u32::MAX,
                segments: (1 << 24) - 1,
                segment_log2: 40,
            },
        ] {
            assert_eq!(Geometry::checked(wrong, MIN_FILE_BYTES), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_hash_has_a_bucket_within_the_index() {
        let geometry = Geometry::plan(MIN_FILE_BYTES, DEFAULT_ENTRY_BYTES, None);
        assert_eq!(geometry.bucket_of(0), 0);
        assert_eq!(geometry.bucket_of(u64::MAX), geometry.numbers.buckets - 1);
    }
}
