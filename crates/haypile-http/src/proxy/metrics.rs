//! Counts of a proxy's work, as Prometheus reads them.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::access_log::AccessLog;
use super::watched::ABANDONED;
use crate::cache::{Forwarded, Status};
use crate::storage::StoreTroubles;

/// The results of requests, by their names in the metrics: those of `Cache-Status`, and what has none.
const RESULTS: [&str; 13] = [
    "hit",
    "hit-stale",
    "revalidated",
    "uri-miss",
    "vary-miss",
    "request",
    "stale",
    "bypass",
    "method",
    "partial",
    "refused",
    "failed",
    "abandoned",
];
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// The upper bounds of the durations that are counted together, in seconds.
const BOUNDS: [f64; 10] = [0.000_1, 0.000_25, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0];

/// The outcome of a request that was sent to an origin: whether a response came.
#[derive(Clone, Copy, Debug)]
pub(super) enum AskedOrigin {
    /// A response came from the origin.
    Answered,
    /// No response came from the origin.
    Failed,
}

/// Counts of origins that are down, and of requests not sent to them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DownOrigins {
    /// The number of origins that are down.
    pub(super) origins: u64,
    /// The number of requests that were not sent because their origin was down.
    pub(super) unsent: u64,
}

/// The counters of a proxy, for Prometheus.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    responses: [[AtomicU64; CLASSES.len()]; RESULTS.len()],
    sent_bytes: [AtomicU64; RESULTS.len()],
    /// The counts of durations, of hits and of all others. The last of each is for what takes
    /// longer than all bounds.
    durations: [[AtomicU64; BOUNDS.len() + 1]; 2],
    duration_ns: [AtomicU64; 2],
    stored: AtomicU64,
    collapsed: AtomicU64,
    origin: [AtomicU64; 2],
    purges: AtomicU64,
    tunnels: AtomicU64,
    /// The number of lines that the access log lost, which it counts itself.
    log_lines_lost: Arc<AtomicU64>,
    connections: AtomicU64,
    requests: AtomicU64,
}

/// A guard that counts something (such as a connection) as open until it is dropped.
pub(super) struct Present<'a>(&'a AtomicU64);

impl<'a> Present<'a> {
    fn new(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// Creates the proxy's counters at zero; that of lost log lines is the access log's own.
    pub(super) fn with_log(log: Option<&AccessLog>) -> Self {
        let log_lines_lost = log.map(|log| Arc::clone(log.lost())).unwrap_or_default();
        Self { log_lines_lost, ..Self::default() }
    }

    /// Counts a response of the proxy that was sent completely, or broken off.
    pub(super) fn responded(
        &self,
        status: Option<&Status>,
        code: u16,
        sent_bytes: u64,
        took: Duration,
    ) {
        let result = result(status, code);
        let class = usize::from(code / 100).clamp(1, CLASSES.len()) - 1;
        add(&self.responses[result][class], 1);
        add(&self.sent_bytes[result], sent_bytes);
        if let Some(status) = status {
            add(&self.stored, status.is_stored.into());
            add(&self.collapsed, status.is_collapsed.into());
        }
        let kind = usize::from(result > 1);
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        add(&self.durations[kind][bucket], 1);
        add(&self.duration_ns[kind], u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Counts a request to an origin, by whether a response came.
    pub(super) fn asked(&self, outcome: AskedOrigin) {
        add(&self.origin[outcome as usize], 1);
    }

    pub(super) fn purged(&self) {
        add(&self.purges, 1);
    }

    /// Counts a client's connection as open until the returned guard is dropped.
    pub(super) fn connection(&self) -> Present<'_> {
        Present::new(&self.connections)
    }

    /// Counts a WebSocket as open until the returned guard is dropped.
    pub(super) fn tunnel(&self) -> Present<'_> {
        Present::new(&self.tunnels)
    }

    pub(super) fn request_begins(&self) {
        add(&self.requests, 1);
    }

    pub(super) fn request_ends(&self) {
        self.requests.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the proxy's counters in Prometheus' text format, with those of the store and of the origins.
    pub(super) fn prometheus(&self, troubles: StoreTroubles, down: DownOrigins) -> String {
        let mut text = String::new();
        self.write(&mut text, troubles, down).expect("writing to a string does not fail");
        text
    }

    fn write(&self, text: &mut String, troubles: StoreTroubles, down: DownOrigins) -> fmt::Result {
        let name = "haypile_http_responses_total";
        head(text, name, "counter", "Responses, by what the cache did (Cache-Status) and status.")?;
        for (result, by_class) in RESULTS.iter().zip(&self.responses) {
            for (class, count) in CLASSES.iter().zip(by_class) {
                let count = read(count);
                if count > 0 {
                    writeln!(text, "{name}{{result=\"{result}\",code=\"{class}\"}} {count}")?;
                }
            }
        }
        let name = "haypile_http_sent_bytes_total";
        head(text, name, "counter", "Bytes of response bodies, by what the cache did.")?;
        for (result, count) in RESULTS.iter().zip(&self.sent_bytes) {
            writeln!(text, "{name}{{result=\"{result}\"}} {}", read(count))?;
        }
        self.write_durations(text)?;
        for (name, help, labels, counts) in [
            ("stored_total", "Responses that were to be stored.", None, vec![read(&self.stored)]),
            (
                "collapsed_total",
                "Requests that waited for the response to another's.",
                None,
                vec![read(&self.collapsed)],
            ),
            (
                "origin_requests_total",
                "Requests to origins; one that is sent again, for its connection had ended, is one.",
                Some(("result", &["answered", "failed"][..])),
                self.origin.iter().map(read).collect(),
            ),
            (
                "origin_down_total",
                "Requests that were not sent because their origin was down.",
                None,
                vec![down.unsent],
            ),
            (
                "store_troubles_total",
                "Calls of the store that counted as a miss.",
                Some(("reason", &["slow", "busy", "failed"][..])),
                vec![troubles.slow, troubles.busy, troubles.failed],
            ),
            ("purges_total", "Purges.", None, vec![read(&self.purges)]),
            (
                "access_log_lost_total",
                "Lines that were not written because the disk was too slow, or full.",
                None,
                vec![read(&self.log_lines_lost)],
            ),
        ] {
            let name = format!("haypile_http_{name}");
            head(text, &name, "counter", help)?;
            match labels {
                None => writeln!(text, "{name} {}", counts[0])?,
                Some((label, values)) => {
                    for (value, count) in values.iter().zip(counts) {
                        writeln!(text, "{name}{{{label}=\"{value}\"}} {count}")?;
                    }
                }
            }
        }
        for (name, help, count) in [
            ("connections", "Connections of clients that are open.", read(&self.connections)),
            ("requests", "Requests whose responses are not complete.", read(&self.requests)),
            ("tunnels", "WebSocket connections that are open.", read(&self.tunnels)),
            ("origins_down", "Origins that are down.", down.origins),
        ] {
            let name = format!("haypile_http_{name}");
            head(text, &name, "gauge", help)?;
            writeln!(text, "{name} {count}")?;
        }
        Ok(())
    }

    fn write_durations(&self, text: &mut String) -> fmt::Result {
        let name = "haypile_http_duration_seconds";
        head(text, name, "histogram", "From the head of a request to the end of its response.")?;
        for (kind, cache) in ["hit", "forwarded"].iter().enumerate() {
            let mut sum = 0;
            for (number, count) in self.durations[kind].iter().enumerate() {
                sum += read(count);
                let bound = BOUNDS.get(number).map_or("+Inf".into(), f64::to_string);
                writeln!(text, "{name}_bucket{{cache=\"{cache}\",le=\"{bound}\"}} {sum}")?;
            }
            let seconds = Duration::from_nanos(read(&self.duration_ns[kind])).as_secs_f64();
            writeln!(text, "{name}_sum{{cache=\"{cache}\"}} {seconds}")?;
            writeln!(text, "{name}_count{{cache=\"{cache}\"}} {sum}")?;
        }
        Ok(())
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n")
}

fn add(count: &AtomicU64, more: u64) {
    if more > 0 {
        count.fetch_add(more, Ordering::Relaxed);
    }
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

/// Returns the place of a result among [`RESULTS`].
fn result(status: Option<&Status>, code: u16) -> usize {
    let name = match status.map(|status| (status.forwarded, status)) {
        None if code == ABANDONED => "abandoned",
        None => "refused",
        Some((Some(_), status)) if status.is_own() && [502, 503, 504].contains(&code) => "failed",
        Some((_, status)) if status.is_own() => "refused",
        Some((None, status)) if status.ttl.is_some_and(|ttl| ttl < 0) => "hit-stale",
        Some((None, _)) => "hit",
        Some((Some(Forwarded::Stale), status)) if status.origin_status == Some(304) => {
            "revalidated"
        }
        Some((Some(why), _)) => why.token(),
    };
    RESULTS.iter().position(|result| *result == name).expect("each is listed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_is_listed() {
        use Forwarded::{Bypass, Method, Partial, Request, Stale, UriMiss, VaryMiss};
        for why in [Bypass, Method, Partial, Request, Stale, UriMiss, VaryMiss] {
            let mut status = Status::forwarded(why);
            status.origin_status = Some(200);
            assert_eq!(RESULTS[result(Some(&status), 200)], why.token());
        }
        let hit = |ttl| Status { ttl: Some(ttl), ..Status::default() };
        assert_eq!(RESULTS[result(Some(&hit(0)), 200)], "hit");
        assert_eq!(RESULTS[result(Some(&hit(-1)), 200)], "hit-stale");
        assert_eq!(RESULTS[result(Some(&Status::refused("x")), 504)], "refused");
        let failed = Status::failed(UriMiss, "x");
        assert_eq!(RESULTS[result(Some(&failed), 504)], "failed");
        assert_eq!(RESULTS[result(Some(&failed), 503)], "failed");
        assert_eq!(RESULTS[result(Some(&failed), 400)], "refused");
        assert_eq!(RESULTS[result(None, ABANDONED)], "abandoned");
    }

    #[test]
    fn counts_as_text() {
        let metrics = Metrics::default();
        let hit = Status { ttl: Some(1), ..Status::default() };
        metrics.responded(Some(&hit), 200, 5, Duration::from_micros(200));
        metrics.responded(Some(&hit), 200, 7, Duration::from_mins(1));
        metrics.asked(AskedOrigin::Failed);
        let open = metrics.connection();
        let text = metrics.prometheus(StoreTroubles::default(), DownOrigins::default());
        for line in [
            "haypile_http_responses_total{result=\"hit\",code=\"2xx\"} 2",
            "haypile_http_sent_bytes_total{result=\"hit\"} 12",
            "haypile_http_duration_seconds_bucket{cache=\"hit\",le=\"0.0001\"} 0",
            "haypile_http_duration_seconds_bucket{cache=\"hit\",le=\"0.00025\"} 1",
            "haypile_http_duration_seconds_bucket{cache=\"hit\",le=\"10\"} 1",
            "haypile_http_duration_seconds_bucket{cache=\"hit\",le=\"+Inf\"} 2",
            "haypile_http_duration_seconds_sum{cache=\"hit\"} 60.0002",
            "haypile_http_origin_requests_total{result=\"failed\"} 1",
            "haypile_http_store_troubles_total{reason=\"slow\"} 0",
            "haypile_http_connections 1",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}:\n{text}");
        }
        drop(open);
        assert!(
            metrics
                .prometheus(StoreTroubles::default(), DownOrigins::default())
                .contains("_connections 0\n")
        );
    }
}
