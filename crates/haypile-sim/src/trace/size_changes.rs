//! Sizes that change from one request of a key to the next.

use zerocopy::little_endian::U32;

/// The mark of a key without an undecided request.
const NONE: u32 = u32::MAX;

/// The requests of a trace whose value has another size than at the previous request for the same key.
///
/// The size of a value is the last one that was logged. A shorter request that is followed by one of the
/// old size is a transfer that was broken off: it says nothing of the value.
#[derive(Debug, Default)]
pub(crate) struct SizeChanges {
    /// Whether any request of the trace has another size than the previous one for its key.
    pub(crate) is_any: bool,
    /// Numbers of the requests whose transfer was broken off, in ascending order, with the full size of the value in
    /// bytes.
    pub(crate) broken_off: Vec<(u32, u32)>,
}

/// The size of a key's value as far as it is known.
#[derive(Clone, Copy)]
struct KnownSize {
    is_known: bool,
    bytes: u32,
    /// The number of a shorter request, which the next one of the key decides about; or [`NONE`].
    undecided: u32,
}

impl SizeChanges {
    /// Finds the requests with a changed size in a trace with `keys` distinct keys.
    pub(super) fn of(ids: &[U32], sizes: &[U32], keys: u32) -> Self {
        let unknown = KnownSize { is_known: false, bytes: 0, undecided: NONE };
        let mut known = vec![unknown; keys as usize];
        let mut changes = Self::default();
        for ((request, id), size) in (0_u32..).zip(ids).zip(sizes) {
            let (own, bytes) = (&mut known[id.get() as usize], size.get());
            if !own.is_known {
                *own = KnownSize { is_known: true, bytes, undecided: NONE };
                continue;
            }
            let shorter = std::mem::replace(&mut own.undecided, NONE);
            if shorter != NONE {
                if bytes == own.bytes {
                    changes.broken_off.push((shorter, bytes));
                    continue;
                }
                own.bytes = sizes[shorter as usize].get();
            }
            changes.is_any |= bytes != own.bytes;
            if bytes < own.bytes {
                own.undecided = request;
            } else {
                own.bytes = bytes;
            }
        }
        changes.broken_off.sort_unstable();
        changes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The sizes that a cache would see, request by request.
    fn followed(requests: &[(u32, u32)]) -> Vec<u32> {
        let ids: Vec<U32> = requests.iter().map(|(id, _)| U32::new(*id)).collect();
        let sizes: Vec<U32> = requests.iter().map(|(_, size)| U32::new(*size)).collect();
        let keys = requests.iter().map(|(id, _)| id + 1).max().unwrap_or(0);
        let changes = SizeChanges::of(&ids, &sizes, keys);
        assert!(changes.broken_off.is_sorted());
        let mut all: Vec<u32> = requests.iter().map(|(_, size)| *size).collect();
        for (request, bytes) in changes.broken_off {
            assert!(all[request as usize] < bytes);
            all[request as usize] = bytes;
        }
        all
    }

    fn of_one_key(sizes: &[u32]) -> Vec<u32> {
        followed(&sizes.iter().map(|&size| (0, size)).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_broken_off_has_the_old_size() {
        assert_eq!(of_one_key(&[100, 40, 100]), [100, 100, 100]);
        assert_eq!(of_one_key(&[100, 40, 100, 30, 100]), [100; 5]);
        // A value that became shorter, or longer, and one that did so at the end of the log.
        assert_eq!(of_one_key(&[100, 40, 40, 100]), [100, 40, 40, 100]);
        assert_eq!(of_one_key(&[100, 150, 100]), [100, 150, 100]);
        assert_eq!(of_one_key(&[100, 40]), [100, 40]);
        // The second one is shorter than the first, which was therefore whole.
        assert_eq!(of_one_key(&[100, 40, 20, 40]), [100, 40, 40, 40]);
        // The first transfer of all has nothing before it.
        assert_eq!(of_one_key(&[40, 100, 100]), [40, 100, 100]);
        assert_eq!(of_one_key(&[0, 0, 5, 0, 5]), [0, 0, 5, 5, 5]);
    }

    /// By the definition: looks for the next request of the key each time.
    fn model(requests: &[(u32, u32)]) -> Vec<u32> {
        let mut full: std::collections::HashMap<u32, u32> = std::collections::HashMap::new();
        let mut all = Vec::new();
        for (at, (id, size)) in requests.iter().enumerate() {
            let next = requests[at + 1..].iter().find(|(other, _)| other == id);
            let is_broken_off = full
                .get(id)
                .is_some_and(|full| size < full && next.is_some_and(|(_, next)| next == full));
            if !is_broken_off {
                full.insert(*id, *size);
            }
            all.push(full[id]);
        }
        all
    }

    proptest! {
        #[test]
        fn sizes_are_those_of_the_definition(
            requests in prop::collection::vec((0_u32..4, 0_u32..5), 0..60),
        ) {
            prop_assert_eq!(followed(&requests), model(&requests));
        }

        #[test]
        fn sizes_that_stay_have_no_changes(keys in prop::collection::vec(0_u32..5, 0..40)) {
            let ids: Vec<U32> = keys.iter().map(|key| U32::new(*key)).collect();
            let sizes: Vec<U32> = keys.iter().map(|key| U32::new(7 + key)).collect();
            let changes = SizeChanges::of(&ids, &sizes, 5);
            prop_assert!(!changes.is_any && changes.broken_off.is_empty());
        }
    }
}
