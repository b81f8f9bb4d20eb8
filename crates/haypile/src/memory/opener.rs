//! The scheme `memory` and its options.

use std::sync::Arc;

use haypile_policy::rules::memory::{MAX_SHARDS, MAX_SIZE_BYTES, MIN_SIZE_BYTES};

use super::builder::MemoryBuilder;
use super::persist::PersistOptions;
use crate::clock::Clock;
use crate::open::{OpenError, Opener};
use crate::store::{DEFAULT_COMPUTE_WAIT, Store};
use crate::url::{OptionSpec, Place, ResolvedLevel, Scheme, ValueKind};

const DEFAULT_SIZE_BYTES: u64 = 64 << 20;

pub(super) static SCHEME: Scheme = Scheme {
    name: "memory",
    place: Place::Nowhere,
    idle: &[],
    options: &[
        OptionSpec {
            name: "size",
            kind: ValueKind::Size { min_bytes: MIN_SIZE_BYTES, max_bytes: MAX_SIZE_BYTES },
            help: "the bound on keys, values and metadata; 64MiB by default",
        },
        OptionSpec {
            name: "policy",
            kind: ValueKind::Policy,
            help: "the policy that chooses what is evicted; s3fifo by default",
        },
        OptionSpec {
            name: "shards",
            kind: ValueKind::Count { min: 1, max: MAX_SHARDS as u64 },
            help: "number of locks over which keys are spread, a power of two; by default eight per \
                   processor, of at least 2MiB each",
        },
        OptionSpec::TTL,
        // A memory store belongs to the process that opened it: nobody else's entries are in
        // it, so that the namespace is only a part of its name.
        OptionSpec::NAMESPACE,
        OptionSpec::COMPUTE_WAIT,
        OptionSpec {
            name: "persist",
            kind: ValueKind::Path,
            help: "file from which the entries are loaded at the start, and to which they are \
                   saved at the end",
        },
        OptionSpec {
            name: "persist_max",
            kind: ValueKind::Size { min_bytes: MIN_SIZE_BYTES, max_bytes: u64::MAX },
            help: "the bound on that file, which keeps the most used entries; all by default",
        },
        OptionSpec {
            name: "persist_age",
            kind: ValueKind::Duration,
            help: "age above which entries are not saved; all are saved by default",
        },
        OptionSpec {
            name: "persist_load",
            kind: ValueKind::Choice(&["wait", "background"]),
            help: "whether opening waits until all is loaded, or the cache serves in the \
                   meantime; wait by default",
        },
        OptionSpec::ALLOW_SHARED,
        OptionSpec::RECORD,
        OptionSpec::RECORD_MAX,
        OptionSpec::RECORD_KEYS,
        OptionSpec::COMPRESS,
        OptionSpec::COMPRESS_MIN,
    ],
    help: "in the process, bounded in bytes",
};

#[derive(Debug)]
pub(crate) struct MemoryOpener;

impl Opener for MemoryOpener {
    fn scheme(&self) -> &'static Scheme {
        &SCHEME
    }

    fn open(
        &self,
        level: &ResolvedLevel,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Store>, OpenError> {
        MemoryBuilder::of_level(level, clock).store()
    }
}

impl MemoryBuilder {
    /// Returns a builder of the store that a level of a `memory` URL names: for openers that set
    /// options that a URL cannot express, such as the seed of the hash of keys.
    #[doc(hidden)]
    pub fn of_level(level: &ResolvedLevel, clock: Arc<dyn Clock>) -> Self {
        let shards = level
            .count("shards")
            .map(|shards| usize::try_from(shards).expect("the option's range is checked"));
        let persist = level.text("persist").map(|path| {
            PersistOptions::new(path)
                .max_bytes(level.size("persist_max"))
                .max_age(level.duration("persist_age"))
                .in_background(level.choice("persist_load") == Some("background"))
                .allow_shared(level.is_yes("allow_shared"))
        });
        Self::new(level.size("size").unwrap_or(DEFAULT_SIZE_BYTES))
            .persist(persist)
            .shards(shards)
            .policy(level.policy("policy").cloned().unwrap_or_default())
            .ttl(level.duration("ttl"))
            .compute_wait(level.duration("compute_wait").unwrap_or(DEFAULT_COMPUTE_WAIT))
            .namespace(level.text("namespace").map(str::to_owned))
            .clock(clock)
    }
}
