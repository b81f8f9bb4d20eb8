//! Connections to Redis: the client crate's requests and replies on a socket of this crate.
//!
//! The crate's own connection does not give its socket away, which [fences](crate::fence) need.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use redis::{
    Cmd, ErrorKind, FromRedisValue, Parser, Pipeline, RedisError, RedisResult, ServerErrorKind,
    Value, from_redis_value,
};

use super::wire::lenient;
use crate::deadline::{Deadline, Lost};

/// The outcome of a Redis command: an answer, or the server's reason for refusing.
pub(super) type Reply<T> = Result<T, RedisError>;

/// An open connection to a Redis server.
pub(super) struct Connection {
    socket: TimedSocket,
    /// The parser, which holds what has been read of the next reply.
    parser: Parser,
}

/// A socket with the timeouts that are set on it.
struct TimedSocket {
    stream: TcpStream,
    read_timeout: Option<Duration>,
    write_timeout: Option<Duration>,
}

impl Connection {
    /// Creates a Redis connection from a connected socket.
    pub(super) fn new(stream: TcpStream) -> Self {
        let socket = TimedSocket { stream, read_timeout: None, write_timeout: None };
        Self { socket, parser: Parser::new() }
    }

    /// Returns the socket of the Redis connection.
    pub(super) fn into_socket(self) -> TcpStream {
        self.socket.stream
    }

    fn send(&mut self, mut bytes: &[u8], deadline: Deadline) -> Result<(), Lost> {
        while !bytes.is_empty() {
            match self.socket.write(bytes, deadline)? {
                0 => return Err(Lost::because("it no longer accepts data")),
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }

    fn receive(&mut self, deadline: Deadline) -> Result<Reply<Value>, Lost> {
        let mut reader = ReplyReader { socket: &mut self.socket, deadline, lost: None };
        let reply = self.parser.parse_value(&mut reader);
        match reader.lost {
            Some(lost) => Err(lost),
            None => judge(reply.and_then(Value::extract_error)),
        }
    }
}

impl TimedSocket {
    fn write(&mut self, bytes: &[u8], deadline: Deadline) -> Result<usize, Lost> {
        loop {
            let left = deadline.left()?;
            if is_due(self.write_timeout, left) {
                self.stream.set_write_timeout(Some(left)).map_err(|error| deadline.lost(&error))?;
                self.write_timeout = Some(left);
            }
            match self.stream.write(bytes) {
                // A signal, or a timeout that was set when less time was left.
                Err(error) if is_early(&error) => self.write_timeout = None,
                written => return written.map_err(|error| deadline.lost(&error)),
            }
        }
    }

    fn read(&mut self, buffer: &mut [u8], deadline: Deadline) -> Result<usize, Lost> {
        loop {
            let left = deadline.left()?;
            if is_due(self.read_timeout, left) {
                self.stream.set_read_timeout(Some(left)).map_err(|error| deadline.lost(&error))?;
                self.read_timeout = Some(left);
            }
            match self.stream.read(buffer) {
                // A signal, or a timeout that was set when less time was left.
                Err(error) if is_early(&error) => self.read_timeout = None,
                read => return read.map_err(|error| deadline.lost(&error)),
            }
        }
    }
}

/// Whether the timeout on a socket differs too much from the remaining time. Setting it is a system
/// call, and usually hardly any time has passed.
fn is_due(timeout: Option<Duration>, left: Duration) -> bool {
    timeout.is_none_or(|timeout| timeout.abs_diff(left) > left / 8)
}

/// Whether a call can be repeated while time is left.
fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

/// Reads for the parser, and keeps the reason for which it cannot.
struct ReplyReader<'a> {
    socket: &'a mut TimedSocket,
    deadline: Deadline,
    lost: Option<Lost>,
}

impl Read for ReplyReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.read(buffer, self.deadline).map_err(|lost| {
            self.lost = Some(lost);
            io::ErrorKind::Other.into()
        })
    }
}

/// Tells a refusal of the server, after which the connection stays usable, from an error that ends
/// it.
fn judge<T>(result: RedisResult<T>) -> Result<Reply<T>, Lost> {
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
            _ => Err(Lost::new(&error)),
        },
    }
}

/// Sends one command to the Redis server and reads its reply.
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

/// Sends a pipeline of commands to the Redis server in one write, and returns the replies in their order.
pub(super) fn ask_all(
    pipeline: &Pipeline,
    connection: &mut Connection,
    deadline: Deadline,
) -> Result<Vec<Reply<Value>>, Lost> {
    connection.send(&pipeline.get_packed_pipeline(), deadline)?;
    (0..pipeline.len()).map(|_| connection.receive(deadline)).collect()
}

/// Converts a Redis reply to the expected type. A reply of another type is treated as a lost connection, because it
/// belongs to another command.
pub(super) fn value<T: FromRedisValue>(reply: Reply<Value>) -> Result<Reply<T>, Lost> {
    match reply {
        Ok(reply) => from_redis_value(reply).map(Ok).map_err(|error| Lost::new(&error)),
        Err(refusal) => Ok(Err(refusal)),
    }
}
