//! The resources of a HAR: one for each URL, made of its best entry.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use siphasher::sip::SipHasher13;

use super::document::Log;
use super::entry::{Exchange, Skip};
use super::headers::{self, Shift};
use super::size::BodySize;
use crate::site::body::{RecordedCoding, SiteBody};
use crate::site::model::Site;
use crate::site::resource::{MAX_HEADERS, Resource, is_header_value};

/// Returns a site with the resources of a HAR file and no pages yet, in the order of the file's
/// entries.
pub(super) fn collect(log: &Log, now: SystemTime, warnings: &mut Vec<String>) -> Site {
    let mut skipped: BTreeMap<Skip, usize> = BTreeMap::new();
    let mut best: Vec<Best<'_>> = Vec::new();
    let mut known = HashMap::new();
    let mut from_cache = 0;
    for entry in &log.entries {
        match &entry.exchange {
            Err(skip) => *skipped.entry(*skip).or_default() += 1,
            Ok(exchange) => {
                from_cache += usize::from(exchange.is_from_cache);
                let index = *known.entry(exchange.url.as_str()).or_insert(best.len());
                match best.get_mut(index) {
                    None => best.push(Best::new(exchange)),
                    Some(best) => best.add(exchange),
                }
            }
        }
    }
    for (skip, count) in skipped {
        warnings.push(format!("skipped {count} entries: {}", skip.reason()));
    }
    let shift = shift(log, now, warnings);
    let mut unsendable = 0;
    let mut resource = |best: &Best<'_>| {
        let (headers, dropped) = headers::kept(&best.exchange.headers, shift);
        unsendable += dropped;
        resource(best, headers)
    };
    let resources: Vec<_> = best.iter().map(&mut resource).collect();
    let count = |is: fn(&Best<'_>) -> bool| best.iter().filter(|best| is(best)).count();
    for (count, what) in [
        (unsendable, "header lines dropped: they are too long, too many, or not visible ASCII"),
        (
            count(|best| best.exchange.status == 304 && !best.has_body()),
            "resources known by a 304 alone, without a size: their bodies are empty",
        ),
        (
            count(|best| best.exchange.status == 206),
            "resources known by a part alone: they have its size",
        ),
        (
            count(|best| best.body == BodySize::Unknown && best.has_body()),
            "resources without a size: their bodies are empty",
        ),
        (
            count(|best| matches!(best.body, BodySize::Decoded(_)) && best.has_body()),
            "resources whose transferred size is not known: they have the size after decoding, which may be \
             several times as much",
        ),
        (from_cache, "entries that the browser's cache answered"),
        (count(|best| best.exchange.is_from_cache), "resources known by the browser's cache alone"),
        (
            count(|best| best.body.is_cut()),
            "resources with a larger size than 1GiB: their bodies have 1GiB",
        ),
    ] {
        if count > 0 {
            warnings.push(format!("{count} {what}"));
        }
    }
    Site { resources, pages: Vec::new() }
}

/// The best entry for a URL.
struct Best<'a> {
    exchange: &'a Exchange,
    /// The size of the body, or that of another complete response which knows it better.
    body: BodySize,
}

impl<'a> Best<'a> {
    fn new(exchange: &'a Exchange) -> Self {
        Self { exchange, body: exchange.body }
    }

    fn add(&mut self, other: &'a Exchange) {
        let (own, others) = (quality(self.exchange), quality(other));
        if others > own {
            // A part, or an answer without a body, knows nothing of the whole.
            let is_alike = others.0 == own.0;
            let known = if is_alike { self.body } else { BodySize::Unknown };
            *self = Self { exchange: other, body: other.body.or(known) };
        } else if others.0 == own.0 {
            self.body = self.body.or(other.body);
        }
    }

    fn has_body(&self) -> bool {
        match self.exchange.status {
            204 => false,
            // The browser had it already: without a cache it comes.
            304 => self.body != BodySize::Unknown,
            _ => true,
        }
    }
}

/// Compares entries for one URL: whole responses, from the network, with a body, are the best.
fn quality(exchange: &Exchange) -> (u8, bool, bool) {
    let status = match exchange.status {
        304 => 0,
        206 => 1,
        200 => 3,
        _ => 2,
    };
    (status, !exchange.is_from_cache, exchange.body.bytes() > 0)
}

/// The span from the first request to `now`.
fn shift(log: &Log, now: SystemTime, warnings: &mut Vec<String>) -> Shift {
    let entries = log.entries.iter().filter_map(|entry| entry.started_ms);
    let pages = log.pages.iter().filter_map(|page| page.started_ms);
    let first_ms = entries.min_by(f64::total_cmp).or(pages.min_by(f64::total_cmp));
    let first = first_ms.and_then(|ms| {
        let span = Duration::try_from_secs_f64(ms.abs() / 1000.0).ok()?;
        let epoch = SystemTime::UNIX_EPOCH;
        if ms < 0.0 { epoch.checked_sub(span) } else { epoch.checked_add(span) }
    });
    first.map_or_else(
        || {
            warnings.push("no entry has a time: dates in headers are not shifted".to_owned());
            Shift::Later(Duration::ZERO)
        },
        |first| Shift::between(first, now),
    )
}

fn resource(best: &Best<'_>, mut headers: Vec<(String, String)>) -> Resource {
    let exchange = best.exchange;
    let has_type = headers.iter().any(|(name, _)| name == "content-type");
    let media_type = exchange.media_type.trim();
    if !has_type && media_type.contains('/') && is_header_value(media_type) {
        headers.insert(0, ("content-type".to_owned(), media_type.to_owned()));
    }
    let has_target = headers.iter().any(|(name, _)| name == "location");
    if let Some(target) = exchange.redirects_to.as_ref().filter(|_| !has_target)
        && headers.len() < MAX_HEADERS
    {
        headers.push(("location".to_owned(), target.clone()));
    }
    let status = match exchange.status {
        // Answers to a condition and to a range: the server makes them of the whole.
        206 | 304 => 200,
        status => status,
    };
    let bytes = if best.has_body() { best.body.bytes() } else { 0 };
    let seed = SipHasher13::new().hash(exchange.url.as_bytes());
    let body = SiteBody::Generated { bytes, seed };
    let coding = exchange.coding.filter(|_| matches!(best.body, BodySize::Transferred(1..)));
    let coding =
        coding.map(|coding| RecordedCoding { coding, decoded_bytes: exchange.decoded_bytes });
    Resource { url: exchange.url.clone(), kind: exchange.kind, status, headers, body, coding }
}
