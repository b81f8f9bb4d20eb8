//! Claims that can move between threads, for programs that compute without blocking a thread.

use std::fmt;
use std::sync::Arc;

use self_cell::self_cell;

use crate::cache::Cache;
use crate::error::Result;
use crate::store::{Claim, ClaimHolder, Store};

type Guard<'a> = Box<dyn std::fmt::Debug + Send + 'a>;

self_cell! {
    struct Owned {
        owner: Arc<dyn Store>,
        #[covariant]
        dependent: Guard,
    }
}

/// The exclusive right to compute the value of a key, among all processes that share a store.
/// Dropping it gives the right back, on any thread. It keeps the store open.
pub struct OwnedClaim(Owned);

/// The outcome of trying to get an [`OwnedClaim`], the exclusive right to compute a key's value:
/// the right itself, the process that has it, or that it is not needed.
#[derive(Debug)]
#[non_exhaustive]
pub enum TriedClaim {
    /// No claim is needed: no other process could compute for this store.
    Unneeded,
    /// The caller has the claim: no other process computes the key until it is dropped.
    Held(OwnedClaim),
    /// Another process has the claim, and computes the value.
    Taken(ClaimHolder),
}

impl Cache {
    /// Tries to become the one process that computes the value of a key, without waiting;
    /// `take_over` names a process that has held this right for too long. After success the caller
    /// has to read the key again: the previous holder may have stored a value.
    ///
    /// [`get_or_compute`](Self::get_or_compute) does all this for callers that may block, and also
    /// makes the threads of one process wait for each other. A program that does not block asks
    /// again from time to time, and bounds that time: a holder may be stopped.
    ///
    /// ```
    /// use haypile::{Cache, TriedClaim};
    ///
    /// let cache = Cache::open("memory:size=1MiB")?;
    /// // No other process sees this cache.
    /// assert!(matches!(cache.try_claim("key", None)?, TriedClaim::Unneeded));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Store::claim`].
    pub fn try_claim(
        &self,
        key: impl AsRef<[u8]>,
        take_over: Option<ClaimHolder>,
    ) -> Result<TriedClaim> {
        let held = Owned::try_new(Arc::clone(&self.store), |store| {
            match store.claim(key.as_ref(), take_over) {
                Ok(Claim::Held { guard }) => Ok(guard),
                Ok(Claim::Taken(holder)) => Err(Ok(TriedClaim::Taken(holder))),
                Ok(Claim::Unneeded) => Err(Ok(TriedClaim::Unneeded)),
                Err(error) => Err(Err(error)),
            }
        });
        match held {
            Ok(owned) => Ok(TriedClaim::Held(OwnedClaim(owned))),
            Err(other) => other,
        }
    }
}

impl fmt::Debug for OwnedClaim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("OwnedClaim").field(self.0.borrow_dependent()).finish()
    }
}
