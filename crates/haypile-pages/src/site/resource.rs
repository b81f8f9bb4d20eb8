//! Resources, as an origin server has them.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

use super::body::{RecordedCoding, SiteBody};

/// The longest allowed URL of a site's resource, in bytes.
pub const MAX_URL_BYTES: usize = 8 << 10;

/// The largest allowed number of response header lines of a site's resource.
pub const MAX_HEADERS: usize = 64;

/// The longest allowed value of a resource's response header line, in bytes.
pub const MAX_HEADER_BYTES: usize = 8 << 10;

/// The largest allowed body of a site's resource, in bytes.
pub const MAX_BODY_BYTES: u64 = 1 << 30;

/// Statuses that a cache may store without explicit freshness (RFC 9110, section 15.1), without
/// 206, which a resource never has.
const HEURISTIC: [u16; 11] = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501];

/// The type of a resource: document, script, image and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ResourceKind {
    /// A document: a page itself, or a frame in it.
    Html,
    /// A style sheet.
    Css,
    /// A script.
    Script,
    /// An image.
    Image,
    /// A font.
    Font,
    /// Anything else: data, video, beacons.
    Other,
}

impl ResourceKind {
    /// All types of resources, in the order in which tables show them.
    pub const ALL: [Self; 6] =
        [Self::Html, Self::Css, Self::Script, Self::Image, Self::Font, Self::Other];

    /// Returns the type of a resource by its media type, such as `text/html; charset=utf-8`;
    /// [`Self::Other`] if it is unspecific.
    pub fn of_media_type(media_type: &str) -> Self {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "text/html" | "application/xhtml+xml" => Self::Html,
            "text/css" => Self::Css,
            other if other.ends_with("javascript") || other.ends_with("ecmascript") => Self::Script,
            other if other.starts_with("image/") => Self::Image,
            other if other.starts_with("font/") || other.contains("font-") => Self::Font,
            _ => Self::Other,
        }
    }

    /// Returns the type of a resource by the extension of its URL's path, if the extension is
    /// known.
    pub fn of_path(path: &str) -> Option<Self> {
        let file = path.rsplit('/').next()?;
        Some(match file.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "html" | "htm" | "xhtml" => Self::Html,
            "css" => Self::Css,
            "js" | "mjs" => Self::Script,
            "png" | "jpg" | "jpeg" | "gif" | "webp" | "avif" | "svg" | "ico" | "bmp" => Self::Image,
            "woff" | "woff2" | "ttf" | "otf" | "eot" => Self::Font,
            "json" | "xml" | "txt" | "mp4" | "webm" | "wasm" => Self::Other,
            _ => return None,
        })
    }

    /// Returns the default media type for a resource of this type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Css => "text/css",
            Self::Script => "text/javascript",
            Self::Image => "image/png",
            Self::Font => "font/woff2",
            Self::Other => "application/octet-stream",
        }
    }

    /// Returns the name of the resource type in tables and site files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Css => "css",
            Self::Script => "script",
            Self::Image => "image",
            Self::Font => "font",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A resource: an origin server's response to a GET request for its URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// The URL of the resource: absolute, `http` or `https`, normalized by the WHATWG's URL
    /// standard, without fragment, user or password; at most [`MAX_URL_BYTES`].
    pub url: String,
    /// The type of the resource.
    pub kind: ResourceKind,
    /// The status code of the response, 200 to 599 without 206 and 304, which the origin server
    /// derives for conditional and range requests.
    pub status: u16,
    /// The header lines of the response, with names in lower case: those that caches act on and the media type, without
    /// `content-length`, `content-encoding` and fields of one connection. The origin server adds a `date` if there is
    /// none.
    pub headers: Vec<(String, String)>,
    /// The body of the response.
    pub body: SiteBody,
    /// The content coding (compression) that the body had in a recording, for [`super::replay`]; `None` where it had
    /// none, or where the size that was transferred is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coding: Option<RecordedCoding>,
}

impl Resource {
    /// Whether the URL's scheme is `https`.
    pub fn is_https(&self) -> bool {
        self.url.starts_with("https:")
    }

    /// Whether a browser follows the `Location` of the response.
    pub fn is_redirect(&self) -> bool {
        matches!(self.status, 301 | 302 | 303 | 307 | 308)
    }

    /// Returns the size of the response's body as it is sent, in bytes.
    pub fn body_len(&self) -> u64 {
        self.body.len()
    }

    /// Generates the bytes of the response's body: the same each time.
    pub fn body_bytes(&self) -> Vec<u8> {
        self.body.bytes()
    }

    /// Returns the approximate size of the response's head in bytes: a status line and the header
    /// lines.
    pub fn head_bytes(&self) -> u64 {
        let lines = self.headers.iter().map(|(name, value)| name.len() + value.len() + 4);
        lines.sum::<usize>() as u64 + 19
    }

    /// Returns the values of a response header of the resource; its name is in lower case.
    pub fn header_values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Returns the name and the value of each directive of the response's `Cache-Control`; the value of one without is empty.
    pub(crate) fn directives(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.header_values("cache-control").flat_map(|line| line.split(','));
        all.map(|directive| {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            (name.trim(), value.trim())
        })
    }

    /// Whether a browser's cache may store the response: `Cache-Control` allows it, `Vary` is not
    /// `*`, and the status may be stored, or has explicit freshness.
    pub fn is_cacheable(&self) -> bool {
        let has_directive =
            |wanted: &str| self.directives().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        let is_allowed = !has_directive("no-store")
            && !self.header_values("vary").any(|line| line.split(',').any(|n| n.trim() == "*"));
        is_allowed
            && (HEURISTIC.contains(&self.status)
                || has_directive("max-age")
                || has_directive("public")
                || self.header_values("expires").next().is_some())
    }

    /// Checks that a resource obeys the rules for a site's resources, such as on its URL; the error describes the first
    /// one that is broken.
    pub(super) fn check(&self) -> Result<(), String> {
        check_url(&self.url)?;
        if !(200..600).contains(&self.status) || [206, 304].contains(&self.status) {
            return Err(format!(
                "status {}; a resource has one of 200 to 599 without 206 and 304",
                self.status
            ));
        }
        if self.headers.len() > MAX_HEADERS {
            return Err(format!("{} header lines, and at most {MAX_HEADERS}", self.headers.len()));
        }
        for (name, value) in &self.headers {
            if !is_header_name(name) {
                return Err(format!("'{}' is not a header name in lower case", beginning_of(name)));
            }
            if !is_header_value(value) {
                return Err(format!(
                    "the value of {name} is not visible ASCII of at most {MAX_HEADER_BYTES} bytes"
                ));
            }
        }
        self.body.check()
    }
}

/// Checks that a URL is in the normal form of resources and not too long.
pub(super) fn check_url(url: &str) -> Result<(), String> {
    if url.len() > MAX_URL_BYTES {
        return Err(format!("a URL of {} bytes, and at most {MAX_URL_BYTES}", url.len()));
    }
    let parsed = Url::parse(url).map_err(|error| format!("not a URL: {error}"))?;
    match resource_url(parsed) {
        Some(normal) if normal == url => Ok(()),
        Some(normal) => Err(format!("write the URL as {normal}")),
        None => Err("not the URL of an http or https server".to_owned()),
    }
}

/// Converts a URL into the normal form of resources: without fragment, user and password; `None` if
/// it is not `http` or `https`, or too long.
pub(super) fn resource_url(mut url: Url) -> Option<String> {
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    url.set_fragment(None);
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    let text = String::from(url);
    (text.len() <= MAX_URL_BYTES).then_some(text)
}

/// Whether a text can be the name of a response header in lower case (a token of RFC 9110).
pub(super) fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte)
    };
    (1..=128).contains(&name.len()) && name.bytes().all(is_token)
}

/// Whether a text can be the value of a response header: visible ASCII, with blanks and tabs inside.
pub(super) fn is_header_value(value: &str) -> bool {
    value.len() <= MAX_HEADER_BYTES
        && value.trim_ascii() == value
        && value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
}

/// Returns the beginning of a long text such as a URL, for messages.
pub(super) fn beginning_of(text: &str) -> Cow<'_, str> {
    const SHOWN: usize = 120;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(status: u16, headers: &[(&str, &str)]) -> Resource {
        Resource {
            url: "http://site.test/".into(),
            kind: ResourceKind::Other,
            status,
            headers: headers.iter().map(|&(name, value)| (name.into(), value.into())).collect(),
            body: SiteBody::Generated { bytes: 3, seed: 1 },
            coding: None,
        }
    }

    #[test]
    fn kinds_come_from_media_types_and_extensions() {
        for (media_type, path, kind) in [
            ("Text/HTML; charset=x", "/a/b.HTM", ResourceKind::Html),
            ("text/css", "/a.css", ResourceKind::Css),
            ("application/x-javascript", "/a.b.js", ResourceKind::Script),
            ("image/svg+xml", "/a.svg", ResourceKind::Image),
            ("application/font-woff", "/x/y.woff2", ResourceKind::Font),
            ("application/json", "/x.json", ResourceKind::Other),
        ] {
            assert_eq!(ResourceKind::of_media_type(media_type), kind, "{media_type}");
            assert_eq!(ResourceKind::of_path(path), Some(kind), "{path}");
            assert_ne!(kind.media_type(), "");
        }
        assert_eq!(ResourceKind::of_media_type(""), ResourceKind::Other);
        assert_eq!(ResourceKind::of_path("/a.b/c"), None);
        assert_eq!(ResourceKind::of_path("/a.php"), None);
        for kind in ResourceKind::ALL {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
        }
    }

    #[test]
    fn cacheable_is_decided_by_status_and_headers() {
        for (status, headers, is_cacheable) in [
            (200, &[][..], true),
            (404, &[], true),
            (302, &[], false),
            (302, &[("cache-control", "private, Max-Age=60")], true),
            (302, &[("expires", "0")], true),
            (200, &[("cache-control", "no-cache"), ("cache-control", "x, No-Store")], false),
            (200, &[("vary", "accept, *")], false),
            (200, &[("vary", "accept")], true),
            (500, &[], false),
        ] {
            let resource = resource(status, headers);
            assert_eq!(resource.is_cacheable(), is_cacheable, "{status} {headers:?}");
        }
    }

    #[test]
    fn broken_rules_are_reported() {
        assert_eq!(resource(200, &[("etag", "\"x\"")]).check(), Ok(()));
        assert!(resource(304, &[]).check().is_err());
        assert!(resource(100, &[]).check().is_err());
        assert!(resource(200, &[("ETag", "x")]).check().unwrap_err().contains("ETag"));
        assert!(resource(200, &[("etag", "x\r\ny: z")]).check().unwrap_err().contains("etag"));
        assert!(resource(200, &[("etag", "x"); MAX_HEADERS + 1]).check().is_err());
        for url in [
            "",
            "/x",
            "data:text/plain,x",
            "http://a/#x",
            "http://a",
            "HTTP://a/",
            "http://u:p@a/",
            "http://a/\"",
        ] {
            assert!(check_url(url).is_err(), "{url}");
        }
        assert!(check_url(&format!("http://a/{}", "x".repeat(MAX_URL_BYTES))).is_err());
        assert_eq!(check_url("https://a:81/b?c=%22"), Ok(()));
    }

    #[test]
    fn long_texts_are_cut_in_messages() {
        assert_eq!(beginning_of("äb"), "äb");
        assert_eq!(beginning_of(&"ä".repeat(500)).chars().count(), 121);
    }
}
