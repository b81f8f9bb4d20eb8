//! Errors of simulations.

use crate::trace::{Sampling, TraceError};

/// The error of a simulation that cannot be run, such as a cache size that is too small.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// The accounting counts bytes and the trace has no sizes.
    #[error(
        "the trace has no sizes of values, so that bytes cannot be counted; limit the cache in \
         objects, or state sizes to assume (for example 160, or normal:mean=10000,sd=512)"
    )]
    NoSizes,
    /// A cost depends on sizes and the trace has none.
    #[error(
        "the trace has no sizes, so that the cost of a byte says nothing; leave per-byte out, or say what sizes to assume (for \
         example 160, or normal:mean=10000,sd=512)"
    )]
    NoSizesForCost,
    /// Days were asked for and the trace has no times.
    #[error(
        "the trace has no times, so that it cannot be divided into days; state a number of windows"
    )]
    NoDays,
    /// The trace lasts more days than can be windows.
    #[error(
        "from its first to its last request the trace lasts {days} days, of which {most} can be told apart; state the unit of its \
         times if they are wrong, or a number of windows"
    )]
    TooManyDays {
        /// Whole days between the two.
        days: u64,
        /// The most that can be told apart.
        most: usize,
    },
    /// The costs that the trace states were asked for, and it states none.
    #[error(
        "the trace states no costs of misses: they come from a recording, a column cost in CSV, or a log with the time that the \
         server behind took; state a formula, as in --miss-cost fixed=20ms,per-byte=0.5ns"
    )]
    NoCosts,
    /// A cache is judged by bytes and the trace has no sizes.
    #[error(
        "the trace has no sizes, so that no cache can be chosen by the bytes it serves; choose by reads, or say what sizes to assume \
         (for example 160, or normal:mean=10000,sd=512)"
    )]
    NoSizesForGoal,
    /// There is no accounting of that name.
    #[error("unknown accounting '{name}' (known: objects, bytes, relstorage, engine)")]
    UnknownAccounting {
        /// The name given.
        name: String,
    },
    /// The sample has too few keys for any result.
    #[error(
        "a sample of {rate} of the keys has {keys} keys, which are too few for a result; more \
         than {} are needed; {}",
        super::MIN_SAMPLED_KEYS,
        larger(*rate, u64::from(super::MIN_SAMPLED_KEYS), u64::from(*keys))
    )]
    SmallSample {
        /// The rate asked for.
        rate: f64,
        /// The keys of the sample.
        keys: u32,
    },
    /// The sample has too few entries for a cache of this capacity.
    #[error(
        "a sample of {rate} of the keys cannot predict a cache of {capacity}, which would hold \
         too few of them; name sizes of at least {least}, or {}",
        larger(*rate, *least, *capacity)
    )]
    SmallSampledCache {
        /// The rate of the sample.
        rate: f64,
        /// The capacity asked for.
        capacity: u64,
        /// The least capacity.
        least: u64,
    },
    /// A policy that no `memory` store runs cannot be advised.
    #[error(
        "policy '{policy}' cannot be recommended, because no 'memory' store has it: it may \
         exceed the cache's size, or is the file store's own"
    )]
    NotAdvisable {
        /// The policy.
        policy: String,
    },
    /// Shards were asked for, for a cache that is simulated as one.
    #[error(
        "only a memory:// cache with --accounting engine has shards; leave --shards out, or give \
         the trace sizes"
    )]
    ShardsOfNothing,
    /// The size is outside the range of a `memory` store.
    #[error("a 'memory' store cannot have {capacity} bytes; its size is from {min} to {max}")]
    StoreSize {
        /// The size asked for, in bytes.
        capacity: u64,
        /// The smallest size.
        min: u64,
        /// The largest size.
        max: u64,
    },
    /// The number of shards is not possible for a `memory` store of this size.
    #[error(
        "a 'memory' store of {capacity} bytes cannot have {shards} shards; it takes a power of two \
         up to {most}"
    )]
    BadShards {
        /// The number asked for.
        shards: usize,
        /// The size of the store, in bytes.
        capacity: u64,
        /// The largest number of shards.
        most: usize,
    },
    /// The capacity is zero.
    #[error("a cache of size 0 holds nothing; give a size of 1 or more")]
    ZeroCapacity,
    /// The budget is below the smallest cache that there is.
    #[error(
        "a budget of {budget_bytes} bytes is below the {min_bytes} bytes of the smallest cache; \
         raise it"
    )]
    BudgetTooSmall {
        /// The budget given.
        budget_bytes: u64,
        /// The smallest budget that buys a cache.
        min_bytes: u64,
    },
    /// A TTL was asked for and the trace has no times.
    #[error("the trace has no times, so that nothing can expire; leave --ttl out")]
    NoTimes,
    /// The optimum was asked for of a cache whose entries expire.
    #[error(
        "belady is not the optimum if entries expire; leave it out, or simulate with --ttl never"
    )]
    BeladyOfWhatExpires,
    /// The LRU curve was asked for of a cache whose entries expire.
    #[error(
        "the LRU curve is computed in one pass that ignores expiry, and entries of this trace \
         expire; simulate --policy lru, or use --ttl never"
    )]
    CurveOfWhatExpires,
    /// The warm-up leaves nothing to count.
    #[error(
        "the warm-up of {warmup} requests leaves none of the trace's {requests} requests to count; \
         make it shorter"
    )]
    WarmupTooLong {
        /// The warm-up asked for.
        warmup: u64,
        /// The number of requests in the trace.
        requests: u64,
    },
    /// The future of the trace could not be computed.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Says how to get a sample that is large enough, if one of this rate has `has` where it needs `needs`.
fn larger(rate: f64, needs: u64, has: u64) -> String {
    // A fifth more, because the keys of a sample are as many as chance has it.
    let enough = 1.2 * rate * needs as f64 / has.max(1) as f64;
    if enough >= 1.0 {
        return "use the whole trace".to_owned();
    }
    let (rate, digits) = Sampling::rounded_up(enough);
    format!("take a larger sample: {rate:.digits$}")
}
