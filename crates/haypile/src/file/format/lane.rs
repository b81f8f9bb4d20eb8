//! The words of a lane.

use super::segment::QUEUES;
use super::slot::{LockWord, Token};

// The first word is its lock, and the segment that is open in it, plus 1.

/// The offset, in the table entry of an append lane (an open segment that writers share), of the
/// word with the lane's queue and user.
pub(in crate::file) const USE: u64 = 8;
/// The offset, in the table entry of an append lane (an open segment that writers share), of the
/// words that show how long nothing was appended.
pub(in crate::file) const SEEN: u64 = 16;

/// The current use of an append lane (an open segment that writers share): the queue of its
/// records, and the user of the file that took it. Other owners may append there as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct LaneUse {
    pub(in crate::file) queue: u32,
    pub(in crate::file) user: Token,
}

impl LaneUse {
    pub(in crate::file) fn encode(self) -> u64 {
        LockWord::new(self.user, self.queue + 1).0
    }

    /// Decodes the use of an append lane (its queue and its user) from its word in the cache file;
    /// `None` for an unused lane, or for garbage.
    pub(in crate::file) fn decode(word: u64) -> Option<Self> {
        let word = LockWord(word);
        let queue = word.payload().checked_sub(1).filter(|queue| *queue < QUEUES)?;
        Some(Self { queue, user: word.token() })
    }
}

/// A number in the word of an owner slot that names the lane of each queue.
const LANE_BITS: u32 = 10;
const LANE_MASK: u64 = (1 << LANE_BITS) - 1;

/// Returns the append lane that a user of the cache file last used for a queue, from the word that
/// remembers it; `None` if there is none; its number may be beyond the last lane.
pub(in crate::file) fn remembered(word: u64, queue: u32) -> Option<u32> {
    let number = word >> (queue * LANE_BITS) & LANE_MASK;
    u32::try_from(number).ok()?.checked_sub(1)
}

/// Returns the word that remembers the append lanes of a user of the cache file, with the lane of
/// one queue set or removed.
pub(in crate::file) fn remember(word: u64, queue: u32, lane: Option<u32>) -> u64 {
    let number = lane.map_or(0, |lane| u64::from(lane) + 1);
    let shift = queue * LANE_BITS;
    word & !(LANE_MASK << shift) | (number & LANE_MASK) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_and_remembered_lanes_are_read_as_they_were_written() {
        for queue in 0..QUEUES {
            let usage = LaneUse { queue, user: Token::new(1022, 77) };
            assert_eq!(LaneUse::decode(usage.encode()), Some(usage));
        }
        assert_eq!(LaneUse::decode(0), None);
        assert_eq!(LaneUse::decode(u64::MAX), None);
        let word = remember(remember(0, 0, Some(0)), QUEUES - 1, Some(511));
        assert_eq!((remembered(word, 0), remembered(word, QUEUES - 1)), (Some(0), Some(511)));
        assert_eq!(remembered(word, 2), None);
        assert_eq!(remembered(remember(word, 0, None), 0), None);
    }
}
