//! Connection settings of a server, and the deletion of what it no longer has.

use std::net::TcpStream;
use std::slice;

use redis::{Pipeline, cmd};

use super::cluster::redirect::{Redirect, redirect};
use super::connection::{Connection, ask, ask_all};
use super::login::Login;
use super::wire::{lenient, unlink};
use crate::address::Address;
use crate::deadline::{Deadline, Lost};
use crate::server::Connect;

/// The connection settings of a Redis server: address, login and database.
#[derive(Debug)]
pub(super) struct Redis {
    address: Address,
    login: Login,
    database: i64,
    is_in_cluster: bool,
}

impl Redis {
    /// Creates the connection settings of a Redis server that is not part of a cluster.
    pub(super) fn alone(login: Login, address: Address, database: i64) -> Self {
        Self { address, login, database, is_in_cluster: false }
    }

    /// Creates the connection settings of a node of a Redis Cluster.
    pub(super) fn of_cluster(login: Login, address: Address) -> Self {
        Self { address, login, database: 0, is_in_cluster: true }
    }

    /// Checks that the Redis server answers.
    pub(super) fn check(&self, deadline: Deadline) -> Result<(), Lost> {
        self.greet(&mut self.connect(deadline)?, deadline)
    }

    /// Deletes keys that the server no longer has, or does not have yet, from the nodes that it
    /// redirects to; returns the keys that these did not delete. A deletion that is done late only
    /// forgets a value, so that its connection needs no fence.
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
            let there = Self::of_cluster(self.login.clone(), address.clone());
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

impl Connect for Redis {
    type Connection = Connection;

    fn connect(&self, deadline: Deadline) -> Result<Connection, Lost> {
        let resolved = self.address.resolve().map_err(|error| Lost::new(&error))?;
        let mut connection = Connection::new(resolved.connect(deadline)?);
        self.login.log_in(&mut connection, self.database, deadline)?;
        Ok(connection)
    }

    fn greet(&self, connection: &mut Connection, deadline: Deadline) -> Result<(), Lost> {
        let reply = ask::<String>(&cmd("PING"), connection, deadline)?;
        reply.map(drop).map_err(|error| Lost::new(&error))
    }

    fn into_socket(connection: Connection) -> TcpStream {
        connection.into_socket()
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
            if self.is_in_cluster
                && let Some(redirect) = redirect(slice::from_ref(&reply), &self.address)?
            {
                redirected.push((redirect, &**key));
                continue;
            }
            reply.map_err(|error| Lost::new(&error))?;
        }
        Ok(self.delete_elsewhere(redirected, elsewhere))
    }
}
