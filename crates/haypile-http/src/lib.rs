//! HTTP caching on any of Haypile's caches.
//!
//! [`semantics`] decides what may be stored, what may be reused and what has to be revalidated. It is
//! pure: it knows no store, no connection and no clock.

pub mod semantics;
