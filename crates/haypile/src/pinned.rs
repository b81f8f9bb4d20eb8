//! Pinned values, which stay in place while they are read.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use self_cell::self_cell;

use crate::cache::Cache;
use crate::error::Result;
#[cfg(target_os = "linux")]
use crate::fork::values::Kept;
use crate::store::{Hit, Store};

/// A value that was read from a cache: either in place in the cache's memory, or as a copy.
pub struct Pinned<'a> {
    hit: Hit,
    value: HeldValue<'a>,
}

enum HeldValue<'a> {
    Copied(Vec<u8>),
    /// A copy, because no further segment of a file may be locked.
    OutOfPins(Vec<u8>),
    InPlace(Box<dyn AsRef<[u8]> + Send + Sync + 'a>),
    /// A value in place, in memory that other processes write once it is let go of.
    Shared(Box<dyn AsRef<[u8]> + Send + Sync + 'a>),
}

impl<'a> Pinned<'a> {
    /// Returns a value read from a cache that owns its bytes, as a copy.
    pub fn copied(value: Vec<u8>, hit: Hit) -> Self {
        Self { hit, value: HeldValue::Copied(value) }
    }

    /// Returns a value read from a cache that owns a copy of its bytes because no further segment
    /// of its file could be locked for reading in place.
    pub(crate) fn out_of_pins(value: Vec<u8>, hit: Hit) -> Self {
        Self { hit, value: HeldValue::OutOfPins(value) }
    }

    /// Returns a value read from a cache whose bytes stay in the cache's memory, kept by `guard`
    /// until it is dropped.
    pub fn in_place(guard: impl AsRef<[u8]> + Send + Sync + 'a, hit: Hit) -> Self {
        Self { hit, value: HeldValue::InPlace(Box::new(guard)) }
    }

    /// Returns a value read from a cache whose bytes stay in memory that processes share, kept by
    /// `guard` until it is dropped.
    pub(crate) fn shared(guard: impl AsRef<[u8]> + Send + Sync + 'a, hit: Hit) -> Self {
        Self { hit, value: HeldValue::Shared(Box::new(guard)) }
    }

    /// Returns a pinned value that consists of the first `value_bytes` bytes of another pinned
    /// value.
    pub(crate) fn part_of(other: Self, value_bytes: usize, hit: Hit) -> Self {
        let is_shared = matches!(other.value, HeldValue::Shared(_));
        let part = Part { of: other, value_bytes };
        if is_shared { Self::shared(part, hit) } else { Self::in_place(part, hit) }
    }

    /// Returns the properties of the entry (version, time to live) when its value was read.
    pub fn hit(&self) -> Hit {
        self.hit
    }

    /// Returns whether this value was copied instead of read in place only because the largest
    /// number of segments that [`Store::get_in_place`] permits is locked. If it is stored again
    /// together with other values, they share a segment, and the next process may read all of them
    /// in place.
    pub fn is_out_of_pins(&self) -> bool {
        matches!(self.value, HeldValue::OutOfPins(_))
    }
}

/// The first bytes of a value.
struct Part<'a> {
    of: Pinned<'a>,
    value_bytes: usize,
}

impl AsRef<[u8]> for Part<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.of[..self.value_bytes]
    }
}

impl Deref for Pinned<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.value {
            HeldValue::Copied(value) | HeldValue::OutOfPins(value) => value,
            HeldValue::InPlace(guard) | HeldValue::Shared(guard) => (**guard).as_ref(),
        }
    }
}

impl fmt::Debug for Pinned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copied = matches!(self.value, HeldValue::Copied(_) | HeldValue::OutOfPins(_));
        f.debug_struct("Pinned")
            .field("hit", &self.hit)
            .field("value_bytes", &self.len())
            .field("copied", &copied)
            .finish()
    }
}

self_cell! {
    struct Owned {
        owner: Arc<dyn Store>,
        #[covariant]
        dependent: Pinned,
    }
}

/// A value that was read from a cache, in place or copied, together with the store. It moves
/// between threads, so that a program that does not block can read it at its own pace.
pub struct OwnedPinned {
    /// The registration for children of forks; dropped before the value.
    #[cfg(target_os = "linux")]
    kept: Option<Kept>,
    value: Owned,
}

impl OwnedPinned {
    /// Keeps this value, which was read from a cache, readable in forked children, even after this
    /// process has released it. Where its pages are in the memory of a file, children get a copy of
    /// them, and so a fork takes longer. The binding has to call
    /// [`fork::ForkGate::prepare`](crate::fork::ForkGate::prepare) and its counterparts.
    pub fn keep_for_children(&mut self) {
        #[cfg(target_os = "linux")]
        if matches!(self.value.borrow_dependent().value, HeldValue::Shared(_)) {
            self.kept.get_or_insert_with(|| Kept::new(self.value.borrow_dependent()));
        }
    }

    /// Returns the properties of the entry (version, time to live) when its value was read.
    pub fn hit(&self) -> Hit {
        self.value.borrow_dependent().hit()
    }

    /// Returns whether the value was copied because no further segment of its file could be locked;
    /// see [`Pinned::is_out_of_pins`].
    pub fn is_out_of_pins(&self) -> bool {
        self.value.borrow_dependent().is_out_of_pins()
    }
}

impl AsRef<[u8]> for OwnedPinned {
    fn as_ref(&self) -> &[u8] {
        self.value.borrow_dependent()
    }
}

impl Deref for OwnedPinned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_ref()
    }
}

impl fmt::Debug for OwnedPinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedPinned").field(self.value.borrow_dependent()).finish()
    }
}

impl Cache {
    /// Returns the value of `key` in place or as a copy, behind a guard that keeps the store open;
    /// `None` for a miss; see [`Store::get_pinned`].
    ///
    /// ```
    /// use haypile::Cache;
    ///
    /// let cache = Cache::open("memory:size=1MiB")?;
    /// cache.set("key", "value")?;
    /// let value = cache.get_pinned_owned("key")?.expect("it fits");
    /// cache.delete("key")?;
    /// drop(cache);
    /// assert_eq!(&*value, b"value");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Store`].
    pub fn get_pinned_owned(&self, key: impl AsRef<[u8]>) -> Result<Option<OwnedPinned>> {
        self.owned(|store| store.get_pinned(key.as_ref()))
    }

    /// Returns the value of `key` behind a guard that keeps the store open, in place even if it is
    /// short: for a caller that keeps many values for long; see [`Store::get_in_place`].
    ///
    /// # Errors
    ///
    /// Those of [`Store`].
    pub fn get_in_place_owned(&self, key: impl AsRef<[u8]>) -> Result<Option<OwnedPinned>> {
        self.owned(|store| store.get_in_place(key.as_ref()))
    }

    /// Returns a value like [`get_in_place_owned`](Self::get_in_place_owned), verified by its checksum when this
    /// process first reads it in place; see [`Store::get_in_place_verified`].
    ///
    /// # Errors
    ///
    /// Those of [`Store`].
    pub fn get_in_place_verified_owned(
        &self,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<OwnedPinned>> {
        self.owned(|store| store.get_in_place_verified(key.as_ref()))
    }

    fn owned(
        &self,
        get: impl for<'a> FnOnce(&'a Arc<dyn Store>) -> Result<Option<Pinned<'a>>>,
    ) -> Result<Option<OwnedPinned>> {
        let owned = Owned::try_new(Arc::clone(self.store()), |store| {
            get(store).map_err(Err)?.ok_or(Ok(()))
        });
        match owned {
            Ok(value) => Ok(Some(OwnedPinned {
                #[cfg(target_os = "linux")]
                kept: None,
                value,
            })),
            Err(Ok(())) => Ok(None),
            Err(Err(error)) => Err(error),
        }
    }
}
