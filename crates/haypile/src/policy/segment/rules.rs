//! What the file store and its simulation decide alike: pure functions over plain data.
//!
//! A segment is free, open (records are appended to it) or sealed, and belongs to a queue from the
//! moment it is opened. Nothing here keeps state between calls: the store's is in the mapped file.

/// The highest frequency of an entry; further hits change nothing.
pub const MAX_FREQUENCY: u8 = 3;

/// Free segments that are not for writes: what is kept of a segment that is recycled goes there.
pub const RESERVED_SEGMENTS: u32 = 2;

/// Segments that one write recycles at most. Of the last of them nothing is kept, so that one is
/// free in the end.
pub const MAX_RECYCLED: u32 = 4;

/// The part of the file that a record can have at most, unless one segment is more.
pub const LARGEST_PART: u64 = 8;

/// What a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// New entries: a filter for those that are used once.
    Small,
    /// Entries that were used.
    Main,
}

/// The queue that a record is written to. `replaces` is where the record is that it replaces;
/// without one, `is_ghost` says whether the key left the small queue not long ago.
#[inline]
pub fn queue_of_write(replaces: Option<Queue>, is_ghost: impl FnOnce() -> bool) -> Queue {
    match replaces {
        Some(queue) => queue,
        None if is_ghost() => Queue::Main,
        None => Queue::Small,
    }
}

/// The bounds that recycling works by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Segments up to which the small queue is spared.
    pub small_segments: u32,
    /// The frequency that earns a record of the small queue a place in the main queue.
    pub threshold: u8,
    /// Bytes of a segment that are kept at most; no more than a segment has.
    pub kept_bytes: u64,
}

/// A sealed segment, or a run of them that holds one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Its queue.
    pub queue: Queue,
    /// A number that is higher the later it was opened.
    pub opened: u64,
    /// Whether it has no live record, or only expired ones.
    pub is_dead: bool,
}

impl Rules {
    /// Which of the sealed segments is recycled, by the number it is given with; `None` if there
    /// are none. `small_segments` are those of the small queue, open ones included.
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

    /// Bytes that are kept of a segment at most, when the same write has recycled `recycled`
    /// segments before it.
    pub fn allowed_bytes(&self, recycled: u32) -> u64 {
        if recycled + 1 < MAX_RECYCLED { self.kept_bytes } else { 0 }
    }

    /// The frequency that a record of `queue` is kept with, in the main queue, if it is kept.
    pub fn kept_frequency(&self, queue: Queue, frequency: u8) -> Option<u8> {
        match queue {
            Queue::Small => (frequency >= self.threshold).then_some(0),
            Queue::Main => frequency.checked_sub(1),
        }
    }
}

/// Live bytes by the frequency of their records.
pub type BytesByFrequency = [u64; MAX_FREQUENCY as usize + 1];

/// Says of each record of a segment that is recycled whether it is kept: those of the highest
/// frequency first, and of one frequency the youngest.
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
    /// For a segment of `queue` with so many live bytes, of which `allowed_bytes` may be kept.
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

    /// The frequency that a live record is kept with; `None` if it is evicted. To be asked once of
    /// each, from the oldest to the youngest.
    ///
    /// Frequencies that have changed since they were added up do no harm: no more bytes are kept
    /// than are allowed.
    pub fn keep(&mut self, frequency: u8, bytes: u64) -> Option<u8> {
        let frequency = frequency.min(MAX_FREQUENCY);
        if frequency < self.lowest || bytes > self.allowed_bytes {
            return None;
        }
        if frequency == self.lowest && self.excess_bytes > 0 {
            self.excess_bytes = self.excess_bytes.saturating_sub(bytes);
            return None;
        }
        self.allowed_bytes -= bytes;
        self.rules.kept_frequency(self.queue, frequency)
    }
}

/// One or more consecutive segments, as far as room for a record that is longer than a segment
/// depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Segments: 1, unless one record has more.
    pub segments: u32,
    /// What is lost with them; nothing if they are free.
    pub live_bytes: u64,
    /// What can be done with them.
    pub state: StretchState,
}

/// What can be done with a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StretchState {
    /// It can be taken as it is.
    Free,
    /// It can be recycled.
    Sealed,
    /// It is open, or somebody reads in place what it holds.
    Held,
}

/// The stretch from which on `segments` consecutive segments cost the fewest live bytes, the first
/// of several; `None` if there is no such window. Whatever reaches into the window is lost as a
/// whole. [`RESERVED_SEGMENTS`] stay free. `file` has all stretches in their order.
///
/// No window needs to begin within a run: one that begins where the run does costs no more.
pub fn cheapest_window(file: &[Stretch], segments: u32) -> Option<usize> {
    let free_segments = |stretch: &Stretch| match stretch.state {
        StretchState::Free => stretch.segments,
        StretchState::Sealed | StretchState::Held => 0,
    };
    let all_free: u32 = file.iter().map(free_segments).sum();
    let mut cheapest: Option<(u64, usize)> = None;
    let (mut end, mut width, mut cost_bytes, mut free, mut held) = (0, 0, 0, 0, 0);
    for (first, leaving) in file.iter().enumerate() {
        while let Some(stretch) = file.get(end).filter(|_| width < segments) {
            end += 1;
            width += stretch.segments;
            cost_bytes += stretch.live_bytes;
            free += free_segments(stretch);
            held += u32::from(stretch.state == StretchState::Held);
        }
        if width < segments {
            break;
        }
        // What a run at the end has beyond the window becomes free.
        let stays_free = all_free - free + (width - segments);
        let is_cheaper = cheapest.is_none_or(|(cost, _)| cost_bytes < cost);
        if held == 0 && stays_free >= RESERVED_SEGMENTS && is_cheaper {
            cheapest = Some((cost_bytes, first));
        }
        width -= leaving.segments;
        cost_bytes -= leaving.live_bytes;
        free -= free_segments(leaving);
        held -= u32::from(leaving.state == StretchState::Held);
    }
    cheapest.map(|(_, first)| first)
}
