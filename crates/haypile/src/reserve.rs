//! Reservations that hold their store, for programs that cannot borrow one.

use std::fmt;
use std::sync::Arc;

use self_cell::self_cell;

use crate::cache::Cache;
use crate::error::Result;
use crate::store::Store;
use crate::write::{Reservation, SetOptions, Written};

/// `None` once it is committed.
type Uncommitted<'a> = Option<Box<dyn Reservation + 'a>>;

self_cell! {
    struct Owned {
        owner: Arc<dyn Store>,
        #[covariant]
        dependent: Uncommitted,
    }
}

/// A prepared write of an entry that waits for its value, together with its cache. Dropping it
/// changes nothing.
pub struct OwnedReservation {
    reservation: Owned,
    cache: Cache,
    key: Box<[u8]>,
    options: SetOptions,
}

impl Cache {
    /// Prepares a write of a value of exactly `value_bytes` bytes, to be filled in place and
    /// committed; see [`Store::reserve`].
    ///
    /// ```
    /// use haypile::{Cache, SetOptions};
    ///
    /// let cache = Cache::open("memory:size=1MiB")?;
    /// let mut reservation = cache.reserve_owned("key", 5, SetOptions::set())?;
    /// reservation.buffer().copy_from_slice(b"value");
    /// assert!(reservation.commit()?.is_stored());
    /// assert_eq!(cache.get("key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Store::reserve`].
    pub fn reserve_owned(
        &self,
        key: impl AsRef<[u8]>,
        value_bytes: usize,
        options: SetOptions,
    ) -> Result<OwnedReservation> {
        let key = key.as_ref();
        let reservation = Owned::try_new(Arc::clone(&self.store), |store| {
            store.reserve(key, value_bytes, &options).map(Some)
        })?;
        Ok(OwnedReservation { reservation, cache: self.clone(), key: key.into(), options })
    }
}

impl OwnedReservation {
    /// Returns the buffer into which the caller writes the value of the prepared write; see
    /// [`Reservation::buffer`].
    pub fn buffer(&mut self) -> &mut [u8] {
        self.reservation.with_dependent_mut(|_, reservation| {
            reservation.as_mut().expect("only commit takes it, and ends this").buffer()
        })
    }

    /// Returns the condition and the TTL of the prepared write.
    pub fn options(&self) -> SetOptions {
        self.options
    }

    /// Commits the prepared write: makes the entry visible if the condition of the write holds now,
    /// and returns whether it held.
    ///
    /// # Errors
    ///
    /// Those of [`Reservation::commit`].
    pub fn commit(mut self) -> Result<Written> {
        self.cache.computations.flights().note_change(&self.key);
        self.reservation.with_dependent_mut(|_, reservation| {
            reservation.take().expect("only commit takes it, and ends this").commit()
        })
    }
}

impl fmt::Debug for OwnedReservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedReservation").field("key", &self.key).finish_non_exhaustive()
    }
}
