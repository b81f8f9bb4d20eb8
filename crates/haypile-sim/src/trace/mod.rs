//! Traces: what was asked of a cache, in order.

mod error;
pub mod format;
mod input;
mod request;

pub use error::TraceError;
pub use input::Compression;
pub use request::{Key, Op, Request, Sink};
