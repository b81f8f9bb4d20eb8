//! Entries of a HAR: a request, its response, and their times.
//!
//! Each field is read by itself, as any of them may be missing or of another type.

use serde_json::Value;
use url::Url;

use super::size::BodySize;
use crate::site::body::ContentCoding;
use crate::site::resource::{ResourceKind, resource_url};

/// Header lines of a response that are read, at most.
const MAX_READ_HEADERS: usize = 1_000;

/// Callers' parents in a stack of calls that are read, at most.
const MAX_PARENTS: usize = 32;

/// An entry of a HAR file (a browser's recording): a request with its response that can be loaded,
/// or the reason why they cannot.
#[derive(Debug)]
pub(super) struct HarEntry {
    /// The id of the page that the entry of the HAR file belongs to; empty if it has none.
    pub(super) page: String,
    /// The time at which the recorded request began, in milliseconds since 1970; `None` if the HAR
    /// file has no valid time.
    pub(super) started_ms: Option<f64>,
    /// The time from the start of the entry's request to the end of its response, in milliseconds.
    pub(super) took_ms: f64,
    pub(super) exchange: Result<Exchange, Skip>,
}

/// A request and its response in a HAR file.
#[derive(Debug)]
pub(super) struct Exchange {
    /// The URL of the recorded request, normalized as the URLs of a site's resources are.
    pub(super) url: String,
    pub(super) status: u16,
    pub(super) kind: ResourceKind,
    pub(super) body: BodySize,
    /// The content coding (compression) of the response's body.
    pub(super) coding: Option<ContentCoding>,
    /// The size of the response's body after decoding, in bytes.
    pub(super) decoded_bytes: Option<u64>,
    /// The header lines of the response: names in lower case, and unchanged values.
    pub(super) headers: Vec<(String, String)>,
    /// The media type of the response that the recording tool wrote, without parameters, for
    /// responses without `Content-Type`.
    pub(super) media_type: String,
    /// Whether the recording browser's cache answered the request.
    pub(super) is_from_cache: bool,
    /// The URL of the load that caused this request (its initiator).
    pub(super) initiator: Option<String>,
    /// The URL that the response redirects to.
    pub(super) redirects_to: Option<String>,
}

/// The reason why an entry of a HAR file is not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Skip {
    NoUrl,
    OtherScheme,
    OtherMethod,
    NoResponse,
    Informational,
}

impl Skip {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::NoUrl => "their URL is missing, broken or too long",
            Self::OtherScheme => "their URL is not http or https",
            Self::OtherMethod => "their method is not GET",
            Self::NoResponse => "they have no response",
            Self::Informational => "their status is below 200",
        }
    }
}

impl HarEntry {
    pub(super) fn read(value: &Value) -> Self {
        let took_ms = value.get("time").and_then(number).unwrap_or(0.0).max(0.0);
        Self {
            page: text(value, "pageref").to_owned(),
            started_ms: value.get("startedDateTime").and_then(time_ms),
            took_ms,
            exchange: Exchange::read(value),
        }
    }

    /// Returns the time at which the recorded response ended, in milliseconds since 1970; `None` if
    /// the start is unknown.
    pub(super) fn ended_ms(&self) -> Option<f64> {
        Some(self.started_ms? + self.took_ms)
    }
}

impl Exchange {
    fn read(value: &Value) -> Result<Self, Skip> {
        let request = value.get("request").unwrap_or(&Value::Null);
        let response = value.get("response").unwrap_or(&Value::Null);
        let content = response.get("content").unwrap_or(&Value::Null);
        let parsed = Url::parse(text(request, "url")).map_err(|_| Skip::NoUrl)?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(Skip::OtherScheme);
        }
        let path = parsed.path().to_owned();
        let redirect = text(response, "redirectURL");
        let headers = headers(response);
        let location = headers.iter().find(|(name, _)| name == "location").map(|(_, value)| value);
        let target =
            if redirect.is_empty() { location.map_or("", |value| value) } else { redirect };
        let redirects_to = Some(target).filter(|target| !target.is_empty());
        let redirects_to = redirects_to.and_then(|target| resource_url(parsed.join(target).ok()?));
        let url = resource_url(parsed).ok_or(Skip::NoUrl)?;
        let method = text(request, "method");
        if !method.is_empty() && !method.eq_ignore_ascii_case("GET") {
            return Err(Skip::OtherMethod);
        }
        let status = response.get("status").and_then(number).unwrap_or(0.0);
        let status = whole(status).and_then(|status| u16::try_from(status).ok()).unwrap_or(0);
        match status {
            100..200 => return Err(Skip::Informational),
            200..600 => {}
            _ => return Err(Skip::NoResponse),
        }
        let content_type = headers.iter().find(|(name, _)| name == "content-type");
        let media_type = text(content, "mimeType").to_owned();
        let stated = content_type.map_or(media_type.as_str(), |(_, value)| value);
        let kind = kind(stated, text(value, "_resourceType"), &path);
        let decoded_bytes = content.get("size").and_then(number).and_then(whole);
        Ok(Self {
            url,
            status,
            kind,
            body: BodySize::read(response, &headers),
            coding: coding(&headers),
            decoded_bytes: decoded_bytes.filter(|bytes| *bytes > 0),
            headers,
            media_type,
            is_from_cache: is_from_cache(value),
            initiator: initiator(value),
            redirects_to: redirects_to.filter(|_| (300..400).contains(&status) && status != 304),
        })
    }
}

/// Parses a HAR file's time as milliseconds since 1970.
pub(super) fn time_ms(value: &Value) -> Option<f64> {
    let time: jiff::Timestamp = value.as_str()?.trim().parse().ok()?;
    Some(time.as_duration().as_secs_f64() * 1000.0)
}

/// Parses a finite number, which may be written as text.
pub(super) fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        other => other.as_f64()?,
    };
    number.is_finite().then_some(number)
}

/// Converts a number of a HAR file into an integer; `None` if it is negative.
pub(super) fn whole(number: f64) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let whole = number as u64;
    (number >= 0.0).then_some(whole)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn headers(response: &Value) -> Vec<(String, String)> {
    let lines = response.get("headers").and_then(Value::as_array).into_iter().flatten();
    let lines = lines.take(MAX_READ_HEADERS);
    lines
        .map(|line| (text(line, "name").to_ascii_lowercase(), text(line, "value").to_owned()))
        .collect()
}

/// The coding of a body with these headers: br, or gzip in the place of any other.
fn coding(headers: &[(String, String)]) -> Option<ContentCoding> {
    let (_, value) = headers.iter().find(|(name, _)| name == "content-encoding")?;
    match value.trim().to_ascii_lowercase().as_str() {
        "" | "identity" => None,
        "br" => Some(ContentCoding::Brotli),
        _ => Some(ContentCoding::Gzip),
    }
}

fn kind(media_type: &str, resource_type: &str, path: &str) -> ResourceKind {
    // A media type precedes the others: a request for a script may get an error page.
    match ResourceKind::of_media_type(media_type) {
        ResourceKind::Other => {}
        known => return known,
    }
    match resource_type {
        "document" => ResourceKind::Html,
        "stylesheet" => ResourceKind::Css,
        "script" => ResourceKind::Script,
        "image" => ResourceKind::Image,
        "font" => ResourceKind::Font,
        _ => ResourceKind::of_path(path).unwrap_or(ResourceKind::Other),
    }
}

/// Whether Chrome or Firefox's and others' fields say that a cache answered.
fn is_from_cache(entry: &Value) -> bool {
    let is_named = |name| match entry.get(name) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    };
    is_named("_fromCache") || is_named("_servedFromCache")
}

fn initiator(entry: &Value) -> Option<String> {
    let found = entry.get("_initiator").and_then(initiator_url);
    let detail = || {
        let detail = entry.get("_initiator_detail")?;
        match detail.as_str() {
            Some(text) => initiator_url(&serde_json::from_str(text).ok()?),
            None => initiator_url(detail),
        }
    };
    found.or_else(detail)
}

/// Finds the URL in an initiator: its own, or that of the nearest caller that has one.
fn initiator_url(initiator: &Value) -> Option<String> {
    let resource = |text: &str| Url::parse(text).ok().and_then(resource_url);
    if let Some(url) = initiator.as_str().and_then(resource) {
        return Some(url);
    }
    if let Some(url) = resource(text(initiator, "url")) {
        return Some(url);
    }
    let stacks = std::iter::successors(initiator.get("stack"), |stack| stack.get("parent"));
    let frames = |stack: &Value| {
        let mut frames = stack.get("callFrames").and_then(Value::as_array).into_iter().flatten();
        frames.find_map(|frame| resource(text(frame, "url")))
    };
    stacks.take(MAX_PARENTS).find_map(frames)
}
