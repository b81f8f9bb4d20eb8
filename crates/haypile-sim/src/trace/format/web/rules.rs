//! The meaning of an exchange for a shared cache (RFC 9111).
//!
//! - GET and HEAD are reads if the response is one that caches store without being told to: its status is one of
//!   [`Statuses`]. A `304` is a read too, of the size that was known last, because what it confirms can be
//!   stored. A `206` is a part of a value, and like any other status no entry.
//! - POST, PUT, PATCH and DELETE remove the entry of their URL if they succeeded (section 4.4), and so does PURGE, also where there was
//!   nothing to remove (404).
//! - CONNECT, OPTIONS and other methods are nothing for a cache.

use std::path::Path;
use std::str::FromStr;

use haypile_number::grouped;

use super::super::super::{Key, Op, Request, TraceError};
use super::super::entry::Parsed;
use super::super::options::unknown_name;
use super::{Exchange, Why};

/// A list of the HTTP statuses of responses that a cache stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses(Vec<u16>);

impl Default for Statuses {
    /// Those that caches may store without a lifetime of their own (RFC 9110, section 15.1), and that they do store.
    fn default() -> Self {
        Self(vec![200, 203, 204, 300, 301, 308, 404, 410])
    }
}

impl FromStr for Statuses {
    type Err = TraceError;

    /// Parses statuses such as `200,301,302`.
    fn from_str(text: &str) -> Result<Self, TraceError> {
        let parts = text.split(',').map(|part| match part.trim().parse() {
            Ok(206 | 304) => {
                Err(unknown_name("status", part, ["those of whole values: not 206 or 304"]))
            }
            Ok(status @ 200..=599) => Ok(status),
            _ => {
                Err(unknown_name("status", part, ["numbers from 200 to 599, such as 200,301,302"]))
            }
        });
        parts.collect::<Result<_, _>>().map(Self)
    }
}

/// The rules that turn the lines of a web server's log into requests to a shared cache, with counts of how often each
/// applied.
#[derive(Debug)]
pub(super) struct Rules {
    statuses: Statuses,
    counts: Counts,
    /// Buffer for keys that are made of more than one column.
    key: Vec<u8>,
}

/// Exchanges, by what they are.
#[derive(Debug, Default)]
struct Counts {
    reads: u64,
    not_http: u64,
    refused: u64,
    other_events: u64,
    tunnels: u64,
    other_methods: u64,
    other_statuses: u64,
    parts: u64,
    not_modified: u64,
    removing: u64,
    failed: u64,
    /// Number of reads whose log line states whether the server's own cache answered, and of those that it did answer.
    told: u64,
    hits: u64,
}

/// Whether an HTTP method is one that the rules for logs know, such as GET or POST.
pub(super) fn is_known(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"CONNECT" | b"PURGE") || is_unsafe(method)
}

/// Whether a method changes what its URL stands for.
fn is_unsafe(method: &[u8]) -> bool {
    matches!(method, b"POST" | b"PUT" | b"PATCH" | b"DELETE")
}

impl Rules {
    pub(super) fn new(statuses: Statuses) -> Self {
        Self { statuses, counts: Counts::default(), key: Vec::new() }
    }

    pub(super) fn leave_out(&mut self, why: Why) {
        match why {
            Why::NotHttp => self.counts.not_http += 1,
            Why::Refused => self.counts.refused += 1,
            Why::NoValue => self.counts.other_events += 1,
        }
    }

    /// Returns the cache request that a line of a web server's log (an HTTP request and its response) stands for, or
    /// none.
    pub(super) fn parsed<'a>(&'a mut self, exchange: Exchange<'a>) -> Parsed<'a> {
        let Some(op) = self.operation(&exchange) else { return Parsed::Nothing };
        self.counts.reads += u64::from(op == Op::Read);
        if op == Op::Read
            && let Some(was_hit) = exchange.was_hit
        {
            self.counts.told += 1;
            self.counts.hits += u64::from(was_hit);
        }
        let has_size = op == Op::Read && exchange.status != 304 && exchange.method != b"HEAD";
        Parsed::One(Request {
            key: Key::Text(self.key(&exchange)),
            size_bytes: exchange.size_bytes.filter(|_| has_size),
            op,
            time_us: exchange.time_us,
            ttl_us: None,
            // The cost of a whole value: what a cache answers or confirms says nothing of it.
            cost_ns: exchange.cost_ns.filter(|_| has_size && exchange.was_hit != Some(true)),
        })
    }

    fn operation(&mut self, exchange: &Exchange<'_>) -> Option<Op> {
        let (method, status, counts) = (exchange.method, exchange.status, &mut self.counts);
        let (count, op) = match method {
            b"GET" | b"HEAD" => match status {
                304 => (&mut counts.not_modified, Some(Op::Read)),
                206 => (&mut counts.parts, None),
                _ if self.statuses.0.contains(&status) => return Some(Op::Read),
                _ => (&mut counts.other_statuses, None),
            },
            b"PURGE" if status < 400 || status == 404 => (&mut counts.removing, Some(Op::Delete)),
            _ if is_unsafe(method) && (200..400).contains(&status) => {
                (&mut counts.removing, Some(Op::Delete))
            }
            b"CONNECT" => (&mut counts.tunnels, None),
            _ if is_known(method) => (&mut counts.failed, None),
            _ if method.iter().all(|byte| b"-_".contains(byte) || byte.is_ascii_uppercase()) => {
                (&mut counts.other_methods, None)
            }
            _ => (&mut counts.not_http, None),
        };
        *count += 1;
        op
    }

    /// Returns the URL, or as much of it as tells the keys of a log apart.
    fn key<'a>(&'a mut self, exchange: &Exchange<'a>) -> &'a [u8] {
        let target = exchange.target;
        let host = exchange.host.filter(|_| target.starts_with(b"/"));
        if host.is_none() && exchange.query.is_none() {
            return target;
        }
        self.key.clear();
        self.key.extend(host.unwrap_or_default());
        self.key.extend(target);
        if let Some(query) = exchange.query {
            self.key.push(b'?');
            self.key.extend(query);
        }
        &self.key
    }

    /// Returns notes for users on how many lines of the log were left out or interpreted by each rule.
    pub(super) fn notes(&self, path: &Path, counts_headers: bool) -> Vec<String> {
        let (counts, path) = (&self.counts, path.display());
        let left_out = [
            (counts.not_http, "without a request that is HTTP"),
            (counts.other_methods, "with a method that no cache stores"),
            (counts.tunnels, "with CONNECT, of which no proxy sees the content"),
            (counts.refused, "that were refused"),
            (counts.other_events, "of other events"),
            (counts.other_statuses, "with a status that is not stored (--status selects them)"),
            (counts.parts, "with a part of a value (206)"),
            (counts.failed, "with a change that failed"),
        ];
        let left_out: Vec<String> = left_out
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", grouped(*count)))
            .collect();
        let mut notes = Vec::new();
        if !left_out.is_empty() {
            notes.push(format!("{path}: left out lines: {}", left_out.join(", ")));
        }
        if counts.not_modified > 0 {
            notes.push(format!(
                "{path}: reads that sent no bytes (304): {}; each counts with the last known size of its URL",
                grouped(counts.not_modified)
            ));
        }
        if counts.removing > 0 {
            notes.push(format!(
                "{path}: requests that remove the entry of their URL (neither GET nor HEAD): {}",
                grouped(counts.removing)
            ));
        }
        if counts.told > 0 {
            notes.push(format!(
                "{path}: by the log itself, a cache answered {:.1} % of {} reads",
                100.0 * counts.hits as f64 / counts.told as f64,
                grouped(counts.told)
            ));
        }
        if counts_headers {
            notes.push(format!("{path}: the sizes include the headers of responses"));
        }
        if counts.reads > 0 {
            notes.push(PRIVATE.to_owned());
        }
        notes
    }
}

/// The limit of all logs.
const PRIVATE: &str = "logs do not tell which responses are private (cookies, Authorization, Cache-Control): a shared cache \
                       stores fewer of them";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_statuses_of_caches() {
        let mut rules = Rules::new(Statuses::default());
        for (method, status, op) in [
            ("GET", 200, Some(Op::Read)),
            ("HEAD", 404, Some(Op::Read)),
            ("GET", 304, Some(Op::Read)),
            ("GET", 206, None),
            ("GET", 500, None),
            ("GET", 302, None),
            ("POST", 200, Some(Op::Delete)),
            ("PUT", 304, Some(Op::Delete)),
            ("PATCH", 204, Some(Op::Delete)),
            ("DELETE", 400, None),
            ("POST", 503, None),
            ("PURGE", 200, Some(Op::Delete)),
            ("PURGE", 404, Some(Op::Delete)),
            ("PURGE", 403, None),
            ("OPTIONS", 200, None),
            ("CONNECT", 200, None),
            ("\u{16}\u{3}", 400, None),
        ] {
            let exchange = Exchange { method: method.as_bytes(), status, ..Exchange::default() };
            assert_eq!(rules.operation(&exchange), op, "{method} {status}");
        }
        let notes = rules.notes(Path::new("log"), true);
        assert_eq!(
            notes[..4],
            [
                "log: left out lines: 1 without a request that is HTTP, 1 with a method that no cache stores, 1 with CONNECT, of \
                 which no proxy sees the content, 2 with a status that is not stored (--status selects them), 1 with a part of a value \
                 (206), 3 with a change that failed",
                "log: reads that sent no bytes (304): 1; each counts with the last known size of its URL",
                "log: requests that remove the entry of their URL (neither GET nor HEAD): 5",
                "log: the sizes include the headers of responses",
            ]
        );
        let mut rules = Rules::new("200, 302".parse().expect("statuses"));
        for (status, op) in [(302, Some(Op::Read)), (404, None), (304, Some(Op::Read))] {
            let exchange = Exchange { method: b"GET", status, ..Exchange::default() };
            assert_eq!(rules.operation(&exchange), op, "{status}");
        }
        for text in ["", "200,", "199", "600", "206", "304", "ok", "-200"] {
            assert!(text.parse::<Statuses>().is_err(), "{text}");
        }
    }
}
