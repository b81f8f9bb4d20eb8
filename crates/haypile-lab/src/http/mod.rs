//! HTTP for experiments: a client that a cache stands before.

mod client;
mod http2;

pub(crate) use client::Client;
pub(crate) use http2::Http2Client;
