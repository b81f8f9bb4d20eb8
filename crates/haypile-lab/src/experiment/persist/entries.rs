//! The entries of RelStorage's persistence tests.

/// The limit of RelStorage's cache file: entries are added while their keys and values stay below
/// this number of bytes.
pub const LIMIT_BYTES: u64 = 524_288_000;

/// The numbers of blobs and their sizes in bytes; entries take them in turn, again and again.
const BLOBS: [(usize, u32); 5] = [(800, 100), (500, 300), (300, 1_024), (200, 2_048), (150, 4_096)];

/// Returns the sizes in bytes of the values in RelStorage's persistence tests, one for each entry.
/// The key of entry `j` is str(j).
///
/// They are 650,987, of 524,287,388 bytes with their keys.
pub fn sizes() -> Vec<u32> {
    sizes_below(LIMIT_BYTES)
}

/// Returns the sizes in bytes of the first values of RelStorage's cache file whose keys and values
/// together stay below a limit in bytes.
pub fn sizes_below(limit_bytes: u64) -> Vec<u32> {
    let blobs = BLOBS.iter().flat_map(|&(count, bytes)| std::iter::repeat_n(bytes, count));
    let blobs: Vec<u32> = blobs.collect();
    let mut sizes = Vec::new();
    let mut total_bytes = 0;
    for (entry, &size) in (0..).zip(blobs.iter().cycle()) {
        total_bytes += key_bytes(entry) + u64::from(size);
        if total_bytes > limit_bytes {
            break;
        }
        sizes.push(size);
    }
    sizes
}

/// Returns the total bytes of the keys and values of RelStorage's entries whose values have these
/// sizes.
pub fn total_bytes(sizes: &[u32]) -> u64 {
    (0..).zip(sizes).map(|(entry, &size)| key_bytes(entry) + u64::from(size)).sum()
}

/// Bytes of str(entry).
fn key_bytes(entry: u64) -> u64 {
    u64::from(entry.checked_ilog10().unwrap_or(0)) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entries_are_those_of_the_definition() {
        let sizes = sizes();
        assert_eq!(sizes.len(), 650_987);
        assert_eq!(total_bytes(&sizes), 524_287_388);
    }

    #[test]
    fn sizes_take_the_blobs_in_turn() {
        let sizes = sizes();
        assert_eq!((sizes[799], sizes[800], sizes[1_949], sizes[1_950]), (100, 300, 4_096, 100));
        assert_eq!(sizes[1_950..2 * 1_950], sizes[..1_950]);
    }

    #[test]
    fn a_smaller_limit_ends_earlier() {
        assert!(sizes_below(100).is_empty());
        assert_eq!(sizes_below(303), [100, 100, 100]);
    }
}
