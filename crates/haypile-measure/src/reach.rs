//! Connections to a TCP server, to test whether it runs.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Connects to the server that listens at an address, waiting for at most `patience`.
///
/// Where none does, the kernel may choose the very port asked for as this end's, and connect the
/// socket to itself; then the server that is being waited for could not even bind its port. Of the
/// thousands of attempts of many waits, one meets this.
///
/// # Errors
///
/// Those of [`TcpStream::connect_timeout`]; one of the kind `ConnectionRefused` where the socket
/// reached itself.
pub fn connect(address: &SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    of_another(TcpStream::connect_timeout(address, patience)?)
}

fn of_another(stream: TcpStream) -> io::Result<TcpStream> {
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use socket2::{Domain, Socket, Type};

    use super::*;

    #[test]
    fn a_socket_that_reaches_itself_is_no_server() {
        // Bound, so that nobody else gets the port, without listening.
        let held = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        held.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        let address = held.local_addr().unwrap();
        let refused = connect(&address.as_socket().unwrap(), Duration::from_secs(1)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        held.connect(&address).unwrap();
        let refused = of_another(held.into()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
