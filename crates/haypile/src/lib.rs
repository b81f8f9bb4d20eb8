//! Haypile's engine: caches of bytes that one URL names, that are bounded in bytes, and whose
//! eviction policy can be chosen.
//!
//! ```
//! use std::time::Duration;
//! use haypile::Cache;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cache = Cache::open("memory://?size=16MiB&policy=s3fifo")?;
//! cache.set("user:7", "Ada")?;
//! assert_eq!(cache.get("user:7")?.as_deref(), Some(b"Ada".as_slice()));
//!
//! // However many threads ask, one computes.
//! let page = cache.get_or_compute("page:/", Duration::from_secs(30), || b"<html>".to_vec())?;
//! assert_eq!(page, b"<html>");
//! assert_eq!(cache.stats()?.hits, 1);
//! # Ok(())
//! # }
//! ```
//!
//! - [`Cache`] is the handle that programs hold; [`Store`] is the trait that every kind of cache
//!   implements.
//! - [`MemoryBuilder`](memory::MemoryBuilder) and `file::FileBuilder` open a cache without a URL: by a size, by any path.
//! - [`url`] describes the names, and a [`Registry`] opens them: `none://`, `memory://` and
//!   `file://` here; other crates add others.
//! - [`compress`] compresses values where that saves space.
//! - [`record`] records the operations on a cache, for the simulator.
//! - [`Layer`] makes a store of another store and the methods that it changes.
//! - [`tier`] puts a fast cache in front of a larger or shared one.
//!
//! The eviction policies, which the simulator runs as well, are a crate of their own: `haypile_policy`. The module
//! `file` exists on 64-bit Linux alone; everything else is the same on every platform.
//!
//! Features: `lz4` and `zstd` (both on by default) bring the methods of compression, and `async` brings
//! `Cache::get_or_compute_async`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod cache;
mod call;
mod claim;
mod clock;
pub mod compress;
mod compute;
mod error;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
pub mod file;
mod flight;
mod fork;
mod groups;
mod layer;
mod lease;
pub mod memory;
mod mutant;
mod none;
mod open;
mod pinned;
mod private_file;
mod process;
pub mod record;
mod registry;
mod removals;
mod reserve;
mod size;
mod stats;
mod store;
mod sync;
pub mod tier;
mod ttl;
pub mod url;
mod wrapped;
mod write;
mod writers;

pub use cache::Cache;
pub use claim::{OwnedClaim, TriedClaim};
pub use clock::{Clock, ManualClock, SystemClock};
pub use compute::{Computation, ComputeError, ComputeStats, Freshness, PendingCompute, Polled};
pub use error::{Error, Result};
pub use fork::ForkGate;
pub use haypile_policy::PolicySpec;
pub use layer::Layer;
pub use lease::Lease;
pub use none::NoneStore;
pub use open::{OpenError, Opener};
pub use pinned::{OwnedPinned, Pinned};
pub use registry::Registry;
pub use reserve::OwnedReservation;
pub use size::{ByteSize, SizeError};
pub use stats::{Event, EventCounters, LevelStats, Loading, Stats};
pub use store::{Claim, ClaimHolder, Cursor, Durability, Found, Hit, Limits, Page, Store};
pub use ttl::Ttl;
pub use write::{Reservation, SetOptions, Version, WriteMode, Written};
pub use writers::Writers;
