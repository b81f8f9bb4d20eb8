//! HTTP for experiments: a client that a cache stands before.

mod client;

pub(crate) use client::Client;
