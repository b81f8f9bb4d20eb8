//! Header lines of a HAR's responses, as an origin server sends them now.

use std::time::{Duration, SystemTime};

use crate::site::resource::{MAX_HEADERS, is_header_value};

/// The fields that are kept: those that caches act on, and the media type. `Content-Length`,
/// `Content-Encoding` and fields of one connection are of the answer that the browser got.
const KEPT: [&str; 17] = [
    "age",
    "cache-control",
    "cache-groups",
    "cdn-cache-control",
    "content-language",
    "content-location",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "location",
    "no-vary-search",
    "pragma",
    "set-cookie",
    "surrogate-control",
    "vary",
];

/// The fields with a time that is shifted.
const TIMES: [&str; 3] = ["date", "expires", "last-modified"];

/// The last second of the year 9999, where HTTP dates end, since 1970.
const LAST_DATE: Duration = Duration::from_secs(253_402_300_799);

/// The time span by which times in the headers of a recording are shifted to the present.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shift {
    Later(Duration),
    Earlier(Duration),
}

impl Shift {
    /// Returns the time span between two times, in whole seconds, by which dates in recorded
    /// headers are shifted.
    pub(super) fn between(from: SystemTime, to: SystemTime) -> Self {
        let whole = |span: Duration| Duration::from_secs(span.as_secs());
        match to.duration_since(from) {
            Ok(span) => Self::Later(whole(span)),
            Err(error) => Self::Earlier(whole(error.duration())),
        }
    }

    /// Shifts a date; what is not a date, as the `0` of `Expires`, stays.
    fn date(self, text: &str) -> String {
        let Ok(date) = httpdate::parse_http_date(text) else { return text.to_owned() };
        let shifted = match self {
            Self::Later(span) => date.checked_add(span),
            Self::Earlier(span) => date.checked_sub(span),
        };
        let is_date = |time: &SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH);
            since.is_ok_and(|since| since.as_secs() <= LAST_DATE.as_secs())
        };
        shifted.filter(is_date).map_or_else(|| text.to_owned(), httpdate::fmt_http_date)
    }
}

/// Returns the header lines of a recorded response that a site keeps, and the number of dropped
/// ones, which no server could send or which were too many.
pub(super) fn kept(lines: &[(String, String)], shift: Shift) -> (Vec<(String, String)>, usize) {
    let (mut kept, mut dropped) = (Vec::new(), 0);
    for (name, values) in lines.iter().filter(|(name, _)| KEPT.contains(&name.as_str())) {
        // Browsers join the lines of one field by line ends.
        for value in values.split('\n').map(str::trim) {
            if kept.len() == MAX_HEADERS - 1 || !is_header_value(value) {
                dropped += 1;
                continue;
            }
            let value = match name.as_str() {
                time if TIMES.contains(&time) => shift.date(value),
                "set-cookie" => without_secret(value),
                _ => value.to_owned(),
            };
            kept.push((name.clone(), value));
        }
    }
    (kept, dropped)
}

/// Replaces the value of a cookie: a HAR may hold those of a user's session.
fn without_secret(cookie: &str) -> String {
    let (pair, attributes) = cookie.split_at(cookie.find(';').unwrap_or(cookie.len()));
    let (name, value) = pair.split_once('=').unwrap_or(("", pair));
    format!("{name}={}{attributes}", "x".repeat(value.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn kept_of(lines: &[(&str, &str)]) -> (Vec<(String, String)>, usize) {
        let lines: Vec<_> = lines.iter().map(|&(n, v)| (n.to_owned(), v.to_owned())).collect();
        kept(&lines, Shift::Later(DAY))
    }

    #[test]
    fn dates_are_shifted_by_one_span_and_others_stay() {
        let (lines, dropped) = kept_of(&[
            ("date", "Sat, 29 Aug 2015 19:47:00 GMT"),
            ("expires", "Saturday, 29-Aug-15 20:47:00 GMT"),
            ("last-modified", "Thu Jan  1 00:00:00 1970"),
            ("expires", "-1"),
            ("expires", "Fri, 31 Dec 9999 23:59:59 GMT"),
        ]);
        let values: Vec<_> = lines.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(
            values,
            [
                "Sun, 30 Aug 2015 19:47:00 GMT",
                "Sun, 30 Aug 2015 20:47:00 GMT",
                "Fri, 02 Jan 1970 00:00:00 GMT",
                "-1",
                "Fri, 31 Dec 9999 23:59:59 GMT",
            ]
        );
        assert_eq!(dropped, 0);
        assert_eq!(
            Shift::Earlier(DAY).date("Thu, 01 Jan 1970 00:00:00 GMT"),
            "Thu, 01 Jan 1970 00:00:00 GMT"
        );
    }

    #[test]
    fn fields_of_a_connection_and_of_a_coding_are_left_out() {
        let (lines, dropped) = kept_of(&[
            ("content-length", "5"),
            ("content-encoding", "gzip"),
            ("transfer-encoding", "chunked"),
            ("connection", "close"),
            (":status", "200"),
            ("etag", "\"a\""),
            ("vary", "a\nb"),
            ("etag", "ä"),
        ]);
        let lines: Vec<_> = lines.iter().map(|(n, v)| format!("{n}: {v}")).collect();
        assert_eq!(lines, ["etag: \"a\"", "vary: a", "vary: b"]);
        assert_eq!(dropped, 1);
        let many = vec![("vary", "a"); 200];
        assert_eq!(kept_of(&many).1, 200 - (MAX_HEADERS - 1));
    }

    #[test]
    fn cookies_lose_their_values() {
        assert_eq!(without_secret("a=b=c; Path=/"), "a=xxx; Path=/");
        assert_eq!(without_secret("secret"), "=xxxxxx");
        assert_eq!(without_secret(";"), "=;");
    }
}
