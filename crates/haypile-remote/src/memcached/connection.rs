//! Requests in the meta protocol.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};

use memcache::exp::{
    DeleteOptions, Error, GetOptions, MetaCommand, MetaCommandResult, MetaConnection, build_delete,
    build_get, parse_meta_result,
};

use crate::address::Resolved;
use crate::deadline::{Deadline, Lost};
use crate::server::Connect;

/// A key that is read to see whether the server answers.
const HELLO: &str = "haypile:hello";

/// An open connection to a memcached server.
pub(super) struct Connection {
    meta: MetaConnection,
    /// The socket under `meta`, which would discard all answers to a batch if one of them is an
    /// error.
    socket: TcpStream,
    /// The number of the next request, which its answer repeats.
    next: u32,
    /// The number of the connection, in the order in which connections to the server were opened.
    pub(super) number: u64,
}

/// The outcome of a memcached command: the parsed answer, or the text with which the server refused the command.
pub(super) type Reply = Result<MetaCommandResult, String>;

impl Connection {
    /// Sends one command to the memcached server and reads its reply.
    pub(super) fn ask(&mut self, command: MetaCommand, deadline: Deadline) -> Result<Reply, Lost> {
        let mut replies = self.ask_all(vec![command], deadline)?;
        Ok(replies.pop().expect("each command has its reply"))
    }

    /// Sends several commands to the memcached server in one write, and returns the replies in their order. The
    /// commands have to fit in the sockets' buffers, and so do the answers unless they are short, because nothing is
    /// read before everything is written.
    pub(super) fn ask_all(
        &mut self,
        commands: Vec<MetaCommand>,
        deadline: Deadline,
    ) -> Result<Vec<Reply>, Lost> {
        let first = self.next;
        let (mut bytes, mut has_values) = (Vec::new(), false);
        for command in commands {
            let start = bytes.len();
            let tagged = command.flag(format!("O{}", self.next));
            tagged.encode_into(&mut bytes).map_err(|error| Lost::new(&error))?;
            has_values |= asks_for_value(&bytes[start..]);
            self.next = self.next.wrapping_add(1);
        }
        self.write(&bytes, deadline)?;
        let count = self.next.wrapping_sub(first);
        let tags = (0..count).map(|number| first.wrapping_add(number));
        tags.map(|tag| self.reply(tag, has_values, deadline)).collect()
    }

    fn write(&mut self, mut bytes: &[u8], deadline: Deadline) -> Result<(), Lost> {
        while !bytes.is_empty() {
            let left = deadline.left()?;
            self.socket.set_write_timeout(Some(left)).map_err(|error| deadline.lost(&error))?;
            match self.socket.write(bytes) {
                Ok(0) => return Err(Lost::because("it no longer accepts data")),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(deadline.lost(&error)),
            }
        }
        Ok(())
    }

    fn reply(&mut self, tag: u32, has_values: bool, deadline: Deadline) -> Result<Reply, Lost> {
        let response = loop {
            self.meta.set_io_timeout(Some(deadline.left()?));
            match self.meta.receive() {
                Ok(response) => break response,
                // An error is a line of its own without a number; the next answer follows it.
                Err(Error::Rejected(why) | Error::Server(why)) => return Ok(Err(why)),
                // A signal came. What has been read of an answer is gone: a line that lacks its
                // beginning has not the number, but the rest of a value may look like an answer.
                Err(Error::Io(error))
                    if error.kind() == io::ErrorKind::Interrupted && !has_values => {}
                Err(Error::Io(error)) => return Err(deadline.lost(&error)),
                Err(error) => return Err(Lost::new(&error)),
            }
        };
        let result = parse_meta_result(response).map_err(|error| Lost::new(&error))?;
        if result.opaque.as_deref() == Some(tag.to_string().as_bytes()) {
            Ok(Ok(result))
        } else {
            Err(Lost::because("it answered another question"))
        }
    }
}

/// Whether a command is a `mg` with the flag that asks for the value.
fn asks_for_value(command: &[u8]) -> bool {
    let mut words = command.trim_ascii_end().split(|byte| *byte == b' ');
    words.next() == Some(b"mg") && words.skip(1).any(|flag| flag == b"v")
}

fn hello() -> MetaCommand {
    let mut options = GetOptions::default();
    options.value = false;
    build_get(HELLO, &options).expect("the options are in range")
}

/// The connection settings of a memcached server (its address), with a count of the connections that were opened.
#[derive(Debug)]
pub(super) struct Memcached {
    pub(super) address: Resolved,
    /// The number of connections that were opened.
    opened: AtomicU64,
}

impl Memcached {
    pub(super) fn new(address: Resolved) -> Self {
        Self { address, opened: AtomicU64::new(0) }
    }

    /// Returns the number of the connection to the memcached server that was opened last.
    pub(super) fn last_connection(&self) -> u64 {
        self.opened.load(Ordering::Acquire)
    }

    /// Checks that the memcached server understands the meta protocol of version 1.6.10, in which even a miss repeats
    /// the request's number.
    pub(super) fn check(&self, deadline: Deadline) -> Result<(), Lost> {
        let old = |why: &dyn std::fmt::Display| {
            Lost::because(format!("it does not answer as memcached 1.6.10 or later does ({why})"))
        };
        match self.connect(deadline)?.ask(hello(), deadline) {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(why)) => Err(old(&why)),
            Err(lost) if lost.is_late => Err(lost),
            Err(lost) => Err(old(&lost)),
        }
    }
}

impl Connect for Memcached {
    type Connection = Connection;

    fn connect(&self, deadline: Deadline) -> Result<Connection, Lost> {
        let socket = self.address.connect(deadline)?;
        let meta = socket.try_clone().map_err(|error| Lost::new(&error))?;
        let number = self.opened.fetch_add(1, Ordering::AcqRel) + 1;
        Ok(Connection { meta: MetaConnection::from_stream(meta), socket, next: 0, number })
    }

    fn greet(&self, connection: &mut Connection, deadline: Deadline) -> Result<(), Lost> {
        connection.ask(hello(), deadline)?.map(drop).map_err(Lost::because)
    }

    fn into_socket(connection: Connection) -> TcpStream {
        connection.socket
    }

    fn delete_all<'k>(
        &self,
        connection: &mut Connection,
        keys: &'k [Box<[u8]>],
        deadline: Deadline,
        _elsewhere: Deadline,
    ) -> Result<Vec<&'k [u8]>, Lost> {
        let commands = keys.iter().map(|key| build_delete(key, &DeleteOptions::default()));
        let commands = commands.collect::<Result<_, _>>().map_err(|error| Lost::new(&error))?;
        for reply in connection.ask_all(commands, deadline)? {
            reply.map_err(Lost::because)?;
        }
        Ok(Vec::new())
    }
}
