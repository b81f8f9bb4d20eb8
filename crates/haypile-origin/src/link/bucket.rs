//! The rate of a link in one direction.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

/// The longest time by which a turn may be taken early. It is more than the resolution of timers, so that the
/// link does not idle while a connection is woken up.
const LEAD: Duration = Duration::from_millis(2);

/// The schedule by which all connections over an emulated link share the link's rate (bits per second) in one
/// direction.
#[derive(Debug)]
pub(super) struct Bucket {
    bits_per_second: Option<u64>,
    /// The schedule of turns, which all connections share. Its queue of waiting connections is first
    /// in, first out, and each has one turn in it: that is what makes them share the link evenly.
    schedule: Mutex<Schedule>,
}

#[derive(Debug)]
struct Schedule {
    /// The end of the last turn.
    free: Option<Instant>,
    /// The part of a nanosecond, times the rate, by which the end is later.
    carry: u128,
}

/// The period of time in which some bytes pass an emulated link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// The time at which the bytes start to pass; taking it later does not delay the next bytes.
    pub(super) at: Instant,
    /// The time at which the last bit has passed the link.
    pub(super) end: Instant,
}

impl Bucket {
    pub(super) fn new(bits_per_second: Option<u64>) -> Self {
        Self { bits_per_second, schedule: Mutex::new(Schedule { free: None, carry: 0 }) }
    }

    /// Waits until some bytes, which arrived at the emulated link at the time `arrival`, may pass the link at its rate.
    pub(super) async fn turn(&self, bytes: usize, arrival: Instant) -> Turn {
        let Some(rate) = self.bits_per_second else { return Turn { at: arrival, end: arrival } };
        let mut schedule = self.schedule.lock().await;
        let free = schedule.free.unwrap_or(arrival);
        let at = free.checked_sub(LEAD).unwrap_or(arrival).max(arrival);
        if at > Instant::now() {
            sleep_until(at).await;
        }
        if free < arrival {
            schedule.carry = 0;
        }
        let nanobits = bytes as u128 * 8 * 1_000_000_000 + schedule.carry;
        let nanos = u64::try_from(nanobits / u128::from(rate)).unwrap_or(u64::MAX);
        let end = free.max(arrival) + Duration::from_nanos(nanos);
        schedule.free = Some(end);
        schedule.carry = nanobits % u128::from(rate);
        Turn { at, end }
    }
}
