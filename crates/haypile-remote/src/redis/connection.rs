//! Connecting, and what an error means.

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

/// What a command came to: an answer, or the server's words for why there is none.
pub(super) type Reply<T> = Result<T, RedisError>;

/// How a Redis is connected to.
#[derive(Debug)]
pub(super) struct Redis {
    client: Client,
    /// For a node of a cluster, so that it can be gone on from it to another: where it is.
    in_cluster: Option<(Address, Login)>,
}

impl Redis {
    /// A server of its own.
    pub(super) fn alone(login: &Login, address: &Address, database: i64) -> RedisResult<Self> {
        Ok(Self { client: login.client(address, database)?, in_cluster: None })
    }

    /// A node of a cluster.
    pub(super) fn of_cluster(login: &Login, address: &Address) -> RedisResult<Self> {
        let in_cluster = Some((address.clone(), login.clone()));
        Ok(Self { client: login.client(address, 0)?, in_cluster })
    }

    /// Asks whether it answers.
    pub(super) fn check(&self, deadline: Deadline) -> Result<(), Lost> {
        let mut connection = self.connect(deadline)?;
        let reply = ask::<String>(&redis::cmd("PING"), &mut connection, deadline)?;
        reply.map(drop).map_err(|error| Lost::new(&error))
    }

    /// Deletes what the server has not got any more, or not yet, from the node that it names.
    fn delete_elsewhere(
        &self,
        elsewhere: Vec<(Redirect, &[u8])>,
        deadline: Deadline,
    ) -> Result<(), Lost> {
        let mut by_node: Vec<(Address, Pipeline)> = Vec::new();
        for (Redirect { to, is_for_now }, key) in elsewhere {
            let at = by_node.iter().position(|(address, _)| *address == to).unwrap_or_else(|| {
                by_node.push((to, lenient()));
                by_node.len() - 1
            });
            let pipeline = &mut by_node[at].1;
            if is_for_now {
                pipeline.cmd("ASKING");
            }
            pipeline.add_command(unlink(key));
        }
        let Some((_, login)) = &self.in_cluster else { return Ok(()) };
        for (address, pipeline) in by_node {
            let there = Self::of_cluster(login, &address).map_err(|error| Lost::new(&error))?;
            let mut connection = there.connect(deadline)?;
            for reply in ask_all(&pipeline, &mut connection, deadline)? {
                reply.map_err(|error| Lost::new(&error))?;
            }
        }
        Ok(())
    }
}

/// Tells a refusal of the server, after which the connection can be used on, from one that ends it.
fn judge<T>(result: RedisResult<T>, deadline: Deadline) -> Result<Reply<T>, Lost> {
    match result {
        Ok(answer) => Ok(Ok(answer)),
        Err(error) => match error.kind() {
            // It has been started anew, or its cluster changes, and it is not ready.
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

/// Asks one question.
pub(super) fn ask<T: FromRedisValue>(
    command: &Cmd,
    connection: &mut Connection,
    deadline: Deadline,
) -> Result<Reply<T>, Lost> {
    judge(command.query(connection), deadline)
}

/// Asks all in one write; each has a reply, in their order. The pipeline's own `query` would go on
/// after a reply that did not come, and wait for each of the others as long.
pub(super) fn ask_all(
    pipeline: &Pipeline,
    connection: &mut Connection,
    deadline: Deadline,
) -> Result<Vec<Reply<Value>>, Lost> {
    let sent = connection.send_packed_command(&pipeline.get_packed_pipeline());
    sent.map_err(|error| lost(&error, deadline))?;
    let reply = |_| judge(connection.recv_response().and_then(Value::extract_error), deadline);
    (0..pipeline.len()).map(reply).collect()
}

/// What a reply holds. A server that answers by something else answers another question.
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

    fn delete_all(
        &self,
        connection: &mut Connection,
        keys: &[Box<[u8]>],
        deadline: Deadline,
    ) -> Result<(), Lost> {
        // One command each, for the servers of a cluster take no keys of several slots in one.
        let mut pipeline = lenient();
        for key in keys {
            pipeline.add_command(unlink(key));
        }
        let mut elsewhere = Vec::new();
        for (key, reply) in keys.iter().zip(ask_all(&pipeline, connection, deadline)?) {
            let reply = [reply];
            if let Some((address, _)) = &self.in_cluster
                && let Some(redirect) = redirect(&reply, address)?
            {
                elsewhere.push((redirect, &**key));
                continue;
            }
            let [reply] = reply;
            reply.map_err(|error| Lost::new(&error))?;
        }
        self.delete_elsewhere(elsewhere, deadline)
    }
}

fn lost(error: &RedisError, deadline: Deadline) -> Lost {
    if error.is_timeout() { deadline.missed() } else { Lost::new(error) }
}
