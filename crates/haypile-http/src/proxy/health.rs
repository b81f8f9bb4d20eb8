//! Whether an origin is up or down, by its recent failures.
//!
//! One that does not answer is asked again and again otherwise, and each request waits for it. While it
//! is down, one request at a time tries it. Where that is because of responses that do not come, some parts of a site
//! may be well: they are told apart by the first segment of their paths, and those that have not been slow are tried by
//! a few more requests.

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
/// The parts of a site that are told apart.
const MOST_PARTS: usize = 64;
/// The most requests at a time that try parts of a site that have not been slow.
const MOST_OTHERS: usize = 4;

/// The conditions under which an origin counts as down, so that few requests are sent to it. Any response from the
/// origin ends that, and resets the counts of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DownAfter {
    /// The number of failed connections after which the origin counts as down.
    pub connect_failures: usize,
    /// The number of different URLs without a response in time after which the origin counts as
    /// down. URLs whose paths have the same first segment count once: `/search?q=a` and `/search/b`.
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
    slow_parts: HashMap<u64, Instant>,
    down: Option<Down>,
}

#[derive(Debug)]
struct Down {
    /// The moment from which the origin may be tried again.
    next: Instant,
    pause: Duration,
    is_tried: bool,
    /// Whether it can be reached, and does not answer.
    is_slow: bool,
    /// The number of requests on their way to parts of the site that have not been slow.
    others: usize,
}

/// The permission to send one request to an origin, which records the request's outcome for the origin's health.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    health: &'a Health,
    /// The part of the site, by its hash.
    part: u64,
    probe: Option<Probe>,
}

/// A request to an origin that is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    /// The one that tries the origin.
    Only,
    /// One that tries a part of the site that has not been slow.
    Other,
}

/// The outcome of a request that was sent to an origin, as far as it shows the origin's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Answered,
    /// No connection could be made.
    NotConnected,
    /// The response did not come in time.
    Slow,
    /// The exchange broke off, which predicts nothing about the next one.
    Broken,
}

impl Health {
    pub(super) fn new(rules: DownAfter) -> Self {
        Self { rules, state: Mutex::default(), refused: AtomicU64::new(0) }
    }

    /// Returns the right to send a request for a target to the origin; if the origin is down, the time
    /// after which it is tried again.
    pub(super) fn begin(&self, target: Option<&PathAndQuery>) -> Result<Trial<'_>, Duration> {
        let part = part(target);
        let mut state = self.state.lock();
        let State { slow_parts, down, .. } = &mut *state;
        let Some(down) = down else { return Ok(Trial { health: self, part, probe: None }) };
        let now = Instant::now();
        let probe = if !down.is_tried && now >= down.next {
            down.is_tried = true;
            Probe::Only
        } else if down.is_slow && down.others < MOST_OTHERS && !slow_parts.contains_key(&part) {
            down.others += 1;
            Probe::Other
        } else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(down.next.saturating_duration_since(now).max(FIRST_PAUSE));
        };
        Ok(Trial { health: self, part, probe: Some(probe) })
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
    pub(super) fn end(mut self, outcome: Sent) -> Option<bool> {
        // Another may try it from here on, which is nothing to end when this is dropped.
        let probe = self.probe.take();
        let (rules, now) = (self.health.rules, Instant::now());
        let mut state = self.health.state.lock();
        if outcome == Sent::Answered {
            state.connect_failures.clear();
            state.slow_parts.clear();
            return state.down.take().map(|_| false);
        }
        let is_recent = |time: &Instant| now.duration_since(*time) < rules.within;
        let is_down = state.down.is_some();
        match outcome {
            Sent::NotConnected if !is_down => {
                state.connect_failures.retain(is_recent);
                state.connect_failures.push_back(now);
            }
            Sent::Slow => {
                if !is_down {
                    state.slow_parts.retain(|_, time| is_recent(time));
                }
                if state.slow_parts.len() < MOST_PARTS {
                    state.slow_parts.insert(self.part, now);
                }
            }
            Sent::Answered | Sent::NotConnected | Sent::Broken => {}
        }
        if let Some(down) = &mut state.down {
            down.is_slow &= outcome != Sent::NotConnected;
            down.end(probe);
            if probe == Some(Probe::Only) {
                if outcome != Sent::Broken {
                    down.pause = (down.pause * 2).min(LONGEST_PAUSE);
                }
                down.next = now + down.pause;
            }
            return None;
        }
        let cannot_connect = state.connect_failures.len() >= rules.connect_failures;
        let is_slow = state.slow_parts.len() >= rules.slow_targets;
        if outcome == Sent::Broken || !(cannot_connect || is_slow) {
            return None;
        }
        let (next, pause, is_slow) = (now + FIRST_PAUSE, FIRST_PAUSE, !cannot_connect);
        state.down = Some(Down { next, pause, is_tried: false, is_slow, others: 0 });
        Some(true)
    }
}

impl Down {
    /// Records that a request which tried the origin is over, so that another may try it.
    fn end(&mut self, probe: Option<Probe>) {
        match probe {
            Some(Probe::Only) => self.is_tried = false,
            // It may have been sent while the origin was down before.
            Some(Probe::Other) => self.others = self.others.saturating_sub(1),
            None => {}
        }
    }
}

/// Returns the part of a site that a target is in.
fn part(target: Option<&PathAndQuery>) -> u64 {
    let segment = target.and_then(|target| target.path().split('/').nth(1));
    BuildHasherDefault::<DefaultHasher>::default().hash_one(segment)
}

impl Drop for Trial<'_> {
    /// A request that was given up tells nothing.
    fn drop(&mut self) {
        if let Some(down) = &mut self.health.state.lock().down {
            down.end(self.probe);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn begin(health: &Health) -> Result<Trial<'_>, Duration> {
        health.begin(Some(&PathAndQuery::from_static("/")))
    }

    fn send(health: &Health, outcome: Sent) -> Option<bool> {
        begin(health).expect("it may be sent").end(outcome)
    }

    fn slow(health: &Health, target: &'static str) -> Option<bool> {
        let trial = health.begin(Some(&PathAndQuery::from_static(target)));
        trial.expect("it may be sent").end(Sent::Slow)
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn connections_that_fail_make_it_down_and_one_request_tries_it() {
        let health = Health::new(DownAfter::default());
        assert_eq!(send(&health, Sent::NotConnected), None);
        assert_eq!(send(&health, Sent::NotConnected), None);
        assert_eq!(send(&health, Sent::NotConnected), Some(true));
        assert_eq!(begin(&health).map(drop), Err(SECOND));
        for pause in [1, 2, 4, 8, 16, 16] {
            advance(SECOND * (pause - 1) + SECOND * 9 / 10).await;
            assert!(begin(&health).is_err(), "{pause}");
            advance(SECOND / 10).await;
            let probe = begin(&health).expect("it is tried");
            assert!(begin(&health).is_err(), "one at a time");
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
            assert_eq!(slow(&health, "/a"), None);
        }
        // The same part of the site.
        for target in ["/a/1", "/a/2?b", "/a?1", "/a?2", "/a/"] {
            assert_eq!(slow(&health, target), None);
        }
        assert_eq!(slow(&health, "/b"), None);
        assert_eq!(slow(&health, "/c"), Some(true));
    }

    #[tokio::test(start_paused = true)]
    async fn parts_that_are_well_are_tried_though_others_are_slow() {
        let health = Health::new(DownAfter::default());
        let make_slow = || ["/a", "/b", "/c"].map(|target| slow(&health, target));
        assert_eq!(make_slow(), [None, None, Some(true)]);
        advance(SECOND).await;
        let at = |target| health.begin(Some(&PathAndQuery::from_static(target)));
        // One that hangs, and is tried again.
        let probe = at("/a/1").expect("it is time");
        for target in ["/a/2", "/b?3", "/c"] {
            assert!(at(target).is_err(), "{target}");
        }
        let others: Vec<_> =
            ["/d", "/e", "/f", "/"].map(|target| at(target).expect("it is new")).into();
        assert!(at("/g").is_err(), "they are enough");
        for other in others {
            assert_eq!(other.end(Sent::Slow), None);
        }
        assert!(at("/d/").is_err(), "it was slow");
        drop(at("/g").expect("it is new"));
        assert_eq!(at("/g").expect("it was given up").end(Sent::Answered), Some(false));
        assert_eq!(probe.end(Sent::Slow), None);
        assert!(!health.is_down() && at("/a").is_ok());
        // Where connections fail, nothing is well.
        let health = Health::new(DownAfter { connect_failures: 1, ..DownAfter::default() });
        assert_eq!(send(&health, Sent::NotConnected), Some(true));
        assert!(health.begin(Some(&PathAndQuery::from_static("/new"))).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn failures_of_long_ago_and_those_before_a_response_do_not_count() {
        let health = Health::new(DownAfter::default());
        for _ in 0..20 {
            send(&health, Sent::NotConnected);
            slow(&health, "/a");
            advance(SECOND * 6).await;
            slow(&health, "/b");
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
        drop(begin(&health).expect("it is tried"));
        assert!(begin(&health).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_were_sent_before_it_was_down_change_nothing_when_they_fail() {
        let health = Health::new(DownAfter { connect_failures: 1, ..DownAfter::default() });
        let early = [begin(&health).expect("it is well"), begin(&health).expect("it is well")];
        send(&health, Sent::NotConnected);
        for trial in early {
            assert_eq!(trial.end(Sent::NotConnected), None);
        }
        assert!(begin(&health).is_err());
        advance(SECOND).await;
        assert!(begin(&health).is_ok());
    }
}
