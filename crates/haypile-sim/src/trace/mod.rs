//! Traces: what was asked of a cache, in order.

mod error;
mod request;

pub use error::TraceError;
pub use request::{Key, Op, Request, Sink};
