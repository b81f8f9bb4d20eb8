//! HTTP for experiments: a client that a cache stands before, and an HTTP cache as a subject.

mod client;
mod http2;
pub(crate) mod subject;

pub(crate) use client::Client;
pub(crate) use http2::Http2Client;
