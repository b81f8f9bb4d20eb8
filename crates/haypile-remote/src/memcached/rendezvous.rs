//! The choice of the server that a key belongs to.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The assignment of keys to memcached servers by rendezvous hashing: a key belongs to the server with the highest hash
/// of name and key. The names of the servers decide, not their order. (Thaler and Ravishankar, "Using Name-Based
/// Mappings to Increase Hit Rates", 1998.)
#[derive(Debug)]
pub(super) struct Rendezvous {
    seeds: Vec<u64>,
}

impl Rendezvous {
    /// Creates the assignment of keys to memcached servers with these names.
    pub(super) fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        Self { seeds: names.into_iter().map(|name| xxh3_64(name.as_bytes())).collect() }
    }

    /// Returns the number of the memcached server to which a key belongs.
    pub(super) fn server_of(&self, key: &[u8]) -> usize {
        if self.seeds.len() == 1 {
            return 0;
        }
        let score = |number: &usize| xxh3_64_with_seed(key, self.seeds[*number]);
        (0..self.seeds.len()).max_by_key(score).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_less_moves_only_its_own_keys() {
        let names = ["a:1", "b:1", "c:1", "d:1"];
        let (all, fewer) =
            (Rendezvous::new(names), Rendezvous::new([names[0], names[2], names[3]]));
        let mut keys = [0; 4];
        for key in 0..8_000_u32 {
            let key = key.to_le_bytes();
            let server = all.server_of(&key);
            keys[server] += 1;
            if server != 1 {
                assert_eq!([0, 2, 3][fewer.server_of(&key)], server);
            }
        }
        assert!(keys.iter().all(|keys| (1_800..2_200).contains(keys)), "{keys:?}");
    }

    #[test]
    fn the_order_of_the_servers_means_nothing() {
        let (names, turned) = (["a", "b", "c"], ["c", "a", "b"]);
        let (rendezvous, other) = (Rendezvous::new(names), Rendezvous::new(turned));
        for key in 0..100_u32 {
            let key = key.to_le_bytes();
            assert_eq!(names[rendezvous.server_of(&key)], turned[other.server_of(&key)]);
        }
    }

    #[test]
    fn it_stays_the_same_for_ever() {
        let rendezvous = Rendezvous::new(["10.0.0.1:11211", "10.0.0.2:11211", "10.0.0.3:11211"]);
        let servers: Vec<_> = (0..12_u8).map(|key| rendezvous.server_of(&[key])).collect();
        assert_eq!(servers, [2, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1, 2]);
    }
}
