//! Page loads through an HTTP cache: [sites](site), a loader in a process of its own, and, in this process, the origin
//! that it loads from.
//!
//! ```text
//!   this process                                    a process for each column
//!   ScriptedOrigin <── LinkEmulator <──(TCP)── Client <── HttpCache <── Loader
//!        └ counts what came                                  orders, lines of JSON <──> Column
//! ```
//!
//! The loader is a browser as far as its cache is concerned: private rules, a bounded number of
//! connections to a host, and a resource is asked for when the one that names it has come. It runs
//! no scripts and draws nothing. Its counts are not believed: the origin's decide whether a cache
//! did what its name says (`verify`).

pub mod browser;
pub mod client;
mod column;
mod loader;
mod orders;
mod process;
mod serve;
pub mod site;
mod site_server;
pub mod verify;
mod wire;

pub use column::{Column, ColumnKind};
pub use orders::{
    CheckIdentity, HttpsOrders, LoadReport, NoVarySearch, PageOrders, Protocol, RemainsReport,
};
pub use process::{LoaderError, LoaderProcess, LoaderSettings};
pub use serve::serve;
pub use site_server::{LoadCounts, SiteServer};
