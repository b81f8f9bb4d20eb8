//! Addresses of servers.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::deadline::{Deadline, Lost};

/// The address of a memcached or Redis server: a host and a port, or the path of a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    /// A host and a port.
    Tcp { host: String, port: u16 },
    /// A socket on this machine.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Address {
    /// Parses a server's address: `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT`; `None` for
    /// anything else.
    pub(crate) fn parse(text: &str, default_port: u16) -> Option<Self> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(text) => text.split_once(']')?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = match rest {
            "" => default_port,
            rest => rest.strip_prefix(':')?.parse().ok()?,
        };
        Self::tcp(host, port)
    }

    fn tcp(host: &str, port: u16) -> Option<Self> {
        let is_wrong = |c: char| "@/, ".contains(c) || c.is_control();
        let is_host = !host.is_empty() && !host.contains(is_wrong);
        (is_host && port > 0).then(|| Self::Tcp { host: host.to_owned(), port })
    }

    /// Returns the address that one server (`server`) names for another; an empty host stands for the naming server's
    /// own host.
    pub(crate) fn named_by(server: &Self, host: &str, port: u16) -> Option<Self> {
        match server {
            Self::Tcp { host: own, .. } if host.is_empty() => Self::tcp(own, port),
            _ => Self::tcp(host, port),
        }
    }

    /// Resolves the host name of the server's address.
    pub(crate) fn resolve(&self) -> io::Result<Resolved> {
        match self {
            Self::Tcp { host, port } => {
                let addresses: Vec<_> = (host.as_str(), *port).to_socket_addrs()?.collect();
                Ok(Resolved::Tcp(addresses))
            }
            Self::Unix(path) => Ok(Resolved::Unix(SockAddr::unix(path)?)),
        }
    }
}

/// A resolved address of a server, to which a connection can be opened.
#[derive(Clone, Debug)]
pub(crate) enum Resolved {
    Tcp(Vec<SocketAddr>),
    Unix(SockAddr),
}

impl Resolved {
    /// Opens a connection to the server's address. A Unix socket is returned as a `TcpStream` too: reading, writing and
    /// timeouts are the same calls on both, and the memcached client accepts no other type.
    pub(crate) fn connect(&self, deadline: Deadline) -> Result<TcpStream, Lost> {
        match self {
            Self::Tcp(addresses) => {
                let mut lost = Lost::because("its name has no address");
                for address in addresses {
                    match TcpStream::connect_timeout(address, deadline.left()?) {
                        Ok(stream) => {
                            stream.set_nodelay(true).map_err(|error| Lost::new(&error))?;
                            return Ok(stream);
                        }
                        Err(error) => lost = deadline.lost(&error),
                    }
                }
                Err(lost)
            }
            Self::Unix(address) => {
                let left = deadline.left()?;
                let connect = || {
                    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
                    // Connecting blocks like a write while the server's accept queue is full.
                    socket.set_write_timeout(Some(left))?;
                    socket.connect(address)?;
                    Ok(TcpStream::from(OwnedFd::from(socket)))
                };
                connect().map_err(|error: io::Error| deadline.lost(&error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports() {
        for (text, shown) in [
            ("h", "h:7"),
            ("127.0.0.1:11211", "127.0.0.1:11211"),
            ("[::1]", "[::1]:7"),
            ("[::1]:1", "[::1]:1"),
        ] {
            assert_eq!(Address::parse(text, 7).unwrap().to_string(), shown);
        }
        for text in ["", ":1", "h:", "h:0", "h:65536", "h:x", "::1", "[::1", "[::1]1", "a@h", "a,b"]
        {
            assert_eq!(Address::parse(text, 7), None, "{text}");
        }
    }
}
