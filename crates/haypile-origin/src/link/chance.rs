//! Jitter and loss, which follow from a seed alone.

use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::PACKET_BYTES;
use super::profile::LinkProfile;

/// The shortest wait before a packet is sent again.
const LEAST_RETRANSMISSION: Duration = Duration::from_millis(200);
/// The most losses of one packet. It bounds a delay, and is reached by one packet in 64 at the
/// highest loss.
const MOST_LOSSES: u32 = 6;

/// The random jitter and losses of one connection in one direction of an emulated link.
#[derive(Debug)]
pub(super) struct Chance {
    seed: u64,
    /// The number of packets so far.
    packets: u64,
    shortest: Duration,
    jitter: Duration,
    loss: f64,
    retransmission: Duration,
}

impl Chance {
    pub(super) fn new(profile: &LinkProfile, seed: u64, connection: u64, direction: u8) -> Self {
        let mut name = connection.to_le_bytes().to_vec();
        name.push(direction);
        Self {
            seed: xxh3_64_with_seed(&name, seed),
            packets: 0,
            shortest: profile.round_trip.saturating_sub(profile.jitter) / 2,
            jitter: profile.jitter,
            loss: profile.loss,
            retransmission: profile.round_trip.max(LEAST_RETRANSMISSION),
        }
    }

    /// Returns the delay of the next bytes on the link in one direction: half a round trip, random
    /// jitter, and what the losses of their packets add.
    pub(super) fn next(&mut self, bytes: usize) -> Duration {
        let packets = bytes.div_ceil(PACKET_BYTES).max(1) as u64;
        let first = self.packets;
        self.packets += packets;
        let mut delay = self.shortest;
        if !self.jitter.is_zero() {
            let span = self.jitter.as_nanos() + 1;
            let part = (u128::from(self.draw(first, 0)) * span) >> 64;
            delay += Duration::from_nanos(u64::try_from(part).expect("below the jitter"));
        }
        if self.loss > 0.0 {
            let losses = (first..first + packets).map(|packet| self.losses(packet)).max();
            // Each wait is twice the one before.
            delay += self.retransmission * ((1 << losses.unwrap_or(0)) - 1);
        }
        delay
    }

    /// Returns how often a packet is lost.
    fn losses(&self, packet: u64) -> u32 {
        let is_lost = |attempt: &u32| {
            let draw = self.draw(packet, attempt + 1) >> 32;
            let draw = f64::from(u32::try_from(draw).expect("the upper half")) / 2_f64.powi(32);
            draw < self.loss
        };
        (0..MOST_LOSSES).take_while(is_lost).map(|_| 1).sum()
    }

    fn draw(&self, packet: u64, purpose: u32) -> u64 {
        let mut name = packet.to_le_bytes().to_vec();
        name.extend_from_slice(&purpose.to_le_bytes());
        xxh3_64_with_seed(&name, self.seed)
    }
}
