//! Redirections to other nodes.

use redis::{RedisError, ServerErrorKind, Value};

use crate::address::Address;
use crate::deadline::Lost;
use crate::redis::connection::Reply;

/// A redirection of a command to another cluster node (`MOVED` or `ASK`).
#[derive(Clone, Debug, PartialEq)]
pub(in crate::redis) struct Redirect {
    pub(in crate::redis) to: Address,
    /// Whether the redirection is temporary (`ASK`), while the hash slot moves: the other node answers after the
    /// command `ASKING`.
    pub(in crate::redis) is_for_now: bool,
}

/// Returns the redirection in the replies of the cluster node at address `asked`; `None` if the node did not redirect.
pub(in crate::redis) fn redirect(
    replies: &[Reply<Value>],
    asked: &Address,
) -> Result<Option<Redirect>, Lost> {
    // While a slot moves, the node can answer some of the commands before the key is gone.
    let error = replies.iter().filter_map(|reply| reply.as_ref().err()).find(|error| is_one(error));
    let Some(error) = error else { return Ok(None) };
    let to = error.redirect_node().and_then(|(place, _)| {
        let (host, port) = place.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Address::named_by(asked, host, port.parse().ok()?)
    });
    let to =
        to.ok_or_else(|| Lost::because(format!("it redirects without a usable address: {error}")))?;
    Ok(Some(Redirect { to, is_for_now: error.kind() == ServerErrorKind::Ask.into() }))
}

fn is_one(error: &RedisError) -> bool {
    [ServerErrorKind::Moved, ServerErrorKind::Ask].map(Into::into).contains(&error.kind())
}
