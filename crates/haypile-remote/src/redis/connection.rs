//! Connections, and the meaning of errors.

use std::slice;

use redis::{
    Client, Cmd, Connection, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult,
    ServerErrorKind, Value, from_redis_value,
};

use super::cluster::redirect::{Redirect, redirect};
use super::login::Login;
use super::wire::{lenient, unlink};
use crate::address::Address;
use crate::deadline::{Deadline, Lost};
use crate::server::Connect;

/// The outcome of a command: an answer, or the server's reason for refusing.
pub(super) type Reply<T> = Result<T, RedisError>;

/// Connection settings of a Redis server.
#[derive(Debug)]
pub(super) struct Redis {
    client: Client,
    /// A cluster node's address and login, from which other nodes can be reached.
    in_cluster: Option<(Address, Login)>,
}

impl Redis {
    /// Returns a server that is not part of a cluster.
    pub(super) fn alone(login: &Login, address: &Address, database: i64) -> RedisResult<Self> {
        Ok(Self { client: login.client(address, database)?, in_cluster: None })
    }

    /// Returns a node of a cluster.
    pub(super) fn of_cluster(login: &Login, address: &Address) -> RedisResult<Self> {
        let in_cluster = Some((address.clone(), login.clone()));
        Ok(Self { client: login.client(address, 0)?, in_cluster })
    }

    /// Checks that the server answers.
    pub(super) fn check(&self, deadline: Deadline) -> Result<(), Lost> {
        let mut connection = self.connect(deadline)?;
        let reply = ask::<String>(&redis::cmd("PING"), &mut connection, deadline)?;
        reply.map(drop).map_err(|error| Lost::new(&error))
    }

    /// Deletes keys that the server no longer has, or does not have yet, from the nodes that it
    /// redirects to; returns the keys that these did not delete.
    fn delete_elsewhere<'k>(
        &self,
        elsewhere: Vec<(Redirect, &'k [u8])>,
        deadline: Deadline,
    ) -> Vec<&'k [u8]> {
        let mut by_node: Vec<(Address, Pipeline, Vec<&[u8]>)> = Vec::new();
        for (Redirect { to, is_for_now }, key) in elsewhere {
            let at = by_node.iter().position(|(address, ..)| *address == to).unwrap_or_else(|| {
                by_node.push((to, lenient(), Vec::new()));
                by_node.len() - 1
            });
            let (_, pipeline, keys) = &mut by_node[at];
            if is_for_now {
                pipeline.cmd("ASKING");
            }
            pipeline.add_command(unlink(key));
            keys.push(key);
        }
        let delete = |address: &Address, pipeline: &Pipeline| {
            let Some((_, login)) = &self.in_cluster else { return Ok(()) };
            let there = Self::of_cluster(login, address).map_err(|error| Lost::new(&error))?;
            let replies = ask_all(pipeline, &mut there.connect(deadline)?, deadline)?;
            replies
                .into_iter()
                .try_for_each(|reply| reply.map(drop).map_err(|error| Lost::new(&error)))
        };
        let mut left = Vec::new();
        for (address, pipeline, keys) in by_node {
            if let Err(lost) = delete(&address, &pipeline) {
                log::warn!("{address} does not delete the keys that moved there: {lost}");
                left.extend(keys);
            }
        }
        left
    }
}

/// Tells a refusal of the server, after which the connection stays usable, from an error that ends
/// it.
fn judge<T>(result: RedisResult<T>, deadline: Deadline) -> Result<Reply<T>, Lost> {
    match result {
        Ok(answer) => Ok(Ok(answer)),
        Err(error) => match error.kind() {
            // The server has restarted or its cluster changes, and it is not ready.
            ErrorKind::Server(
                ServerErrorKind::BusyLoading
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::TryAgain,
            ) => Err(Lost::new(&error)),
            ErrorKind::Server(_) | ErrorKind::Extension => Ok(Err(error)),
            _ if error.is_timeout() => Err(deadline.missed()),
            _ => Err(Lost::new(&error)),
        },
    }
}

/// Sends one command and reads its reply.
pub(super) fn ask<T: FromRedisValue>(
    command: &Cmd,
    connection: &mut Connection,
    deadline: Deadline,
) -> Result<Reply<T>, Lost> {
    let mut pipeline = lenient();
    pipeline.add_command(command.clone());
    let reply = ask_all(&pipeline, connection, deadline)?.pop();
    value(reply.expect("each command has its reply"))
}

/// Sends all commands in one write and returns the replies in their order. The pipeline's own
/// `query` would go on after a missing reply, and wait the full timeout for each of the others.
pub(super) fn ask_all(
    pipeline: &Pipeline,
    connection: &mut Connection,
    deadline: Deadline,
) -> Result<Vec<Reply<Value>>, Lost> {
    let sent = connection.send_packed_command(&pipeline.get_packed_pipeline());
    sent.map_err(|error| lost(&error, deadline))?;
    let timeout = deadline.timeout();
    // The timeout of each read on a kept connection.
    let mut waits = timeout;
    let mut replies = Vec::with_capacity(pipeline.len());
    for _ in 0..pipeline.len() {
        let left = deadline.left()?;
        // Rarely, because setting it is a system call; usually hardly any time has passed.
        if waits.saturating_sub(left) > timeout / 8 {
            connection.set_read_timeout(Some(left)).map_err(|error| lost(&error, deadline))?;
            waits = left;
        }
        replies.push(judge(connection.recv_response().and_then(Value::extract_error), deadline)?);
    }
    if waits != timeout {
        connection.set_read_timeout(Some(timeout)).map_err(|error| lost(&error, deadline))?;
    }
    Ok(replies)
}

/// Converts a reply. A reply of another type belongs to another command.
pub(super) fn value<T: FromRedisValue>(reply: Reply<Value>) -> Result<Reply<T>, Lost> {
    match reply {
        Ok(reply) => from_redis_value(reply).map(Ok).map_err(|error| Lost::new(&error)),
        Err(refusal) => Ok(Err(refusal)),
    }
}

impl Connect for Redis {
    type Connection = Connection;

    fn connect(&self, deadline: Deadline) -> Result<Connection, Lost> {
        let (left, timeout) = (deadline.left()?, Some(deadline.timeout()));
        let connect = || {
            let connection = self.client.get_connection_with_timeout(left)?;
            connection.set_read_timeout(timeout)?;
            connection.set_write_timeout(timeout)?;
            Ok(connection)
        };
        connect().map_err(|error: RedisError| lost(&error, deadline))
    }

    fn delete_all<'k>(
        &self,
        connection: &mut Connection,
        keys: &'k [Box<[u8]>],
        deadline: Deadline,
        elsewhere: Deadline,
    ) -> Result<Vec<&'k [u8]>, Lost> {
        // One command each: the servers of a cluster refuse keys of several slots in one command.
        let mut pipeline = lenient();
        for key in keys {
            pipeline.add_command(unlink(key));
        }
        let mut redirected = Vec::new();
        for (key, reply) in keys.iter().zip(ask_all(&pipeline, connection, deadline)?) {
            if let Some((address, _)) = &self.in_cluster
                && let Some(redirect) = redirect(slice::from_ref(&reply), address)?
            {
                redirected.push((redirect, &**key));
                continue;
            }
            reply.map_err(|error| Lost::new(&error))?;
        }
        Ok(self.delete_elsewhere(redirected, elsewhere))
    }
}

fn lost(error: &RedisError, deadline: Deadline) -> Lost {
    if error.is_timeout() { deadline.missed() } else { Lost::new(error) }
}
