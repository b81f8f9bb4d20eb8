//! Where the regions of a file are, from its header: as `docs/format-file.md` has them, and not as the code has.

use std::ops::Range;

const HEADER_BYTES: usize = 4096;
const OWNER_SLOT_BYTES: usize = 384;
const LINE_BYTES: usize = 64;
const CLEARINGS: usize = 256;
const LIVE_TABLES: usize = 8;

/// Regions of a file, by their bytes.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) lanes: Range<usize>,
    pub(crate) removals: Range<usize>,
    /// Words of groups.
    pub(crate) groups: Range<usize>,
    pub(crate) overflows: Range<usize>,
    /// The segment table.
    pub(crate) table: Range<usize>,
    /// All tables of live counts.
    pub(crate) live: Range<usize>,
    /// Where the first segment begins: everything before is words that something depends on.
    pub(crate) segments_at: usize,
    pub(crate) segment_bytes: usize,
}

impl Places {
    /// Reads the header at the beginning of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let number =
            |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")) as usize;
        let after = |start: usize, bytes: usize| start..start + bytes;
        let of_lines = |start: usize, number: usize| after(start, number * LINE_BYTES);
        let lanes = of_lines(HEADER_BYTES + number(48) * OWNER_SLOT_BYTES, number(88));
        let claims = of_lines(lanes.end, number(52));
        let removals = of_lines(claims.end, number(92));
        let clearings = after(removals.end, CLEARINGS * 8);
        let groups = after(clearings.end, number(96) * 8);
        let index = of_lines(groups.end, number(56));
        let overflows = of_lines(index.end, number(60));
        let ghosts = of_lines(overflows.end, number(64));
        let segments = number(68);
        let table = of_lines(ghosts.end, segments);
        let words = (segments * 8).next_multiple_of(LINE_BYTES);
        let live = after(table.end, LIVE_TABLES * words);
        let pins = after(live.end, words);
        Self {
            segments_at: pins.end.next_multiple_of(4096),
            segment_bytes: 1 << number(72),
            lanes,
            removals,
            groups,
            overflows,
            table,
            live,
        }
    }
}
