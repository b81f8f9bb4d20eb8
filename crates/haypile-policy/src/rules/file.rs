//! Decisions that the file store and its simulation share: pure functions over plain data.
//!
//! A segment is free, open (records are appended to it) or sealed, and belongs to a queue from the
//! moment it is opened. Nothing here keeps state between calls: the store's is in the mapped file.

/// The highest number of hits that a file store counts for an entry; further hits change nothing.
pub const MAX_FREQUENCY: u8 = 3;

/// The number of free segments of a file store that stay in reserve for moving records out of segments that are
/// recycled.
pub const RESERVED_SEGMENTS: u32 = 2;

/// The largest number of segments of a file store that one write recycles. Nothing of the last of them is kept, so that
/// one is free in the end.
pub const MAX_RECYCLED: u32 = 4;

/// The queue of a segment in a file store: small (new entries) or main.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The small queue, which holds new entries: a filter for those that are used once.
    Small,
    /// The main queue, which holds entries that were used.
    Main,
}

/// Returns the queue of a file store to which a new record is written. `replaces` is the queue of the record that it
/// replaces; without one, `is_ghost` says whether the key was evicted from the small queue recently.
#[inline]
pub fn queue_of_write(replaces: Option<Queue>, is_ghost: impl FnOnce() -> bool) -> Queue {
    match replaces {
        Some(queue) => queue,
        None if is_ghost() => Queue::Main,
        None => Queue::Small,
    }
}

/// The rules by which a file store recycles segments, that is, evicts some of their records and moves the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The number of segments up to which the small queue of a file store is not recycled.
    pub small_segments: u32,
    /// The number of hits with which a record of the small queue moves to the main queue, when its segment is recycled.
    pub threshold: u8,
    /// The largest number of bytes of records that are moved out of a recycled segment, and so kept; at most a
    /// segment's size.
    pub kept_bytes: u64,
}

/// A sealed segment of a file store, or several segments that hold one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The queue (small or main) of the segment.
    pub queue: Queue,
    /// The number of the segment in the order in which segments were opened: a later one has a higher number.
    pub opened: u64,
    /// Whether the segment has no live records, or only expired ones.
    pub is_dead: bool,
}

impl Rules {
    /// Chooses the sealed segment that a file store recycles, and returns its number; `None` if there are none.
    /// `small_segments` is the number of segments in the small queue, including open ones.
    ///
    /// A dead one, if there is any; else the small queue's oldest while that queue has more than
    /// its share, and its youngest sealed segment is not all it has; else the main queue's oldest.
    /// If the queue to take from has none, it is the other's.
    pub fn choose_victim(
        &self,
        sealed: impl IntoIterator<Item = (u32, Sealed)>,
        small_segments: u32,
    ) -> Option<u32> {
        let (mut dead, mut small, mut main) = (None, None, None);
        let mut small_sealed = 0;
        for (number, segment) in sealed {
            let oldest = match segment.queue {
                _ if segment.is_dead => &mut dead,
                Queue::Small => &mut small,
                Queue::Main => &mut main,
            };
            if oldest.is_none_or(|(opened, _)| segment.opened < opened) {
                *oldest = Some((segment.opened, number));
            }
            small_sealed += u32::from(segment.queue == Queue::Small);
        }
        let is_large = small_segments > self.small_segments && small_sealed > 1;
        let (preferred, other) = if is_large { (small, main) } else { (main, small) };
        dead.or(preferred).or(other).map(|(_, number)| number)
    }

    /// Returns the largest number of bytes of records to keep (move) when a segment is recycled, if the same write has
    /// already recycled `recycled` segments.
    #[inline]
    pub fn allowed_bytes(&self, recycled: u32) -> u64 {
        if recycled + 1 < MAX_RECYCLED { self.kept_bytes } else { 0 }
    }

    /// Returns the number of hits with which a record of a recycled segment of `queue` moves to the main queue; `None`
    /// if it is evicted.
    #[inline]
    pub fn kept_frequency(&self, queue: Queue, frequency: u8) -> Option<u8> {
        match queue {
            Queue::Small => (frequency >= self.threshold).then_some(0),
            Queue::Main => frequency.checked_sub(1),
        }
    }
}

/// The sums of the bytes of a segment's live records, indexed by the number of hits of the records.
pub type BytesByFrequency = [u64; MAX_FREQUENCY as usize + 1];

/// The choice of the records of a recycled segment that are kept (moved) instead of evicted: the most used first, and
/// of equally used ones the youngest.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    rules: Rules,
    queue: Queue,
    allowed_bytes: u64,
    /// The lowest frequency of which any record is kept.
    lowest: u8,
    /// Bytes of records with the lowest frequency that are too many: the oldest are not kept.
    excess_bytes: u64,
}

impl Keeping {
    /// Creates the choice for a recycled segment of `queue` with the live bytes `bytes`, of which `allowed_bytes` may
    /// be kept.
    pub fn new(rules: Rules, queue: Queue, bytes: &BytesByFrequency, allowed_bytes: u64) -> Self {
        let mut keeping =
            Self { rules, queue, allowed_bytes, lowest: MAX_FREQUENCY + 1, excess_bytes: 0 };
        let mut sum_bytes = 0_u64;
        for (frequency, bytes) in (0..=MAX_FREQUENCY).zip(bytes).rev() {
            if rules.kept_frequency(queue, frequency).is_none() || sum_bytes >= allowed_bytes {
                break;
            }
            sum_bytes = sum_bytes.saturating_add(*bytes);
            keeping.lowest = frequency;
            keeping.excess_bytes = sum_bytes.saturating_sub(allowed_bytes);
        }
        keeping
    }

    /// Returns the number of hits with which a live record of the recycled segment is kept; `None` if it is evicted. To
    /// be called once for each record, from the oldest to the youngest.
    ///
    /// Frequencies that have changed since they were added up do no harm: no more bytes are kept
    /// than are allowed.
    pub fn keep(&mut self, frequency: u8, bytes: u64) -> Option<u8> {
        let frequency = frequency.min(MAX_FREQUENCY);
        if frequency < self.lowest {
            return None;
        }
        if frequency == self.lowest && self.excess_bytes > 0 {
            self.excess_bytes = self.excess_bytes.saturating_sub(bytes);
            return None;
        }
        if bytes > self.allowed_bytes {
            return None;
        }
        self.allowed_bytes -= bytes;
        self.rules.kept_frequency(self.queue, frequency)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULES: Rules = Rules { small_segments: 6, threshold: 1, kept_bytes: 75 };

    fn sealed(queue: Queue, opened: u64, is_dead: bool) -> Sealed {
        Sealed { queue, opened, is_dead }
    }

    #[test]
    fn a_dead_segment_goes_first_then_the_queue_beyond_its_share() {
        use Queue::{Main, Small};
        let mut file = vec![
            (4, sealed(Small, 10, false)),
            (5, sealed(Main, 7, false)),
            (6, sealed(Small, 9, false)),
            (7, sealed(Main, 8, false)),
        ];
        let choose = |file: &[(u32, Sealed)], small_segments| {
            RULES.choose_victim(file.iter().copied(), small_segments)
        };
        assert_eq!(choose(&file, 6), Some(5));
        assert_eq!(choose(&file, 7), Some(6));
        file.extend([(8, sealed(Main, 12, true)), (9, sealed(Small, 11, true))]);
        assert_eq!(choose(&file, 7), Some(9));
        // The last sealed segment of the small queue is spared, unless there is no other.
        assert_eq!(choose(&file[..2], 7), Some(5));
        assert_eq!(choose(&file[..1], 7), Some(4));
        assert_eq!(choose(&file[1..2], 7), Some(5));
        assert_eq!(choose(&[], 7), None);
    }

    #[test]
    fn of_the_last_segment_nothing_is_kept() {
        assert_eq!(
            [0, 1, 2, 3, 4].map(|recycled| RULES.allowed_bytes(recycled)),
            [75, 75, 75, 0, 0]
        );
    }

    #[test]
    fn writes_go_to_the_queue_that_their_key_has_earned() {
        assert_eq!(queue_of_write(None, || false), Queue::Small);
        assert_eq!(queue_of_write(None, || true), Queue::Main);
        for queue in [Queue::Small, Queue::Main] {
            assert_eq!(queue_of_write(Some(queue), || unreachable!("it is in the cache")), queue);
        }
    }

    proptest! {
        #[test]
        fn the_most_used_and_then_the_youngest_are_kept(
            records in prop::collection::vec((0..=MAX_FREQUENCY, 1..30_u64), 0..30),
            is_main in any::<bool>(),
            threshold in 1..=MAX_FREQUENCY,
            allowed_bytes in 0..300_u64,
        ) {
            let queue = if is_main { Queue::Main } else { Queue::Small };
            let rules = Rules { threshold, ..RULES };
            let mut bytes = BytesByFrequency::default();
            for (frequency, length) in &records {
                bytes[usize::from(*frequency)] += length;
            }
            let mut keeping = Keeping::new(rules, queue, &bytes, allowed_bytes);
            let kept: Vec<bool> = records
                .iter()
                .map(|(frequency, length)| {
                    let kept = keeping.keep(*frequency, *length);
                    let of_queue = if is_main { frequency.saturating_sub(1) } else { 0 };
                    assert!(kept.is_none_or(|kept| kept == of_queue));
                    kept.is_some()
                })
                .collect();

            let least = if is_main { 1 } else { threshold };
            let mut order: Vec<usize> = (0..records.len()).rev().collect();
            order.retain(|at| records[*at].0 >= least);
            order.sort_by_key(|at| std::cmp::Reverse(records[*at].0));
            let mut sum = 0;
            let mut expected = vec![false; records.len()];
            for at in order {
                sum += records[at].1;
                if sum > allowed_bytes {
                    break;
                }
                expected[at] = true;
            }
            prop_assert_eq!(kept, expected);
        }

        /// Hits go on while a segment is recycled.
        #[test]
        fn no_more_is_kept_than_allowed_whatever_was_counted(
            records in prop::collection::vec((any::<u8>(), any::<u64>()), 0..30),
            bytes in any::<BytesByFrequency>(),
            allowed_bytes in any::<u64>(),
        ) {
            let mut keeping = Keeping::new(RULES, Queue::Main, &bytes, allowed_bytes);
            let kept = records.iter().filter(|of| keeping.keep(of.0, of.1).is_some());
            prop_assert!(kept.map(|of| u128::from(of.1)).sum::<u128>() <= allowed_bytes.into());
        }
    }
}
