//! [`MemoryBuilder`], which opens memory stores.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use haypile_policy::ghost::ByFingerprint;
use haypile_policy::rules::memory::{self as rules, MAX_SHARDS, MAX_SIZE_BYTES, MIN_SIZE_BYTES};
use haypile_policy::{Policy, PolicySpec, PolicyVisitor};

use super::cache::MemoryCache;
use super::contents::{Contents, Options};
use super::lock::{BiasedLock, ReaderLine};
use super::opener::SCHEME;
use super::persist::{PersistOptions, Persistence};
use super::pool::Pool;
use super::shortage::Reserve;
use super::{Fingerprint, MemoryStore, Shard};
use crate::cache::Cache;
use crate::clock::{Clock, SystemClock, nanos};
use crate::groups::Words;
use crate::open::OpenError;
use crate::size::ByteSize;
use crate::store::{DEFAULT_COMPUTE_WAIT, Store};
use crate::sync::Mutex;
use crate::sync::atomic::AtomicU64;
use crate::url::{CacheUrl, Level};

/// A builder that opens a memory store with parts that a URL cannot express: a clock, a
/// fingerprint, a custom policy.
///
/// ```
/// use haypile::memory::MemoryBuilder;
///
/// let cache = MemoryBuilder::new(1 << 20).policy("lru".parse().unwrap()).open().unwrap();
/// assert_eq!(cache.store().describe(), "memory://?size=1MiB&policy=lru");
/// ```
#[derive(Clone)]
pub struct MemoryBuilder {
    size_bytes: u64,
    shards: Option<usize>,
    policy: PolicySpec,
    ttl: Option<Duration>,
    compute_wait: Duration,
    namespace: Option<String>,
    clock: Arc<dyn Clock>,
    fingerprint: Option<Arc<Fingerprint>>,
    persist: Option<PersistOptions>,
}

impl MemoryBuilder {
    /// Returns the builder of a store bounded by `size_bytes`, with the default policy and the
    /// system's clock.
    pub fn new(size_bytes: u64) -> Self {
        Self {
            size_bytes,
            shards: None,
            policy: PolicySpec::default(),
            ttl: None,
            compute_wait: DEFAULT_COMPUTE_WAIT,
            namespace: None,
            clock: Arc::new(SystemClock::new()),
            fingerprint: None,
            persist: None,
        }
    }

    /// Sets the number of shards (parts with a lock each) of the memory store: a power of two up to
    /// [`MAX_SHARDS`]. `None` chooses up to eight per processor, of at least 2 MiB each.
    #[must_use]
    pub fn shards(self, shards: impl Into<Option<usize>>) -> Self {
        Self { shards: shards.into(), ..self }
    }

    /// Sets the eviction policy of the memory store.
    #[must_use]
    pub fn policy(self, policy: PolicySpec) -> Self {
        Self { policy, ..self }
    }

    /// Sets the default time to live (TTL) of entries, for writes that state none; `None` means
    /// forever. Opening the store refuses zero.
    #[must_use]
    pub fn ttl(self, ttl: Option<Duration>) -> Self {
        Self { ttl, ..self }
    }

    /// Sets the time that a caller waits for another that computes the same value: see
    /// [`Store::compute_wait`].
    #[must_use]
    pub fn compute_wait(self, compute_wait: Duration) -> Self {
        Self { compute_wait, ..self }
    }

    /// Sets the namespace that the store's URL and statistics name. A memory store belongs to the
    /// process that opened it, so the namespace does not separate entries.
    #[must_use]
    pub fn namespace(self, namespace: Option<String>) -> Self {
        Self { namespace, ..self }
    }

    /// Sets the clock that decides when entries of the cache expire.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Sets the hash function of keys. The default is XXH3 with a random seed of each store, so
    /// that nobody can predict which keys collide. Another function lets a store repeat a
    /// simulation.
    #[must_use]
    pub fn fingerprint(self, fingerprint: impl Fn(&[u8]) -> u64 + Send + Sync + 'static) -> Self {
        Self { fingerprint: Some(Arc::new(fingerprint)), ..self }
    }

    /// Sets the seed of the default hash function, which is otherwise random. Two stores with the same seed decide
    /// alike, and like a simulation with `haypile_policy::rules::memory::fingerprint` of that seed. Whoever knows the
    /// seed can choose keys that collide.
    #[must_use]
    pub fn hash_seed(self, seed: u64) -> Self {
        self.fingerprint(move |key| rules::fingerprint(key, seed))
    }

    /// Sets the snapshot file that keeps the store's entries until the next process opens it;
    /// `None` means none.
    #[must_use]
    pub fn persist(self, persist: impl Into<Option<PersistOptions>>) -> Self {
        Self { persist: persist.into(), ..self }
    }

    /// Opens the memory cache.
    ///
    /// # Errors
    ///
    /// [`OpenError::SizeOutOfRange`]; [`OpenError::BadShards`]; [`OpenError::ZeroTtl`];
    /// [`OpenError::ExceedsBound`] and [`OpenError::FileStoreOnly`] for a policy that only the
    /// simulator runs; [`OpenError::Backend`] for a snapshot that could not be written later. One
    /// that cannot be read is not an error: the store is then empty and [warns](Store::warnings).
    pub fn open(self) -> Result<MemoryCache, OpenError> {
        Ok(MemoryCache::new(Cache::new(self.store()?)))
    }

    /// Opens the memory cache as a store, without the [`Cache`] around it: to be one level of a
    /// cache, or to be wrapped in a layer.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn store(self) -> Result<Arc<dyn Store>, OpenError> {
        self.check()?;
        let policy = self.policy.clone();
        let opened = policy.build::<ByFingerprint, _>(true, Opening { builder: self });
        opened.unwrap_or_else(|| Err(OpenError::FileStoreOnly { policy: policy.to_string() }))
    }

    /// Opens a memory cache with a custom eviction policy. `make` creates the policy for a number
    /// of bytes, once for each shard; `name` stands for it in the URL.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn open_with<P: Policy + 'static>(
        self,
        make: impl Fn(u64) -> P,
        name: &str,
    ) -> Result<MemoryCache, OpenError> {
        self.check()?;
        Ok(MemoryCache::new(Cache::new(self.start(make, name)?)))
    }

    /// Refuses a size or a TTL that no store has, whatever its policy.
    fn check(&self) -> Result<(), OpenError> {
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
        Ok(())
    }

    fn start<P: Policy + 'static>(
        self,
        make: impl Fn(u64) -> P,
        name: &str,
    ) -> Result<Arc<dyn Store>, OpenError> {
        Ok(Arc::new(self.build(make, name)?).start_loading())
    }

    fn build<P: Policy>(
        self,
        make: impl Fn(u64) -> P,
        policy: &str,
    ) -> Result<MemoryStore<P>, OpenError> {
        if P::EXCEEDS_BOUND {
            return Err(OpenError::ExceedsBound { policy: policy.to_owned() });
        }
        let shards = self.count_shards()?;
        let name = self.name(policy)?;
        let kept = self.persist.map(Persistence::new).transpose();
        let persistence = kept.map_err(|source| OpenError::Backend {
            url: name.url(self.size_bytes).to_string(),
            source: source.into(),
        })?;
        let wall_ns = self.clock.wall().duration_since(SystemTime::UNIX_EPOCH).map_or(0, nanos);
        let options = Options {
            is_alone: shards == 1,
            notes_time_from_s: persistence.as_ref().filter(|kept| kept.needs_age()).map(|_| {
                Duration::from_nanos(wall_ns.saturating_sub(self.clock.now_ns())).as_secs()
            }),
            // Not from zero: a version of an earlier process must not match one of this store.
            version: wall_ns,
        };
        let share = self.size_bytes / shards as u64;
        let lines = ReaderLine::for_store();
        let groups = Arc::new(Words::for_bytes(self.size_bytes));
        let empty = |number| {
            let contents = Contents::new(make(share), share, options, Arc::clone(&groups));
            Shard(BiasedLock::new(contents, number, Arc::clone(&lines)))
        };
        let numbers = 0..u32::try_from(shards).expect("at most MAX_SHARDS");
        Ok(MemoryStore {
            shards: numbers.map(empty).collect(),
            lines,
            pool: Pool::new(self.size_bytes),
            reclaiming: Mutex::new(()),
            capacity_bytes: AtomicU64::new(self.size_bytes),
            hasher: self.fingerprint.map_or_else(KeyHasher::seeded, KeyHasher::Given),
            clock: self.clock,
            ttl: self.ttl,
            compute_wait: self.compute_wait,
            name,
            persistence,
            groups,
            reserve: Reserve::new(),
        })
    }

    fn count_shards(&self) -> Result<usize, OpenError> {
        let most = usize::try_from(self.size_bytes / MIN_SIZE_BYTES).unwrap_or(MAX_SHARDS);
        let most = most.min(MAX_SHARDS);
        if let Some(shards) = self.shards {
            let is_allowed = shards.is_power_of_two() && shards <= most;
            return if is_allowed {
                Ok(shards)
            } else {
                Err(OpenError::BadShards { shards, most })
            };
        }
        Ok(rules::default_shards(self.size_bytes))
    }

    fn name(&self, policy: &str) -> Result<Name, OpenError> {
        let mut options = vec![("policy", policy.replace(',', ":"))];
        if let Some(shards) = self.shards {
            options.push(("shards", shards.to_string()));
        }
        if let Some(ttl) = self.ttl {
            options.push(("ttl", duration(ttl)));
        }
        if let Some(namespace) = &self.namespace {
            options.push(("namespace", namespace.clone()));
        }
        if self.compute_wait != DEFAULT_COMPUTE_WAIT {
            options.push(("compute_wait", duration(self.compute_wait)));
        }
        if let Some(persist) = &self.persist {
            let path = persist.path.to_str().ok_or_else(|| OpenError::Backend {
                url: SCHEME.name.to_owned(),
                source: format!("{} is not UTF-8", persist.path.display()).into(),
            })?;
            options.push(("persist", path.to_owned()));
            if let Some(max_bytes) = persist.max_bytes {
                options.push(("persist_max", ByteSize(max_bytes).to_string()));
            }
            if let Some(max_age) = persist.max_age {
                options.push(("persist_age", duration(max_age)));
            }
            if persist.in_background {
                options.push(("persist_load", "background".to_owned()));
            }
            if persist.allow_shared {
                options.push(("allow_shared", "yes".to_owned()));
            }
        }
        let name = Name { options };
        name.level(self.size_bytes)?;
        Ok(name)
    }
}

fn duration(duration: Duration) -> String {
    humantime::format_duration(duration).to_string().replace(' ', "")
}

/// The options of a memory store's URL other than `size=`, whose value can change.
#[derive(Debug)]
pub(super) struct Name {
    options: Vec<(&'static str, String)>,
}

impl Name {
    /// Returns the canonical URL of the store at this size.
    pub(super) fn url(&self, size_bytes: u64) -> CacheUrl {
        self.level(size_bytes).expect("names were checked when the store was made").into()
    }

    fn level(&self, size_bytes: u64) -> Result<Level, OpenError> {
        let mut level =
            Level::new(SCHEME.name)?.with_option("size", ByteSize(size_bytes).to_string())?;
        for (name, value) in &self.options {
            level = level.with_option(*name, value)?;
        }
        Ok(level)
    }
}

/// The hash function that a memory store applies to its keys: XXH3 with a seed, or a function that
/// the program has given.
pub(super) enum KeyHasher {
    /// The function XXH3 with this seed.
    Seeded(u64),
    Given(Arc<Fingerprint>),
}

impl KeyHasher {
    fn seeded() -> Self {
        Self::Seeded(RandomState::new().build_hasher().finish())
    }

    #[inline]
    pub(super) fn fingerprint(&self, key: &[u8]) -> u64 {
        match self {
            Self::Seeded(seed) => rules::fingerprint(key, *seed),
            Self::Given(fingerprint) => fingerprint(key),
        }
    }
}

/// Hands the named policy, as its own type, back to the builder.
struct Opening {
    builder: MemoryBuilder,
}

impl PolicyVisitor for Opening {
    type Output = Result<Arc<dyn Store>, OpenError>;

    fn visit<P: Policy + 'static>(self, make: impl Fn(u64) -> P) -> Self::Output {
        let name = self.builder.policy.to_string();
        self.builder.start(make, &name)
    }
}
