//! The link, between two streams.

use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, split};
use tokio::time::{Instant, sleep};

use super::bucket::Bucket;
use super::chance::Chance;
use super::direction::{Direction, DirectionEnd};
use super::profile::{LinkProfile, quantum, queue_bytes};

/// An emulated network link, which connections between streams of any kind share.
///
/// Everything happens in the time of tokio. In a test that pauses it, a transfer takes exactly the
/// time that it would take, and no time of the machine:
///
/// ```
/// use haypile_origin::link::{Link, LinkProfile, RelayEnd};
/// use std::time::Duration;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
/// use tokio::time::Instant;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let profile: LinkProfile = "rtt=20ms".parse()?;
/// let link = Link::new(profile, 7)?;
/// let (mut client, mut client_side) = duplex(1 << 16);
/// let (mut origin, mut origin_side) = duplex(1 << 16);
/// let start = Instant::now();
/// let talk = async move {
///     client.write_all(b"request").await?;
///     let mut request = [0; 7];
///     origin.read_exact(&mut request).await?;
///     Ok::<_, std::io::Error>(start.elapsed())
/// };
/// let (end, elapsed) = tokio::join!(link.relay(&mut client_side, &mut origin_side, 1), talk);
/// assert_eq!(end, RelayEnd::Closed);
/// // One round trip to connect, and half of one for the request.
/// assert!(elapsed? >= Duration::from_millis(30));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Link {
    profile: LinkProfile,
    seed: u64,
    down: Bucket,
    up: Bucket,
    bytes_down: AtomicU64,
    bytes_up: AtomicU64,
    connections: AtomicU64,
    ended_connections: AtomicU64,
}

/// The way in which a connection over a link ended: by both sides in order, or by an error of one
/// side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayEnd {
    /// Both directions have ended in order, and both streams are shut down.
    Closed,
    /// One side has ended the connection with an error, and what it had sent before has been
    /// delivered. The caller resets the other one.
    Reset,
}

/// Directions, for their chances.
const DOWN: u8 = 0;
const UP: u8 = 1;
const CONNECT: u8 = 2;

impl Link {
    /// Returns an emulated link without connections. The seed decides jitter and losses.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if a property of the profile is out of its range.
    pub fn new(profile: LinkProfile, seed: u64) -> io::Result<Self> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        profile.check().map_err(invalid)?;
        let down = Bucket::new(profile.down_bits_per_second);
        let up = Bucket::new(profile.up_bits_per_second);
        Ok(Self {
            profile,
            seed,
            down,
            up,
            bytes_down: AtomicU64::new(0),
            bytes_up: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            ended_connections: AtomicU64::new(0),
        })
    }

    /// Relays one connection over the link until it ends. Its first bytes pass after this number of
    /// round trips: 1 for TCP, 2 with TLS 1.3 and 3 with TLS 1.2. Dropping the future ends the
    /// connection.
    pub async fn relay<C, O>(&self, client: &mut C, origin: &mut O, round_trips: u32) -> RelayEnd
    where
        C: AsyncRead + AsyncWrite + Unpin,
        O: AsyncRead + AsyncWrite + Unpin,
    {
        self.relay_since(Instant::now(), client, origin, round_trips).await
    }

    /// Relays a connection over the link until it ends; the client opened it at the time `start`,
    /// from which the handshake counts.
    pub(super) async fn relay_since<C, O>(
        &self,
        start: Instant,
        client: &mut C,
        origin: &mut O,
        round_trips: u32,
    ) -> RelayEnd
    where
        C: AsyncRead + AsyncWrite + Unpin,
        O: AsyncRead + AsyncWrite + Unpin,
    {
        let place = self.connections.fetch_add(1, Ordering::SeqCst);
        let _open = Open(&self.ended_connections);
        let mut connect = self.chance(place, CONNECT);
        let opens = start + (0..2 * round_trips).map(|_| connect.next(0)).sum::<Duration>();
        let back = self.profile.round_trip / 2;
        let (from_client, to_client) = split(client);
        let (from_origin, to_origin) = split(origin);
        let up = Direction {
            bucket: &self.up,
            chance: self.chance(place, UP),
            passed: &self.bytes_up,
            quantum: quantum(self.profile.up_bits_per_second),
            queue_bytes: self.queue_bytes(self.profile.up_bits_per_second),
            opens,
        };
        let down = Direction {
            bucket: &self.down,
            chance: self.chance(place, DOWN),
            passed: &self.bytes_down,
            quantum: quantum(self.profile.down_bits_per_second),
            queue_bytes: self.queue_bytes(self.profile.down_bits_per_second),
            // The origin knows of the connection when the client's last packet of it has come.
            opens: opens + back,
        };
        let mut up = pin!(up.run(from_client, to_origin));
        let mut down = pin!(down.run(from_origin, to_client));
        tokio::select! {
            end = &mut up => finish(end, down, back).await,
            end = &mut down => finish(end, up, back).await,
        }
    }

    fn chance(&self, connection: u64, direction: u8) -> Chance {
        Chance::new(&self.profile, self.seed, connection, direction)
    }

    fn queue_bytes(&self, bits_per_second: Option<u64>) -> usize {
        queue_bytes(bits_per_second, self.profile.round_trip + self.profile.jitter)
    }

    /// Returns the properties of the emulated link: rates, round trip, losses.
    pub fn profile(&self) -> &LinkProfile {
        &self.profile
    }

    /// Returns the number of bytes that have passed the link towards clients.
    pub fn bytes_down(&self) -> u64 {
        self.bytes_down.load(Ordering::SeqCst)
    }

    /// Returns the number of bytes that have passed the link towards the origin.
    pub fn bytes_up(&self) -> u64 {
        self.bytes_up.load(Ordering::SeqCst)
    }

    /// Returns the number of connections that the link has relayed so far.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }

    /// Returns the number of open connections over the link.
    pub fn open_connections(&self) -> u64 {
        let ended = self.ended_connections.load(Ordering::SeqCst);
        self.connections().saturating_sub(ended)
    }
}

/// Waits for the end of a connection after that of one direction. `back` is the way of a reset.
async fn finish(
    first: DirectionEnd,
    other: impl Future<Output = DirectionEnd>,
    back: Duration,
) -> RelayEnd {
    match first {
        DirectionEnd::Reset => return RelayEnd::Reset,
        DirectionEnd::Closed => match other.await {
            DirectionEnd::Closed => return RelayEnd::Closed,
            DirectionEnd::Reset => {}
            DirectionEnd::Refused => sleep(back).await,
        },
        // What the refusing side has sent before comes first.
        DirectionEnd::Refused => {
            tokio::join!(other, sleep(back));
        }
    }
    RelayEnd::Reset
}

/// An open connection: it has ended when this is dropped.
struct Open<'a>(&'a AtomicU64);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
