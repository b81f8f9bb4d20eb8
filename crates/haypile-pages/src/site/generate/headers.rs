//! Headers of generated resources.

use std::time::{Duration, SystemTime};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::sizes::{below, shuffle};
use crate::site::resource::{Resource, ResourceKind};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;

/// The per cent of resources that have an entity tag.
const ETAG_PERCENT: usize = 48;

/// The per cent of resources that have a date of their last change.
const LAST_MODIFIED_PERCENT: usize = 73;

/// Rules of freshness, each with the per cent of resources that have it.
const FRESHNESS: [(Freshness, usize); 8] = [
    (Freshness::MaxAge, 54),
    (Freshness::Neither, 26),
    (Freshness::Control("no-cache"), 5),
    (Freshness::Control("no-cache, max-age=0"), 3),
    (Freshness::Control("no-store"), 3),
    (Freshness::Control("no-store, no-cache"), 3),
    (Freshness::Control("no-store, no-cache, max-age=0"), 3),
    (Freshness::Expires, 3),
];

/// Lifetimes in seconds; each is as frequent as the others. An assumption.
const LIFETIMES: [u64; 10] =
    [600, HOUR, DAY, DAY, 7 * DAY, 7 * DAY, 30 * DAY, 30 * DAY, YEAR, YEAR];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freshness {
    MaxAge,
    Neither,
    Control(&'static str),
    Expires,
}

impl Freshness {
    /// Whether documents have this rule, if there are enough of it.
    fn is_of_documents(self) -> bool {
        matches!(self, Self::Neither | Self::Control("no-cache" | "no-cache, max-age=0"))
    }
}

/// Adds response headers for caches, such as `Cache-Control`, to all generated resources.
/// Percentages apply to all resources together instead of being drawn for each, so that small sites
/// have the same frequencies.
pub(super) fn add(resources: &mut [Resource], rng: &mut ChaCha8Rng, now: SystemTime) {
    let count = resources.len();
    let mut rules = Vec::with_capacity(count);
    let mut percent_before = 0;
    for (rule, percent) in FRESHNESS {
        percent_before += percent;
        rules.resize(count * percent_before / 100, rule);
    }
    shuffle(rng, &mut rules);
    let is_document: Vec<_> = resources.iter().map(|r| r.kind == ResourceKind::Html).collect();
    let mut from = 0;
    for index in (0..count).filter(|&index| is_document[index]) {
        if rules[index].is_of_documents() {
            continue;
        }
        let fits = |&other: &usize| !is_document[other] && rules[other].is_of_documents();
        let Some(other) = (from..count).find(fits) else { break };
        rules.swap(index, other);
        from = other + 1;
    }
    let has_etag = chosen(rng, count, ETAG_PERCENT);
    let has_last_modified = chosen(rng, count, LAST_MODIFIED_PERCENT);
    for (index, resource) in resources.iter_mut().enumerate() {
        let mut add = |name: &str, value| resource.headers.push((name.to_owned(), value));
        let lifetime = LIFETIMES[usize::try_from(below(rng, 10)).unwrap_or(0)];
        let (tag, age) = (rng.next_u64(), HOUR + below(rng, 2 * YEAR));
        match rules[index] {
            Freshness::MaxAge => add("cache-control", format!("max-age={lifetime}")),
            Freshness::Control(directives) => add("cache-control", directives.to_owned()),
            Freshness::Expires => add("expires", date(now, lifetime, SystemTime::checked_add)),
            Freshness::Neither => {}
        }
        if has_etag[index] {
            add("etag", format!("\"{tag:016x}\""));
        }
        if has_last_modified[index] {
            add("last-modified", date(now, age, SystemTime::checked_sub));
        }
    }
}

fn chosen(rng: &mut ChaCha8Rng, count: usize, percent: usize) -> Vec<bool> {
    let mut chosen: Vec<_> = (0..count).map(|index| index < count * percent / 100).collect();
    shuffle(rng, &mut chosen);
    chosen
}

/// An HTTP date some seconds before or after a time; a time that HTTP cannot write is 1970.
fn date(
    now: SystemTime,
    seconds: u64,
    shift: fn(&SystemTime, Duration) -> Option<SystemTime>,
) -> String {
    const LAST: Duration = Duration::from_secs(253_402_300_799);
    let epoch = SystemTime::UNIX_EPOCH;
    let is_date = |time: &SystemTime| time.duration_since(epoch).is_ok_and(|since| since <= LAST);
    let shifted = shift(&now, Duration::from_secs(seconds)).filter(is_date);
    httpdate::fmt_http_date(shifted.unwrap_or(epoch))
}
