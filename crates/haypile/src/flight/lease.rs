//! Leases: the right to store a computed value, until its key changes.
//!
//! A computation takes a lease on its key before it begins. Its value is stored only if the lease is still
//! valid. Two events revoke leases:
//!
//! - A write or deletion of the key, or a clearing of the store, revokes all leases on the key.
//! - A value that is stored revokes the leases that were granted before its own, so that a computation that
//!   was overtaken does not replace a newer value, not even after that has expired.
//!
//! The state belongs to the key and not to a flight, because flights of one key replace each other. It lives
//! as long as a lease on the key is in use, so that writes find nothing to revoke while nobody computes. A
//! change of one key revokes no lease on another.

use std::sync::Arc;

use crate::mutant;
use crate::sync::Mutex;

/// The leases on one key: rights to store its computed value, which end when the key changes.
#[derive(Debug, Default)]
pub(super) struct Leases {
    /// Number of leases granted, which is also the number of the last one.
    granted: u64,
    in_use: usize,
    revoked: Arc<Revoked>,
}

/// The number of the last revoked lease: all up to this one are revoked.
///
/// The lock is held while a value is stored. So a change of the key either revokes the lease first, and the
/// value is not stored, or waits for the value, and then takes effect on it.
#[derive(Debug, Default)]
struct Revoked(Mutex<u64>);

/// The right to store the computed value of a key, until the key changes.
#[derive(Debug)]
pub(super) struct Lease {
    number: u64,
    revoked: Arc<Revoked>,
}

/// A pending revocation of all leases that were granted on a key before its creation, to be
/// performed outside a lock.
pub(super) struct Revocation {
    up_to: u64,
    revoked: Arc<Revoked>,
}

impl Leases {
    pub(super) fn grant(&mut self) -> Lease {
        if mutant::is_on("leases-do-not-outlive-their-flight") {
            self.revoked = Arc::default();
        }
        self.granted += 1;
        self.in_use += 1;
        Lease { number: self.granted, revoked: Arc::clone(&self.revoked) }
    }

    /// Counts one lease on the key as no longer in use, and returns whether it was the last one.
    pub(super) fn take_back(&mut self) -> bool {
        self.in_use -= 1;
        self.in_use == 0
    }

    /// Returns a revocation, still to be performed, of all leases granted so far on the key. It is
    /// separate because it may wait for a store, which must not happen under the lock of the table
    /// of keys.
    pub(super) fn revocation(&self) -> Revocation {
        Revocation { up_to: self.granted, revoked: Arc::clone(&self.revoked) }
    }
}

impl Revocation {
    /// Revokes the leases on the key that were granted before. Waits while a holder of one is
    /// storing its value.
    pub(super) fn perform(&self) {
        self.perform_if(|| ((), true));
    }

    /// Whether this revocation is of all leases on the key: none was granted after its creation.
    pub(super) fn is_of_all(&self, leases: &Leases) -> bool {
        self.up_to == leases.granted
    }

    /// Calls `change`, which changes the key, and revokes the leases on the key if it returns that
    /// the key has changed. Holders of leases store their values before this call or after it.
    pub(super) fn perform_if<R>(&self, change: impl FnOnce() -> (R, bool)) -> (R, bool) {
        let mut last = self.revoked.0.lock();
        let (result, has_changed) = change();
        if has_changed {
            *last = self.up_to.max(*last);
        }
        (result, has_changed)
    }
}

impl Lease {
    pub(super) fn is_valid(&self) -> bool {
        *self.revoked.0.lock() < self.number
    }

    /// Calls `store`, which stores a computed value, unless this lease has been revoked. Changes of
    /// the key wait for `store`.
    pub(super) fn unless_revoked(&self, store: impl FnOnce()) {
        let mut last = self.revoked.0.lock();
        if *last >= self.number && !mutant::is_on("outdated-value-is-stored") {
            return;
        }
        if mutant::is_on("write-does-not-wait-for-the-value-before") {
            drop(last);
            return store();
        }
        store();
        if !mutant::is_on("overtaken-value-is-stored-after-the-next-one") {
            *last = (self.number - 1).max(*last);
        }
    }

    /// Whether the holder of this lease is storing its computed value now, so that a change of the
    /// key would wait.
    #[cfg(all(test, not(shuttle)))]
    pub(super) fn is_storing(&self) -> bool {
        self.revoked.0.is_locked()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn is_stored(lease: &Lease) -> bool {
        let mut is_stored = false;
        lease.unless_revoked(|| is_stored = true);
        is_stored
    }

    #[test]
    fn a_change_revokes_every_lease_that_was_granted_before_it() {
        let mut leases = Leases::default();
        let [first, second] = [(); 2].map(|()| leases.grant());
        let revocation = leases.revocation();
        let third = leases.grant();
        revocation.perform();
        assert_eq!([&first, &second, &third].map(Lease::is_valid), [false, false, true]);
        assert_eq!([&first, &second, &third].map(is_stored), [false, false, true]);
        assert!(!leases.take_back() && !leases.take_back() && leases.take_back());
    }

    #[test]
    fn a_stored_value_revokes_the_leases_before_its_own_and_none_after_it() {
        let mut leases = Leases::default();
        let [first, second, third] = [(); 3].map(|()| leases.grant());
        assert!(is_stored(&second) && !is_stored(&first) && is_stored(&third));
        assert!(!is_stored(&second));
    }

    #[test]
    fn an_earlier_revocation_that_is_performed_late_takes_nothing_back() {
        let mut leases = Leases::default();
        let first = leases.grant();
        let (early, second) = (leases.revocation(), leases.grant());
        leases.revocation().perform();
        early.perform();
        assert!(!is_stored(&first) && !is_stored(&second));
    }
}
