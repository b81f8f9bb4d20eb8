//! An emulator of a network link, in user space: a rate in each direction, a round trip, jitter and
//! loss between clients and one origin.
//!
//! [`LinkEmulator`] listens on two ports of 127.0.0.1. Clients connect to them as if they were the
//! origin; each connection is relayed to the origin over one [`Link`] that all connections share.
//! [`Link`] alone does the same between streams of any kind, in the time of tokio, which a test can
//! pause.
//!
//! - **Rate.** Each direction has one bucket. Connections take turns in it, a few packets of 1,460
//!   bytes at a time (a millisecond's worth of them at high rates), so that they share it evenly. The
//!   bytes of TCP and IP headers do not count.
//! - **Round trip.** Bytes take half of it in each direction, plus jitter that never reorders the
//!   bytes of one connection. The first bytes of a connection wait for one round trip more, in which
//!   TCP connects, and on the port [`tls_address`](LinkEmulator::tls_address) for another one, in
//!   which TLS 1.3 shakes hands. Both ports carry the same bytes, so that an experiment over plain
//!   HTTP costs the time of HTTPS; the bytes of the hand-shake are not sent.
//! - **Loss.** A lost packet comes a retransmission later: a round trip or 200 ms, whichever is longer,
//!   and twice that if it is lost again. It holds up the connection's bytes behind it, and stops its
//!   sender once the memory below is full. That is all: the link has no congestion control and no slow
//!   start, so that a connection has its full share of the rate at once and keeps it after a loss.
//!   Real transfers over lossy or long links are slower.
//! - **Memory.** A connection has at most about what the link carries in a round trip under way in each
//!   direction, between 64 KiB and 1 MiB; its sender waits for the rest. One connection is thereby
//!   limited to 1 MiB in half a round trip. The buffers of the system's sockets come on top.
//! - **Time.** Every deadline is computed from the rate and not from when the emulator woke up. Timers
//!   have a resolution of a millisecond: bytes come 1 to 2 ms late in each direction, never early, and
//!   such errors do not add up over a transfer. A round trip measures some 3 ms more than the link has.
//!
//! The same seed makes the same jitter and losses where connections and the pieces of their bytes come
//! in the same order.
//!
//! ```
//! use haypile_origin::link::{LinkEmulator, LinkProfile};
//! # use haypile_origin::server::{Script, ScriptedOrigin};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let origin = ScriptedOrigin::start_in_thread(Script::new([http::Response::new("a page")]))?;
//! let profile: LinkProfile = "3g,loss=1%".parse()?;
//! let link = LinkEmulator::start_in_thread(profile, 7, origin.address())?;
//! // Clients send requests to link.address(), or to link.tls_address() in the place of HTTPS.
//! assert_eq!((link.connections(), link.bytes_down()), (0, 0));
//! # Ok(())
//! # }
//! ```

mod bucket;
mod chance;
mod direction;
mod emulator;
mod parse;
mod profile;
mod relay;

pub use emulator::{LinkEmulator, LinkOrigins};
pub use parse::LinkProfileError;
pub use profile::LinkProfile;
pub use relay::{Link, RelayEnd};

/// The bytes that one packet carries.
const PACKET_BYTES: usize = 1_460;
