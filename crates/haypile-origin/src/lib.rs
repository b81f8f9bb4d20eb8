//! The other side of an HTTP cache in tests and experiments: an origin [`server`] that follows a script, and
//! an emulator of the network [`link`] before it.

pub mod link;
mod running;
pub mod server;
