//! Snapshots: what is written is what is read, and nothing else ever is.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

mod damage;
#[cfg(unix)]
mod kill;
mod limits;
mod places;
mod round_trip;
