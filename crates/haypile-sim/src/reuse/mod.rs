//! Reuse distances: the accesses between two accesses of the same key.
//!
//! The stack distance of an access is the number (or the bytes) of *distinct other* keys since the
//! last access of its key. An LRU cache hits exactly if it holds that many others and the key, so
//! the distances of one pass give the miss ratio of every cache size: Mattson, Gecsei, Slutz,
//! Traiger: "Evaluation techniques for storage hierarchies" (IBM Systems Journal, 1970). The
//! counting with a tree over the time of last accesses is that of Olken: "Efficient methods for
//! calculating the success function of fixed-space replacement policies" (1981).
//!
//! A key that is removed leaves a *hole* in the stack: each cache that is large enough to have held
//! it has room for something else now. The next key that comes into such a cache takes the room of
//! the hole nearest to the top and pushes nothing out. If that key comes from below the hole, the
//! caches that had both the hole and the key keep as much free room as they had, so that the hole
//! is then where the key was. Until it is filled, a hole counts as a key.
//!
//! Time here is a position that is given at each access. Positions are renumbered when they run
//! out, which keeps memory proportional to the number of keys, whatever the length of the trace.

mod count;
mod fenwick;
mod weighted;

pub use count::StackDistances;
pub use weighted::WeightedStackDistances;

/// The last access of a key that had none.
const NEVER: u32 = u32::MAX;

/// Fewer positions than this are not worth a renumbering.
const MIN_POSITIONS: usize = 1 << 10;

/// Returns the number of positions for a number of keys. Renumbering costs about as much per
/// position as an access, and happens once per that many accesses as there are positions without a
/// key.
fn positions_for(keys: usize) -> usize {
    let positions = keys.saturating_mul(2).max(MIN_POSITIONS).next_multiple_of(MIN_POSITIONS);
    assert!(positions < NEVER as usize, "stack distances are limited to 2^31 - 1,024 keys");
    positions
}

/// Returns the entry of `id`, and creates it if it does not exist.
fn entry<T: Clone>(entries: &mut Vec<T>, id: u32, empty: T) -> &mut T {
    let id = id as usize;
    if id >= entries.len() {
        entries.resize(id + 1, empty);
    }
    &mut entries[id]
}
