//! Operations on one key and on all keys, and single flight.

pub(in crate::file) mod census;
pub(in crate::file) mod claims;
pub(in crate::file) mod keys;
pub(in crate::file) mod leases;
pub(in crate::file) mod name;
pub(in crate::file) mod pin;
pub(in crate::file) mod prefetch;
pub(in crate::file) mod read;
pub(in crate::file) mod verified;
pub(in crate::file) mod write;
