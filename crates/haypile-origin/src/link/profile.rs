//! The properties of a link.

use std::time::Duration;

use super::PACKET_BYTES;
use super::parse::LinkProfileError;

/// The longest round trip that an emulated network link may have.
pub(super) const MOST_ROUND_TRIP: Duration = Duration::from_mins(1);
/// The highest rate that an emulated network link may have, in bits per second.
pub(super) const MOST_BITS_PER_SECOND: u64 = 1_000_000_000_000;
/// The highest probability with which an emulated network link may lose a packet.
pub(super) const MOST_LOSS: f64 = 0.5;

/// The memory in bytes that each entry of a link's queue takes in addition to the transmitted bytes.
pub(super) const ENTRY_BYTES: usize = 128;
/// The time by which bytes may stay longer, because timers are late and turns are taken early.
const SLACK: Duration = Duration::from_millis(5);
const LEAST_QUEUE_BYTES: usize = 64 << 10;
const MOST_QUEUE_BYTES: usize = 1 << 20;
/// The most bytes that have one turn in a bucket.
const MOST_QUANTUM_BYTES: usize = 44 * PACKET_BYTES;

/// The properties of an emulated network link: rates, round trip, jitter and losses.
///
/// As a text it is one of [`NAMES`](Self::NAMES), or properties that are separated by commas:
/// `down=1.6Mbit/s`, `up=768kbit/s` (or `unlimited`; also `bit/s` and `Gbit/s`), `rtt=150ms` (also
/// `us` and `s`), `jitter=20ms`, `loss=1%`. A name may come before properties that replace its own:
/// `3g,loss=1%`. Without a name, what is not there is unlimited or 0.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkProfile {
    /// The name of the link, or its properties as text.
    pub name: String,
    /// The rate of the link from the origin to the clients, from 1 bit/s to 1 Tbit/s; `None` for unlimited.
    pub down_bits_per_second: Option<u64>,
    /// The rate of the link from the clients to the origin, from 1 bit/s to 1 Tbit/s; `None` for unlimited.
    pub up_bits_per_second: Option<u64>,
    /// The round trip time of the link, to the origin and back, without jitter and without what the rates add, at most
    /// a minute.
    pub round_trip: Duration,
    /// The largest random difference (jitter) of the link's round trip time from `round_trip`, shorter or longer; at
    /// most `round_trip`. It is uniformly distributed, and each direction of the link gets half of it.
    pub jitter: Duration,
    /// The probability that the link loses a packet, from 0 to 0.5.
    pub loss: f64,
}

/// One named profile: name, rates down and up in kbit/s, round trip and jitter in milliseconds.
type Named = (&'static str, Option<(u64, u64)>, u64, u64);

const NAMED: [Named; 8] = [
    ("unshaped", None, 0, 0),
    ("broadband", Some((10_000, 10_000)), 90, 0),
    ("umts", Some((1_000, 1_000)), 150, 20),
    ("gsm", Some((400, 400)), 300, 40),
    ("cable", Some((5_000, 1_000)), 28, 0),
    ("4g", Some((9_000, 9_000)), 85, 0),
    ("3g", Some((1_600, 768)), 150, 0),
    ("wifi", Some((40_000, 10_000)), 40, 0),
];

impl LinkProfile {
    /// The names of known links, with their properties:
    ///
    /// | name | down / up | round trip | source |
    /// |---|---|---|---|
    /// | `unshaped` | unlimited | 0 | relays at once, for comparison |
    /// | `broadband` | 10 / 10 Mbit/s | 90 ms | the successor of NeckoNet, Mozilla's emulator of networks |
    /// | `umts` | 1 / 1 Mbit/s | 150 ms ± 20 ms | the successor of NeckoNet |
    /// | `gsm` | 400 / 400 kbit/s | 300 ms ± 40 ms | the successor of NeckoNet |
    /// | `cable` | 5 / 1 Mbit/s | 28 ms | WebPageTest's *Cable* |
    /// | `4g` | 9 / 9 Mbit/s | 85 ms | sitespeed's throttle; WebPageTest's *4G* has a round trip of 170 ms |
    /// | `3g` | 1.6 / 0.768 Mbit/s | 150 ms | WebPageTest's *3G Fast*, sitespeed's `3g`; WebPageTest's *3G* has 300 ms |
    /// | `wifi` | 40 / 10 Mbit/s | 40 ms | a home's wireless network and line, the one of our prototype |
    pub const NAMES: [&'static str; NAMED.len()] = {
        let mut names = [""; NAMED.len()];
        let mut place = 0;
        while place < names.len() {
            names[place] = NAMED[place].0;
            place += 1;
        }
        names
    };

    /// Returns the properties of the link with a name in [`NAMES`](Self::NAMES).
    pub fn named(name: &str) -> Option<Self> {
        let (name, rates, round_trip, jitter) = NAMED.iter().find(|named| named.0 == name)?;
        Some(Self {
            name: (*name).to_owned(),
            down_bits_per_second: rates.map(|(down, _)| down * 1_000),
            up_bits_per_second: rates.map(|(_, up)| up * 1_000),
            round_trip: Duration::from_millis(*round_trip),
            jitter: Duration::from_millis(*jitter),
            loss: 0.0,
        })
    }

    /// Returns the properties of a link that changes nothing: with unlimited rates, and without delay and loss.
    pub fn unshaped() -> Self {
        Self::named("unshaped").expect("a name of the table")
    }

    /// Checks that each property of the link is in its range.
    ///
    /// # Errors
    ///
    /// The first property that is not, with its range.
    pub fn check(&self) -> Result<(), LinkProfileError> {
        for (key, rate) in [("down", self.down_bits_per_second), ("up", self.up_bits_per_second)] {
            if rate.is_some_and(|rate| rate == 0 || rate > MOST_BITS_PER_SECOND) {
                return Err(LinkProfileError::Rate(key));
            }
        }
        if self.round_trip > MOST_ROUND_TRIP {
            return Err(LinkProfileError::RoundTrip);
        }
        if self.jitter > self.round_trip {
            return Err(LinkProfileError::Jitter);
        }
        if !(0.0..=MOST_LOSS).contains(&self.loss) {
            return Err(LinkProfileError::Loss);
        }
        Ok(())
    }
}

/// Returns the number of bytes that may pass the link at once: those of a millisecond at this rate, in whole packets,
/// at least one packet.
pub(super) fn quantum(bits_per_second: Option<u64>) -> usize {
    let Some(rate) = bits_per_second else { return MOST_QUANTUM_BYTES };
    let bytes = usize::try_from(rate / 8 / 1_000).unwrap_or(usize::MAX);
    let whole = bytes / PACKET_BYTES * PACKET_BYTES;
    whole.clamp(PACKET_BYTES, MOST_QUANTUM_BYTES)
}

/// Returns the memory in bytes for a connection's bytes in transit over the link, in one direction.
pub(super) fn queue_bytes(bits_per_second: Option<u64>, longest_round_trip: Duration) -> usize {
    let Some(rate) = bits_per_second else { return MOST_QUEUE_BYTES };
    let bits = u128::from(rate) * (longest_round_trip + SLACK).as_nanos() / 1_000_000_000;
    let bytes = usize::try_from(bits / 8).unwrap_or(usize::MAX);
    let room = 4 * (quantum(bits_per_second) + ENTRY_BYTES);
    bytes.saturating_add(room).clamp(LEAST_QUEUE_BYTES, MOST_QUEUE_BYTES)
}
