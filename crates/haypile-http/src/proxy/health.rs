//! Whether an origin is up or down, by its recent failures.
//!
//! One that does not answer is asked again and again otherwise, and each request waits for it. While it
//! is down, one request at a time tries it.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::uri::PathAndQuery;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The time until a down origin is tried for the first time, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(16);
/// The targets that are told apart.
const MOST_TARGETS: usize = 64;

/// The conditions under which an origin counts as down, so that few requests are sent to it. Any response from the
/// origin ends that, and resets the counts of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DownAfter {
    /// The number of failed connections after which the origin counts as down.
    pub connect_failures: usize,
    /// The number of different URLs without a response in time after which the origin counts as
    /// down.
    pub slow_targets: usize,
    /// The time within which the failures of the origin must happen.
    pub within: Duration,
}

impl Default for DownAfter {
    fn default() -> Self {
        Self { connect_failures: 3, slow_targets: 3, within: Duration::from_secs(10) }
    }
}

/// The recent failures of an origin server, by which the proxy counts it as up or down.
#[derive(Debug)]
pub(super) struct Health {
    rules: DownAfter,
    state: Mutex<State>,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    connect_failures: VecDeque<Instant>,
    slow_targets: HashMap<u64, Instant>,
    down: Option<Down>,
}

#[derive(Debug)]
struct Down {
    /// The moment from which the origin may be tried again.
    next: Instant,
    pause: Duration,
    is_tried: bool,
}

/// The permission to send one request to an origin, which records the request's outcome for the origin's health.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    health: &'a Health,
    is_probe: bool,
}

/// The outcome of a request that was sent to an origin, as far as it shows the origin's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent<'a> {
    Answered,
    /// No connection could be made.
    NotConnected,
    /// The response to a request for this target did not come in time.
    Slow(Option<&'a PathAndQuery>),
    /// The exchange broke off, which predicts nothing about the next one.
    Broken,
}

impl Health {
    pub(super) fn new(rules: DownAfter) -> Self {
        Self { rules, state: Mutex::default(), refused: AtomicU64::new(0) }
    }

    /// Returns the permission to send a request to the origin; if the origin counts as down, the time after which it is
    /// tried again.
    pub(super) fn begin(&self) -> Result<Trial<'_>, Duration> {
        let mut state = self.state.lock();
        let Some(down) = &mut state.down else {
            return Ok(Trial { health: self, is_probe: false });
        };
        let now = Instant::now();
        if down.is_tried || now < down.next {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(down.next.saturating_duration_since(now).max(FIRST_PAUSE));
        }
        down.is_tried = true;
        Ok(Trial { health: self, is_probe: true })
    }

    /// Whether the origin counts as down after failures.
    pub(super) fn is_down(&self) -> bool {
        self.state.lock().down.is_some()
    }

    /// Returns the number of requests that were not sent because the origin was down.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Trial<'_> {
    /// Records the outcome of a request to the origin, by which it counts as up or down. Returns whether the origin is
    /// down now, if that has changed.
    pub(super) fn end(mut self, outcome: Sent<'_>) -> Option<bool> {
        // Another may try it from here on, which is nothing to end when this is dropped.
        let is_probe = std::mem::take(&mut self.is_probe);
        let (rules, now) = (self.health.rules, Instant::now());
        let mut state = self.health.state.lock();
        if outcome == Sent::Answered {
            state.connect_failures.clear();
            state.slow_targets.clear();
            return state.down.take().map(|_| false);
        }
        if let Some(down) = state.down.as_mut().filter(|_| is_probe) {
            down.is_tried = false;
            if outcome != Sent::Broken {
                down.pause = (down.pause * 2).min(LONGEST_PAUSE);
            }
            down.next = now + down.pause;
            return None;
        }
        let is_recent = |time: &Instant| now.duration_since(*time) < rules.within;
        match outcome {
            Sent::NotConnected => {
                state.connect_failures.retain(is_recent);
                state.connect_failures.push_back(now);
            }
            Sent::Slow(target) => {
                state.slow_targets.retain(|_, time| is_recent(time));
                if state.slow_targets.len() < MOST_TARGETS {
                    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(target);
                    state.slow_targets.insert(hash, now);
                }
            }
            Sent::Answered | Sent::Broken => return None,
        }
        let is_down = state.connect_failures.len() >= rules.connect_failures
            || state.slow_targets.len() >= rules.slow_targets;
        if !is_down || state.down.is_some() {
            return None;
        }
        let (next, pause) = (now + FIRST_PAUSE, FIRST_PAUSE);
        state.down = Some(Down { next, pause, is_tried: false });
        Some(true)
    }
}

impl Drop for Trial<'_> {
    /// A request that was given up tells nothing.
    fn drop(&mut self) {
        if self.is_probe
            && let Some(down) = &mut self.health.state.lock().down
        {
            down.is_tried = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn send(health: &Health, outcome: Sent<'_>) -> Option<bool> {
        health.begin().expect("it may be sent").end(outcome)
    }

    fn slow(target: &'static str) -> Sent<'static> {
        let target = Box::new(PathAndQuery::from_static(target));
        Sent::Slow(Some(Box::leak(target)))
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn connections_that_fail_make_it_down_and_one_request_tries_it() {
        let health = Health::new(DownAfter::default());
        assert_eq!(send(&health, Sent::NotConnected), None);
        assert_eq!(send(&health, Sent::NotConnected), None);
        assert_eq!(send(&health, Sent::NotConnected), Some(true));
        assert_eq!(health.begin().map(drop), Err(SECOND));
        for pause in [1, 2, 4, 8, 16, 16] {
            advance(SECOND * (pause - 1) + SECOND * 9 / 10).await;
            assert!(health.begin().is_err(), "{pause}");
            advance(SECOND / 10).await;
            let probe = health.begin().expect("it is tried");
            assert!(health.begin().is_err(), "one at a time");
            assert_eq!(probe.end(Sent::NotConnected), None);
        }
        advance(SECOND * 16).await;
        assert_eq!(send(&health, Sent::Answered), Some(false));
        assert!(!health.is_down() && health.refused() > 0);
        assert_eq!(send(&health, Sent::NotConnected), None);
    }

    #[tokio::test(start_paused = true)]
    async fn responses_that_do_not_come_make_it_down_if_they_are_of_several_targets() {
        let health = Health::new(DownAfter::default());
        for _ in 0..100 {
            assert_eq!(send(&health, slow("/a")), None);
        }
        assert_eq!(send(&health, slow("/b")), None);
        assert_eq!(send(&health, slow("/c")), Some(true));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_of_long_ago_and_those_before_a_response_do_not_count() {
        let health = Health::new(DownAfter::default());
        for _ in 0..20 {
            send(&health, Sent::NotConnected);
            send(&health, slow("/a"));
            advance(SECOND * 6).await;
            send(&health, slow("/b"));
        }
        advance(SECOND * 6).await;
        for _ in 0..20 {
            send(&health, Sent::NotConnected);
            send(&health, Sent::NotConnected);
            send(&health, Sent::Answered);
        }
        assert!(!health.is_down());
    }

    #[tokio::test(start_paused = true)]
    async fn a_trial_that_is_given_up_is_repeated() {
        let health = Health::new(DownAfter { connect_failures: 1, ..DownAfter::default() });
        send(&health, Sent::NotConnected);
        advance(SECOND).await;
        drop(health.begin().expect("it is tried"));
        assert!(health.begin().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_were_sent_before_it_was_down_change_nothing_when_they_fail() {
        let health = Health::new(DownAfter { connect_failures: 1, ..DownAfter::default() });
        let early = [health.begin().expect("it is well"), health.begin().expect("it is well")];
        send(&health, Sent::NotConnected);
        for trial in early {
            assert_eq!(trial.end(Sent::NotConnected), None);
        }
        assert!(health.begin().is_err());
        advance(SECOND).await;
        assert!(health.begin().is_ok());
    }
}
