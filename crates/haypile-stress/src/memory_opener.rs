//! The scheme `memory` with a hash seed that the run chooses.
//!
//! A memory store draws its hash seed, and with it the shard and the fate of each key, so a failure
//! that depends on an eviction would not repeat. No URL can choose the seed.

use std::sync::Arc;

use haypile::memory::MemoryBuilder;
use haypile::url::{ResolvedLevel, Scheme};
use haypile::{Clock, OpenError, Opener, Registry, Store};

/// An opener of `memory` stores that all use one hash seed, so that runs can be repeated.
#[derive(Debug)]
pub(crate) struct SeededMemory {
    scheme: &'static Scheme,
    hash_seed: u64,
}

impl SeededMemory {
    /// Replaces the opener of `memory` in a registry by one with this hash seed.
    pub(crate) fn register(registry: &mut Registry, hash_seed: u64) {
        let scheme = registry.schemes().find(|scheme| scheme.name == "memory");
        let scheme = scheme.expect("every registry has it");
        registry.register(Arc::new(Self { scheme, hash_seed }));
    }
}

impl Opener for SeededMemory {
    fn scheme(&self) -> &'static Scheme {
        self.scheme
    }

    fn open(
        &self,
        level: &ResolvedLevel,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Store>, OpenError> {
        MemoryBuilder::of_level(level, clock).hash_seed(self.hash_seed).store()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_every_option_that_the_engine_knows() {
        let registry = Registry::new();
        let scheme = registry.schemes().find(|scheme| scheme.name == "memory").unwrap();
        // The registry itself applies the last five.
        let known = [
            "size",
            "policy",
            "shards",
            "ttl",
            "namespace",
            "compute_wait",
            "persist",
            "persist_max",
            "persist_age",
            "persist_load",
            "allow_shared",
            "record",
            "record_max",
            "record_keys",
            "compress",
            "compress_min",
        ];
        let names: Vec<&str> = scheme.options.iter().map(|option| option.name).collect();
        assert_eq!(
            names, known,
            "a new option of memory: has to be read by MemoryBuilder::of_level"
        );
    }

    #[test]
    fn it_opens_what_the_engine_opens() {
        let mut registry = Registry::new();
        let url = "memory:size=1MiB,policy=lru,shards=2,ttl=1m,compute_wait=2s";
        let usual = registry.open(url).unwrap().describe();
        SeededMemory::register(&mut registry, 7);
        assert_eq!(registry.open(url).unwrap().describe(), usual);
        assert_eq!(
            registry.open("memory:").unwrap().describe(),
            "memory://?size=64MiB&policy=s3fifo"
        );
    }
}
