//! Clients of one origin server, which an HTTP cache stands before.

mod http1;
mod http2;

pub use http1::Http1Client;
pub(crate) use http2::Http2Client;
