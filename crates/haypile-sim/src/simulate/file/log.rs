//! A file of segments: the place of each record, and whether it is live.

use haypile_policy::rules::file::{Queue, Sealed};

use super::window::{Stretch, StretchState};

/// The position of a record in the simulated file store: its segment, and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogPlace {
    /// Number of the segment that contains the record, or of its first one if the record has several.
    pub(super) segment: u32,
    /// The position among the records that were appended to it.
    position: u32,
}

impl LogPlace {
    /// A special value for the position of a key that has no record.
    pub(super) const NONE: Self = Self { segment: u32::MAX, position: 0 };
}

/// Stands for a dead record: its key may have another record.
const DEAD: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentState {
    Free,
    Open,
    Sealed,
    /// A segment of a run other than its first.
    Tail,
}

#[derive(Clone, Debug)]
struct Segment {
    state: SegmentState,
    queue: Queue,
    opened: u64,
    /// Number of segments of the run that begins here; 1 for an ordinary segment.
    segments: u32,
    used_bytes: u64,
    live_bytes: u64,
    live: u32,
    /// Keys of the records, from the oldest record to the youngest.
    records: Vec<u32>,
}

impl Segment {
    const FREE: Self = Self {
        state: SegmentState::Free,
        queue: Queue::Small,
        opened: 0,
        segments: 1,
        used_bytes: 0,
        live_bytes: 0,
        live: 0,
        records: Vec::new(),
    };
}

/// The segments of a simulated file store, with their records and the queues to which they belong.
#[derive(Debug)]
pub(super) struct Log {
    segments: Vec<Segment>,
    segment_bytes: u64,
    free: u32,
    /// Number of segments opened so far.
    opened: u64,
    small: Option<u32>,
    main: Option<u32>,
}

impl Log {
    /// Creates the segments of an empty simulated file store: `segments` free ones of equal size.
    pub(super) fn new(segments: u32, segment_bytes: u64) -> Self {
        Self {
            segments: vec![Segment::FREE; segments as usize],
            segment_bytes,
            free: segments,
            opened: 0,
            small: None,
            main: None,
        }
    }

    fn get(&self, segment: u32) -> &Segment {
        &self.segments[segment as usize]
    }

    fn get_mut(&mut self, segment: u32) -> &mut Segment {
        &mut self.segments[segment as usize]
    }

    fn numbered(&self) -> impl Iterator<Item = (u32, &Segment)> {
        (0..).zip(&self.segments)
    }

    fn open_slot(&mut self, queue: Queue) -> &mut Option<u32> {
        match queue {
            Queue::Small => &mut self.small,
            Queue::Main => &mut self.main,
        }
    }

    /// Returns the number of free segments in the simulated file.
    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// Returns the queue (small or main) of a segment that is not free.
    pub(super) fn queue(&self, segment: u32) -> Queue {
        self.get(segment).queue
    }

    /// Whether a record that is longer than a segment begins in this segment.
    pub(super) fn is_run(&self, segment: u32) -> bool {
        self.get(segment).segments > 1
    }

    /// Returns the open segment of a queue, if `bytes` more bytes fit into it; otherwise `None`.
    pub(super) fn open_with_room(&self, queue: Queue, bytes: u64) -> Option<u32> {
        let open = match queue {
            Queue::Small => self.small,
            Queue::Main => self.main,
        };
        open.filter(|open| bytes <= self.segment_bytes - self.get(*open).used_bytes)
    }

    /// Seals the open segment of a queue, if there is one, so that nothing more is appended to it.
    pub(super) fn seal(&mut self, queue: Queue) {
        if let Some(open) = self.open_slot(queue).take() {
            self.get_mut(open).state = SegmentState::Sealed;
        }
    }

    /// Opens a free segment for a queue that has none open; returns `None` if no segment is free.
    pub(super) fn open(&mut self, queue: Queue) -> Option<u32> {
        let (free, _) = self.numbered().find(|(_, segment)| segment.state == SegmentState::Free)?;
        self.begin(free, queue, SegmentState::Open);
        *self.open_slot(queue) = Some(free);
        Some(free)
    }

    fn begin(&mut self, segment: u32, queue: Queue, state: SegmentState) {
        self.free -= 1;
        self.opened += 1;
        let opened = self.opened;
        let begun = self.get_mut(segment);
        (begun.state, begun.queue, begun.opened) = (state, queue, opened);
    }

    /// Takes consecutive free segments from `first` on for one record that is longer than a segment, and seals them.
    pub(super) fn begin_run(&mut self, first: u32, segments: u32, queue: Queue) {
        self.begin(first, queue, SegmentState::Sealed);
        self.get_mut(first).segments = segments;
        for tail in first + 1..first + segments {
            self.begin(tail, queue, SegmentState::Tail);
        }
    }

    /// Makes a record that is longer than a segment the youngest of the main queue, without moving it.
    pub(super) fn renew_run(&mut self, first: u32) {
        self.opened += 1;
        let opened = self.opened;
        let run = self.get_mut(first);
        (run.queue, run.opened) = (Queue::Main, opened);
    }

    /// Appends a record of the key `id` to a segment, which has room for it; returns the position of the record.
    pub(super) fn append(&mut self, segment: u32, id: u32, bytes: u64) -> LogPlace {
        let to = self.get_mut(segment);
        let position = u32::try_from(to.records.len()).expect("fewer records than requests");
        to.records.push(id);
        to.used_bytes += bytes;
        to.live_bytes += bytes;
        to.live += 1;
        LogPlace { segment, position }
    }

    /// Marks the record at a position of a segment as dead.
    pub(super) fn kill(&mut self, place: LogPlace, bytes: u64) {
        let segment = self.get_mut(place.segment);
        segment.live_bytes -= bytes;
        segment.live -= 1;
        segment.records[place.position as usize] = DEAD;
    }

    /// Returns the keys of a segment's live records, from the oldest to the youngest.
    pub(super) fn live(&self, segment: u32) -> impl Iterator<Item = u32> {
        self.get(segment).records.iter().copied().filter(|id| *id != DEAD)
    }

    /// Frees a sealed segment, or all segments of a record that is longer than a segment; its live records have been
    /// moved or evicted.
    pub(super) fn release(&mut self, segment: u32) {
        let segments = self.get(segment).segments;
        for each in segment..segment + segments {
            let records = std::mem::take(&mut self.get_mut(each).records);
            *self.get_mut(each) = Segment { records, ..Segment::FREE };
            self.get_mut(each).records.clear();
        }
        self.free += segments;
    }

    /// Returns the sealed segments with their queue and age; those of a record that is longer than a segment count as
    /// one.
    pub(super) fn sealed(&self) -> impl Iterator<Item = (u32, Sealed)> {
        let sealed = self.numbered().filter(|(_, segment)| segment.state == SegmentState::Sealed);
        sealed.map(|(number, &Segment { queue, opened, live, .. })| {
            (number, Sealed { queue, opened, is_dead: live == 0 })
        })
    }

    /// Returns the number of segments in the small queue, including the open segment.
    pub(super) fn small_segments(&self) -> u32 {
        let is_small = |segment: &&Segment| {
            matches!(segment.state, SegmentState::Open | SegmentState::Sealed)
                && segment.queue == Queue::Small
        };
        self.segments.iter().filter(is_small).map(|segment| segment.segments).sum()
    }

    /// Returns the segments of a queue from the oldest to the youngest.
    pub(super) fn in_order(&self, queue: Queue) -> Vec<u32> {
        let is_of_queue = |(_, segment): &(u32, &Segment)| {
            !matches!(segment.state, SegmentState::Free | SegmentState::Tail)
                && segment.queue == queue
        };
        let mut numbers: Vec<u32> =
            self.numbered().filter(is_of_queue).map(|(number, _)| number).collect();
        numbers.sort_by_key(|number| self.get(*number).opened);
        numbers
    }

    /// Returns all segments in the order of the file, as stretches; the segments of a record that is longer than one
    /// are a single stretch, with the number of the first.
    pub(super) fn stretches(&self) -> (Vec<u32>, Vec<Stretch>) {
        let heads = self.numbered().filter(|(_, segment)| segment.state != SegmentState::Tail);
        let stretch = |(number, segment): (u32, &Segment)| {
            let state = match segment.state {
                SegmentState::Free => StretchState::Free,
                SegmentState::Sealed => StretchState::Sealed,
                SegmentState::Open | SegmentState::Tail => StretchState::Open,
            };
            let Segment { segments, live_bytes, .. } = *segment;
            (number, Stretch { segments, live_bytes, state })
        };
        heads.map(stretch).unzip()
    }

    /// Returns the sum of the bytes of live records in all segments.
    pub(super) fn live_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.live_bytes).sum()
    }

    /// Returns the number of live records in all segments.
    pub(super) fn live_records(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.live)).sum()
    }

    /// Returns the number of bytes of memory that the simulated segments use.
    pub(super) fn memory_bytes(&self) -> usize {
        let records = self.segments.iter().map(|segment| segment.records.capacity());
        self.segments.capacity() * size_of::<Segment>() + records.sum::<usize>() * size_of::<u32>()
    }
}
