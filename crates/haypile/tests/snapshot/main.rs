//! Snapshots: reading returns exactly the written entries.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

mod damage;
#[cfg(unix)]
mod kill;
mod limits;
mod places;
mod round_trip;
