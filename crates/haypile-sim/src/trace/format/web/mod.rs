//! Logs of web servers, proxies and content networks.
//!
//! Each kind of log has a file of its own here, which reads a line into an [`Exchange`]. What an exchange
//! means for a cache is the same for all of them: [`rules`].

mod elb;
mod haproxy;
mod json;
mod ncsa;
mod quoted;
mod rules;
mod s3;
mod squid;
mod time;
mod w3c;

pub(super) use time::compact_time;

use std::path::Path;

use super::super::Request;
use super::Format;
use super::bad::Bad;
use super::entry::{LineParser, Parsed};
use super::options::{ReadOptions, TimeUnit};

use rules::Rules;

pub use rules::Statuses;

/// The formats of web server logs, in the order in which recognition tries them.
pub(super) const FORMATS: [Format; 7] = [
    Format::AccessLog,
    Format::JsonLog,
    Format::W3c,
    Format::Squid,
    Format::Elb,
    Format::S3Log,
    Format::Haproxy,
];

/// A request and its response, as a server has logged them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Exchange<'a> {
    method: &'a [u8],
    /// The host of the request, where the log has more than one.
    host: Option<&'a [u8]>,
    /// The path and the query of the request, or a whole URL.
    target: &'a [u8],
    /// The query of the request, where the log has it apart from the target.
    query: Option<&'a [u8]>,
    status: u16,
    /// Bytes of the whole value, or those that were sent.
    size_bytes: Option<u64>,
    time_us: Option<u64>,
    /// Whether the server's own cache answered; `None` where the log does not state it.
    was_hit: Option<bool>,
    /// The time that the server behind took to answer; `None` where the log does not state it.
    cost_ns: Option<u64>,
}

impl<'a> Exchange<'a> {
    /// Returns an exchange of a log that has one host, and says nothing of a cache of its own.
    fn new(
        method: &'a [u8],
        target: &'a [u8],
        status: u16,
        size_bytes: Option<u64>,
        time_us: u64,
    ) -> Self {
        Self { method, target, status, size_bytes, time_us: Some(time_us), ..Self::default() }
    }
}

/// The content of a line.
enum Line<'a> {
    /// No request: a blank line, a comment.
    Nothing,
    Exchange(Exchange<'a>),
    /// A request to a cache that is not an HTTP cache.
    Request(Request<'a>),
    LeftOut(Why),
}

/// Why a line is none of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// The line has no request, or the client did not send HTTP.
    NotHttp,
    /// The server or its cache refused to pass the request on.
    Refused,
    /// The line is an event other than a request for a value.
    NoValue,
}

/// A kind of log.
trait Lines: std::fmt::Debug + Send {
    /// Reads a line that is not blank.
    fn read<'a>(&'a mut self, line: &'a [u8]) -> Result<Line<'a>, Bad<'a>>;

    /// Whether the sizes include the headers of responses.
    fn counts_headers(&self) -> bool {
        false
    }

    /// Returns advice for a user whose log has no request; `None` if there is nothing to advise.
    fn remedy(&self) -> Option<&'static str> {
        None
    }
}

/// A parser of the log of a web server or proxy.
#[derive(Debug)]
pub(super) struct WebLog {
    lines: Box<dyn Lines>,
    rules: Rules,
    has_exchanges: bool,
}

impl WebLog {
    /// Returns the parser of web server logs in this format; `None` if it is not one of [`FORMATS`].
    pub(super) fn of(format: Format, options: &ReadOptions) -> Option<Self> {
        let lines: Box<dyn Lines> = match format {
            Format::AccessLog => Box::new(ncsa::Ncsa::default()),
            Format::JsonLog => Box::new(json::Json::new(&options.csv)),
            Format::W3c => Box::new(w3c::W3c::default()),
            Format::Squid => Box::new(squid::Squid),
            Format::Elb => Box::new(elb::Elb),
            Format::S3Log => Box::new(s3::S3::default()),
            Format::Haproxy => Box::new(haproxy::Haproxy),
            _ => return None,
        };
        let rules = Rules::new(options.statuses.clone());
        Some(Self { lines, rules, has_exchanges: false })
    }

    /// Whether any line of the log that was parsed so far was a request.
    pub(super) fn has_exchanges(&self) -> bool {
        self.has_exchanges
    }

    /// Returns notes for users on which lines of the log were left out, and how others were interpreted.
    pub(super) fn notes(&self, path: &Path) -> Vec<String> {
        let mut notes = self.rules.notes(path, self.lines.counts_headers());
        let remedy = self.lines.remedy().filter(|_| !self.has_exchanges && !notes.is_empty());
        notes.extend(remedy.map(str::to_owned));
        notes
    }
}

impl LineParser for WebLog {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Bad<'a>> {
        let Self { lines, rules, has_exchanges } = self;
        if line.trim_ascii().is_empty() {
            return Ok(Parsed::Nothing);
        }
        let read = lines.read(line)?;
        *has_exchanges |= matches!(read, Line::Exchange(_) | Line::Request(_));
        match read {
            Line::Nothing => Ok(Parsed::Nothing),
            Line::Exchange(exchange) => Ok(rules.parsed(exchange)),
            Line::Request(request) => Ok(Parsed::One(request)),
            Line::LeftOut(why) => {
                rules.leave_out(why);
                Ok(Parsed::Nothing)
            }
        }
    }
}

/// Splits `METHOD target HTTP/version`; the version may be missing, as in HTTP/0.9. A target may contain
/// blanks: servers log what they were sent.
fn request_line(request: &[u8]) -> Option<(&[u8], &[u8])> {
    let (method, rest) = split_at_byte(request, b' ')?;
    let version = memchr::memmem::rfind(rest, b" HTTP/");
    let target = version.map_or(rest, |at| &rest[..at]);
    let has_version = version.is_some();
    // Only a line that says HTTP may have a method that nobody knows.
    let is_request = !target.is_empty() && (has_version || rules::is_known(method));
    is_request.then_some((method, target))
}

fn split_at_byte(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(byte, text)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Returns whether the cache of the log's server answered, by the word for it of nginx, Cloudflare and others; `None` if the word does
/// not tell.
fn was_hit(text: &[u8]) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
    // Fastly adds where and how, as in HIT-CLUSTER and MISS-WAIT.
    let kind = text.split(|byte| *byte == b'-').next().unwrap_or_default();
    let is_kind = |word: &[u8]| kind.eq_ignore_ascii_case(word);
    if is_kind(b"hit")
        || is(&["stale", "updating", "revalidated", "RefreshHit", "OriginShieldHit", "REMOTE_HIT"])
    {
        Some(true)
    } else if is_kind(b"miss")
        || is_kind(b"pass")
        || is(&["expired", "bypass", "dynamic", "none", "CONFIG_NOCACHE", "PRIVATE_NOSTORE"])
    {
        Some(false)
    } else {
        None
    }
}

/// Reads a status: three digits.
fn status(text: &[u8]) -> Result<u16, Bad<'_>> {
    let number = super::field::decimal(text).filter(|_| text.len() == 3);
    number
        .and_then(|number| u16::try_from(number).ok())
        .ok_or_else(|| Bad::new("a status of three digits", text))
}

/// Reads the time that the server behind took; `-` and `-1` stand for none.
fn cost_ns(text: &[u8], unit: TimeUnit) -> Option<u64> {
    super::field::time_ns(text, unit)
}

/// Reads a size; `-` stands for none.
fn size(text: &[u8]) -> Result<Option<u64>, Bad<'_>> {
    if text == b"-" {
        return Ok(None);
    }
    let size = super::field::decimal(text);
    size.map(Some).ok_or_else(|| Bad::new("a size in bytes (decimal number or -)", text))
}
