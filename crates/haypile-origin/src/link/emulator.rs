//! The link, between sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::profile::LinkProfile;
use super::relay::{Link, RelayEnd};
use crate::running::{Running, listen};

/// After a failure to accept a connection, such as too many open files.
const REST: Duration = Duration::from_millis(50);
/// The round trips in which TCP connects.
const TCP_ROUND_TRIPS: u32 = 1;
/// The round trips in which TLS 1.3 shakes hands.
const TLS_ROUND_TRIPS: u32 = 1;

/// A running emulator of a network link to one origin. Dropping it ends the emulator and its
/// connections.
///
/// `TCP_NODELAY` is set on all its sockets. A connection that the origin refuses is reset after a
/// round trip.
#[derive(Debug)]
pub struct LinkEmulator {
    addresses: Addresses,
    link: Arc<Link>,
    running: Running,
}

#[derive(Clone, Copy, Debug)]
struct Addresses {
    plain: SocketAddr,
    tls: SocketAddr,
}

/// The servers behind a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkOrigins {
    /// The server of connections without TLS.
    pub plain: SocketAddr,
    /// The server of TLS, whose clients shake hands over the link; `None` if clients that would use TLS are relayed to
    /// the plain server, after one more round trip.
    pub tls: Option<SocketAddr>,
}

impl From<SocketAddr> for LinkOrigins {
    fn from(plain: SocketAddr) -> Self {
        Self { plain, tls: None }
    }
}

impl LinkEmulator {
    /// Starts a link emulator on the caller's async runtime. The seed decides jitter and losses.
    ///
    /// # Errors
    ///
    /// If the caller has no runtime, if there are no free ports, or `InvalidInput` if a property of
    /// the profile is out of its range.
    pub fn start(
        profile: LinkProfile,
        seed: u64,
        origins: impl Into<LinkOrigins>,
    ) -> io::Result<Self> {
        let link = Arc::new(Link::new(profile, seed)?);
        let (of_server, origins) = (Arc::clone(&link), origins.into());
        let (running, addresses) = Running::on_runtime(|ended| open(of_server, origins, ended))?;
        Ok(Self { addresses, link, running })
    }

    /// Starts a link emulator on a separate thread with its own async runtime, so that it does not
    /// use the threads of the measured program. The seed decides jitter and losses.
    ///
    /// # Errors
    ///
    /// If there are no free ports, if the thread cannot be started, or `InvalidInput` if a property
    /// of the profile is out of its range.
    pub fn start_in_thread(
        profile: LinkProfile,
        seed: u64,
        origins: impl Into<LinkOrigins>,
    ) -> io::Result<Self> {
        let link = Arc::new(Link::new(profile, seed)?);
        let (of_server, origins) = (Arc::clone(&link), origins.into());
        let (running, addresses) =
            Running::in_thread("link", |ended| open(of_server, origins, ended))?;
        Ok(Self { addresses, link, running })
    }

    /// Stops the link emulator, and waits until its connections are closed and its tasks have
    /// ended. Dropping it ends the tasks as well, without waiting for them.
    pub async fn stop(self) {
        self.running.stop().await;
    }

    /// Returns the address of the link for connections without TLS.
    pub fn address(&self) -> SocketAddr {
        self.addresses.plain
    }

    /// Returns the address of the link for connections with TLS. If there is no [TLS server](LinkOrigins::tls), they have
    /// the delay of a TLS 1.3 handshake, one round trip more, and the transmitted bytes are the same as without TLS.
    pub fn tls_address(&self) -> SocketAddr {
        self.addresses.tls
    }

    /// Returns the properties of the emulated link: rates, round trip, losses.
    pub fn profile(&self) -> &LinkProfile {
        self.link.profile()
    }

    /// Returns the number of bytes that have passed the link towards clients, over all connections.
    pub fn bytes_down(&self) -> u64 {
        self.link.bytes_down()
    }

    /// Returns the number of bytes that have passed the link towards the origin, over all
    /// connections.
    pub fn bytes_up(&self) -> u64 {
        self.link.bytes_up()
    }

    /// Returns the number of connections that the origin has accepted, on both ports.
    pub fn connections(&self) -> u64 {
        self.link.connections()
    }

    /// Returns the number of open connections over the link.
    pub fn open_connections(&self) -> u64 {
        self.link.open_connections()
    }
}

/// Listens on two free ports. Returns what relays their connections, and the addresses.
fn open(
    link: Arc<Link>,
    origins: LinkOrigins,
    ended: oneshot::Receiver<()>,
) -> io::Result<(impl Future<Output = ()> + Send + 'static, Addresses)> {
    let (plain, plain_address) = listen()?;
    let (tls, tls_address) = listen()?;
    let addresses = Addresses { plain: plain_address, tls: tls_address };
    Ok((serve(plain, tls, link, origins, ended), addresses))
}

/// Relays all connections. Where this future is dropped, they end too.
async fn serve(
    plain: TcpListener,
    tls: TcpListener,
    link: Arc<Link>,
    origins: LinkOrigins,
    mut ended: oneshot::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    let (of_tls, tls_round_trips) = match origins.tls {
        // The handshake takes its round trips itself.
        Some(server) => (server, TCP_ROUND_TRIPS),
        None => (origins.plain, TCP_ROUND_TRIPS + TLS_ROUND_TRIPS),
    };
    loop {
        let (accepted, origin, round_trips) = tokio::select! {
            accepted = plain.accept() => (accepted, origins.plain, TCP_ROUND_TRIPS),
            accepted = tls.accept() => (accepted, of_tls, tls_round_trips),
            // Those that have ended are forgotten.
            Some(_) = connections.join_next() => continue,
            _ = &mut ended => break,
        };
        match accepted {
            Ok((client, _)) => {
                connections.spawn(connection(Arc::clone(&link), client, origin, round_trips));
            }
            Err(_) => sleep(REST).await,
        }
    }
    drop((plain, tls));
    connections.shutdown().await;
}

async fn connection(
    link: Arc<Link>,
    mut client: TcpStream,
    origin_address: SocketAddr,
    round_trips: u32,
) {
    let start = Instant::now();
    let Ok(mut origin) = TcpStream::connect(origin_address).await else {
        sleep_until(start + link.profile().round_trip).await;
        // It fails if the client has ended the connection already, like the calls below.
        let _ = client.set_zero_linger();
        return;
    };
    for stream in [&client, &origin] {
        let _ = stream.set_nodelay(true);
    }
    if link.relay_since(start, &mut client, &mut origin, round_trips).await == RelayEnd::Reset {
        for stream in [&client, &origin] {
            let _ = stream.set_zero_linger();
        }
    }
}
