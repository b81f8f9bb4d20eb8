//! The bounds on all waits.

use std::time::Duration;

/// The longest waits of a proxy, for origins and for clients.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// For a connection to an origin.
    pub connect: Duration,
    /// For the head of an origin's response, from the request on.
    pub first_byte: Duration,
    /// For the next part of an origin's response.
    pub pause: Duration,
    /// For the next request of a client or the next part of it, and for a client to take the next
    /// part of a response.
    pub client: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MINUTE: Duration = Duration::from_mins(1);
        Self { connect: Duration::from_secs(10), first_byte: MINUTE, pause: MINUTE, client: MINUTE }
    }
}
