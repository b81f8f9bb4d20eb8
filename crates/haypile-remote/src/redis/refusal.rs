//! Refusals of the server, with advice.

use std::fmt;

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// The error of a command that the Redis server refused, with advice on what to do.
#[derive(Debug)]
pub(super) struct Refusal {
    error: RedisError,
    advice: Option<&'static str>,
}

impl Refusal {
    /// Creates the error of a command that the Redis server refused, with advice on what to do if it is known.
    pub(super) fn new(error: RedisError, is_in_cluster: bool) -> Self {
        let text = error.to_string();
        let advice = match error.kind() {
            ErrorKind::Server(
                ServerErrorKind::Moved | ServerErrorKind::Ask | ServerErrorKind::CrossSlot,
            ) if !is_in_cluster => Some(
                "the server is a node of a Redis Cluster, which has the URL \
                 redis+cluster://HOST:PORT",
            ),
            _ if error.code() == Some("OOM") => Some(
                "the server has reached its maxmemory and evicts nothing; set its \
                 maxmemory-policy, for example to allkeys-lru, or give it more memory",
            ),
            _ if text.contains("permission") || text.contains("can't run this command") => Some(
                "docs/engine.md lists the commands that each operation needs; computations need \
                     no scripts with leases=no",
            ),
            _ => None,
        };
        Self { error, advice }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        self.advice.map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

// The text of the error is part of this one's, and it has no source of its own.
impl std::error::Error for Refusal {}
