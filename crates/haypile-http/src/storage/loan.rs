//! Values of the store as [`Bytes`], with as few copies and allocations as the store permits.
//!
//! A store in memory lends its values: they go from there to the socket without a copy. A loan keeps
//! its bytes allocated although the entry may be evicted, so that a client that reads slowly would
//! keep memory from the cache; the number of loans is bounded, and beyond it values are copied.
//!
//! Copies go into buffers that are used again. A new allocation of this length for each would cost
//! more than the copy: the allocator returns its pages to the system and gets them back zeroed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use haypile::{Cache, Hit, Result, Store};
use parking_lot::Mutex;

use super::CHUNK_BYTES;

/// The part of a store that loans may keep from it.
const LENT_PART: u64 = 8;
/// The most loans, however large the store is.
const MOST_LOANS: u64 = 1024;
/// The length from which a value is lent, or stays in its buffer. To copy a shorter one costs less
/// than a loan, and a few bytes that are held for long hold no whole buffer.
const LONG_BYTES: usize = 8 << 10;
/// The most buffers that wait for their next use.
const MOST_BUFFERS: usize = 32;

/// A reader of the store's values as shared bytes, which stay in place in the store's memory where possible.
#[derive(Clone, Debug)]
pub(super) struct Lender(Arc<LoanInner>);

#[derive(Debug)]
struct LoanInner {
    cache: Cache,
    /// Whether the fastest level of the store lends what it has.
    lends: bool,
    /// Whether what is lent has the version that it is replaced by.
    lends_versions: bool,
    loans: AtomicUsize,
    most_loans: usize,
    buffers: Mutex<Vec<Vec<u8>>>,
}

/// One loan, which counts until it is dropped.
struct Loan(Arc<LoanInner>);

/// A value that the store holds in place.
struct Lent {
    value: haypile::OwnedPinned,
    _loan: Loan,
}

/// A buffer that goes back when it has been read.
struct UsedLoan {
    buffer: Vec<u8>,
    inner: Arc<LoanInner>,
}

impl Lender {
    pub(super) fn new(cache: &Cache) -> Self {
        let store = cache.store();
        let url = store.url();
        let levels = url.levels();
        let lends = levels.first().is_some_and(|level| level.scheme() == "memory");
        let capacity = store.limits().capacity_bytes.unwrap_or(0);
        let most_loans = (capacity / LENT_PART / CHUNK_BYTES as u64).min(MOST_LOANS);
        Self(Arc::new(LoanInner {
            cache: cache.clone(),
            lends,
            lends_versions: lends && levels.len() == 1,
            loans: AtomicUsize::new(0),
            most_loans: usize::try_from(most_loans).expect("at most MOST_LOANS"),
            buffers: Mutex::default(),
        }))
    }

    /// Returns the store's value of a key as shared bytes, without a copy where possible.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let copy = |store: &dyn Store, buffer: &mut Vec<u8>| store.get_into(key, buffer);
        let value = self.read(key, self.0.lends, copy)?;
        Ok(value.map(|(value, _)| value))
    }

    /// Returns the store's value of a key as shared bytes, and its version.
    pub(super) fn get_versioned(&self, key: &[u8]) -> Result<Option<(Bytes, Hit)>> {
        let copy = |store: &dyn Store, buffer: &mut Vec<u8>| store.get_versioned_into(key, buffer);
        self.read(key, self.0.lends_versions, copy)
    }

    fn read(
        &self,
        key: &[u8],
        lends: bool,
        copy: impl FnOnce(&dyn Store, &mut Vec<u8>) -> Result<Option<Hit>>,
    ) -> Result<Option<(Bytes, Hit)>> {
        let loan = if lends { Loan::new(&self.0) } else { None };
        if let Some(loan) = loan {
            let Some(value) = self.0.cache.get_pinned_owned(key)? else { return Ok(None) };
            let hit = value.hit();
            let value = if value.len() < LONG_BYTES {
                Bytes::copy_from_slice(&value)
            } else {
                Bytes::from_owner(Lent { value, _loan: loan })
            };
            return Ok(Some((value, hit)));
        }
        let mut used = UsedLoan::take(&self.0);
        let hit = copy(&**self.0.cache.store(), &mut used.buffer)?;
        let Some(hit) = hit else { return Ok(None) };
        let is_long = used.buffer.len() >= LONG_BYTES;
        let value =
            if is_long { Bytes::from_owner(used) } else { Bytes::copy_from_slice(&used.buffer) };
        Ok(Some((value, hit)))
    }
}

impl Loan {
    /// Returns one more, if there are not too many.
    fn new(inner: &Arc<LoanInner>) -> Option<Self> {
        let more = |loans: usize| (loans < inner.most_loans).then_some(loans + 1);
        inner.loans.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self(Arc::clone(inner)))
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.0.loans.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.value
    }
}

impl UsedLoan {
    /// Returns the buffer that went back last, whose bytes are likely in the processor's cache.
    fn take(inner: &Arc<LoanInner>) -> Self {
        let buffer = inner.buffers.lock().pop();
        let buffer = buffer.unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES));
        Self { buffer, inner: Arc::clone(inner) }
    }
}

impl Drop for UsedLoan {
    fn drop(&mut self) {
        // Other programs may have written longer values under our keys.
        if self.buffer.capacity() > CHUNK_BYTES {
            return;
        }
        let mut buffers = self.inner.buffers.lock();
        if buffers.len() < MOST_BUFFERS {
            buffers.push(std::mem::take(&mut self.buffer));
        }
    }
}

impl AsRef<[u8]> for UsedLoan {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

#[cfg(test)]
mod tests {
    use haypile::SetOptions;

    use super::*;

    const MEMORY: &str = "memory:size=2MiB";
    /// An eighth of 2 MiB, in chunks.
    const MOST_OF_MEMORY: usize = 4;

    fn value(number: usize) -> Vec<u8> {
        let number = u64::try_from(number).expect("a small number");
        (number << 32..).flat_map(u64::to_le_bytes).take(60_000).collect()
    }

    /// Returns a cache with these values under their numbers.
    fn filled(url: &str, numbers: impl IntoIterator<Item = usize>) -> Cache {
        let cache = Cache::open(url).expect("it opens");
        for number in numbers {
            cache.set(number.to_string(), value(number)).expect("it is stored");
        }
        cache
    }

    fn get(lender: &Lender, number: usize) -> Option<Bytes> {
        lender.get(number.to_string().as_bytes()).expect("a store that works")
    }

    #[test]
    fn no_more_values_are_lent_than_the_store_can_spare() {
        let cache = filled(MEMORY, 0..10);
        let lender = Lender::new(&cache);
        let held: Vec<Bytes> = (0..10).filter_map(|number| get(&lender, number)).collect();
        assert_eq!(held.len(), 10);
        assert_eq!(lender.0.loans.load(Ordering::Relaxed), MOST_OF_MEMORY);
        let (versioned, hit) = lender.get_versioned(b"3").expect("it works").expect("a hit");
        assert!(versioned == held[3] && hit.version.is_some());
        drop(held);
        assert_eq!(lender.0.loans.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn values_that_are_held_stay_right_and_do_not_stop_eviction() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = format!("file:{},size=2MiB", folder.path().join("f").display());
        for url in [MEMORY, &file] {
            let cache = filled(url, 0..8);
            let lender = Lender::new(&cache);
            let held: Vec<_> = (0..8).map(|number| (number, get(&lender, number))).collect();
            for (number, _) in &held {
                // Deleted, written over or evicted below.
                match number % 3 {
                    0 => drop(cache.delete(number.to_string()).expect("it is deleted")),
                    1 => cache.set(number.to_string(), value(99)).expect("it is written"),
                    _ => {}
                }
            }
            for number in 100..300 {
                let key = number.to_string();
                let written = cache.store().set(key.as_bytes(), &value(number), &SetOptions::set());
                assert!(written.expect("it works").is_stored(), "{number} in {url}");
                assert!(get(&lender, number).is_some_and(|found| found == value(number)));
            }
            assert!(get(&lender, 2).is_none(), "it was evicted from {url}");
            for (number, value_held) in held {
                assert!(value_held.expect("it was there") == value(number), "{number} in {url}");
            }
        }
    }

    #[test]
    fn buffers_are_used_again_and_only_a_few_of_them_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("file:{},size=16MiB", folder.path().join("f").display());
        let cache = filled(&url, 0..100);
        let lender = Lender::new(&cache);
        let first = get(&lender, 1).expect("a hit");
        let address = first.as_ptr();
        drop(first);
        let second = get(&lender, 2).expect("a hit");
        assert!(second.as_ptr() == address && second == value(2));
        let held: Vec<_> = (0..100).map(|number| get(&lender, number).expect("a hit")).collect();
        assert!(held.iter().enumerate().all(|(number, found)| *found == value(number)));
        drop(held);
        assert_eq!(lender.0.buffers.lock().len(), MOST_BUFFERS);
    }

    #[test]
    fn short_values_hold_no_loan_and_no_buffer() {
        for url in [MEMORY, "memory:size=64KiB"] {
            let cache = Cache::open(url).expect("it opens");
            cache.set("short", "value").expect("it is stored");
            let lender = Lender::new(&cache);
            let found = lender.get(b"short").expect("it works").expect("a hit");
            assert_eq!(found, "value");
            assert_eq!(lender.0.loans.load(Ordering::Relaxed), 0);
            assert!(lender.0.buffers.lock().iter().all(|buffer| buffer.capacity() > 0));
            assert_eq!(lender.get(b"other").expect("it works"), None);
        }
    }
}
