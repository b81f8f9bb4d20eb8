//! Making a memory store, by hand or from its URL.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::contents::Contents;
use super::{Fingerprint, MemoryStore};
use crate::clock::{Clock, SystemClock};
use crate::policy::ghost::ByFingerprint;
use crate::policy::{Policy, PolicySpec, PolicyVisitor};
use crate::registry::{OpenError, Opener, Registry};
use crate::size::ByteSize;
use crate::store::Store;
use crate::url::{Level, OptionSpec, Place, Scheme, ValueKind};

/// The smallest size of a memory store, in bytes.
pub const MIN_SIZE_BYTES: u64 = 1 << 10;

/// The largest size of a memory store, in bytes. Slots are numbered by 32 bits.
pub const MAX_SIZE_BYTES: u64 = 256 << 30;

const DEFAULT_SIZE_BYTES: u64 = 64 << 20;

static SCHEME: Scheme = Scheme {
    name: "memory",
    place: Place::Nowhere,
    options: &[
        OptionSpec {
            name: "size",
            kind: ValueKind::Size { min_bytes: MIN_SIZE_BYTES, max_bytes: MAX_SIZE_BYTES },
            help: "the bound on keys, values and metadata; 64MiB by default",
        },
        OptionSpec {
            name: "policy",
            kind: ValueKind::Policy,
            help: "what leaves when room is needed; s3fifo by default",
        },
        OptionSpec::TTL,
        // A memory store belongs to who opened it: nobody else's entries are in it, so that its
        // name is all there is to a namespace.
        OptionSpec::NAMESPACE,
        OptionSpec::RECORD,
        OptionSpec::RECORD_MAX,
        OptionSpec::RECORD_KEYS,
        OptionSpec::COMPRESS,
    ],
    help: "in the process, bounded in bytes",
};

/// Makes a memory store with what a URL cannot say: a clock, a fingerprint, a policy of one's own.
///
/// ```
/// use haypile::memory::MemoryBuilder;
///
/// let store = MemoryBuilder::new(1 << 20).policy("lru".parse().unwrap()).open().unwrap();
/// assert_eq!(store.describe(), "memory://?size=1MiB&policy=lru");
/// ```
#[derive(Clone)]
pub struct MemoryBuilder {
    size_bytes: u64,
    policy: PolicySpec,
    ttl: Option<Duration>,
    namespace: Option<String>,
    clock: Arc<dyn Clock>,
    fingerprint: Option<Arc<Fingerprint>>,
}

impl MemoryBuilder {
    /// A store bounded by `size_bytes`, with the default policy and the system's clock.
    pub fn new(size_bytes: u64) -> Self {
        Self {
            size_bytes,
            policy: PolicySpec::default(),
            ttl: None,
            namespace: None,
            clock: Arc::new(SystemClock::new()),
            fingerprint: None,
        }
    }

    /// What leaves when room is needed.
    #[must_use]
    pub fn policy(self, policy: PolicySpec) -> Self {
        Self { policy, ..self }
    }

    /// How long entries live that are written without a TTL of their own; `None` for ever. Zero is
    /// refused when the store is opened.
    #[must_use]
    pub fn ttl(self, ttl: Option<Duration>) -> Self {
        Self { ttl, ..self }
    }

    /// Where the time comes from.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// How keys are hashed. By default it is XXH3 with a seed of the store's own, so that nobody
    /// can foresee which keys collide. Another function makes a store repeat what a simulation
    /// did.
    #[must_use]
    pub fn fingerprint(self, fingerprint: impl Fn(&[u8]) -> u64 + Send + Sync + 'static) -> Self {
        Self { fingerprint: Some(Arc::new(fingerprint)), ..self }
    }

    /// Makes the store.
    ///
    /// # Errors
    ///
    /// [`OpenError::SizeOutOfRange`]; [`OpenError::ZeroTtl`]; [`OpenError::ExceedsBound`] for a
    /// policy that only the simulator runs.
    pub fn open(self) -> Result<Arc<dyn Store>, OpenError> {
        let policy = self.policy.clone();
        policy.build::<ByFingerprint, _>(self.size_bytes, true, Opening { builder: self })
    }

    /// Makes the store with a policy of one's own, built for `size_bytes`; `name` stands for it in
    /// the URL.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn open_with<P: Policy + 'static>(
        self,
        policy: P,
        name: &str,
    ) -> Result<Arc<dyn Store>, OpenError> {
        if !(MIN_SIZE_BYTES..=MAX_SIZE_BYTES).contains(&self.size_bytes) {
            return Err(OpenError::SizeOutOfRange {
                size_bytes: self.size_bytes,
                min_bytes: MIN_SIZE_BYTES,
                max_bytes: MAX_SIZE_BYTES,
            });
        }
        if self.ttl.is_some_and(|ttl| ttl.is_zero()) {
            return Err(OpenError::ZeroTtl);
        }
        if P::EXCEEDS_BOUND {
            return Err(OpenError::ExceedsBound { policy: name.to_owned() });
        }
        let url = self.url(name)?;
        Ok(Arc::new(MemoryStore {
            contents: Mutex::new(Contents::new(policy, self.size_bytes)),
            fingerprint: self.fingerprint.unwrap_or_else(seeded),
            clock: self.clock,
            capacity_bytes: self.size_bytes,
            ttl: self.ttl,
            url,
        }))
    }

    fn url(&self, policy: &str) -> Result<String, OpenError> {
        let mut level = Level::new(SCHEME.name)?
            .with_option("size", ByteSize(self.size_bytes).to_string())?
            .with_option("policy", policy.replace(',', ":"))?;
        if let Some(ttl) = self.ttl {
            let ttl = humantime::format_duration(ttl).to_string();
            level = level.with_option("ttl", ttl.replace(' ', ""))?;
        }
        if let Some(namespace) = &self.namespace {
            level = level.with_option("namespace", namespace)?;
        }
        Ok(level.to_string())
    }
}

/// Hands the policy that was named, as its own type, back to the builder.
struct Opening {
    builder: MemoryBuilder,
}

impl PolicyVisitor for Opening {
    type Output = Result<Arc<dyn Store>, OpenError>;

    fn visit<P: Policy + 'static>(self, policy: P) -> Self::Output {
        let name = self.builder.policy.to_string();
        self.builder.open_with(policy, &name)
    }
}

fn seeded() -> Arc<Fingerprint> {
    let seed = RandomState::new().build_hasher().finish();
    Arc::new(move |key: &[u8]| xxh3_64_with_seed(key, seed))
}

#[derive(Debug)]
pub(crate) struct MemoryOpener;

impl Opener for MemoryOpener {
    fn scheme(&self) -> &'static Scheme {
        &SCHEME
    }

    fn open(&self, level: &Level, registry: &Registry) -> Result<Arc<dyn Store>, OpenError> {
        let size_bytes = level.size_option("size")?.unwrap_or(DEFAULT_SIZE_BYTES);
        let builder = MemoryBuilder {
            policy: level.policy_option("policy")?.unwrap_or_default(),
            ttl: level.duration_option("ttl")?,
            namespace: level.option("namespace").map(str::to_owned),
            ..MemoryBuilder::new(size_bytes).clock(registry.clock())
        };
        builder.open()
    }
}
