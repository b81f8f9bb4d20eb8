//! The target of a request, by which its responses are found.

use std::fmt;

use http::Uri;
use url::Url;

/// The reason why a URI is not the target of an HTTP request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The URI has no scheme, or one other than http and https.
    #[error("the URL has a scheme other than http and https")]
    Scheme,
    /// The URI names no host.
    #[error("the URL has no host")]
    Host,
    /// The URI has a user or a password before the host.
    #[error("the URL has a user or a password before the host")]
    User,
}

/// The normalized URL of a request: scheme and host in lower case, the port unless it is the
/// scheme's default, path and query exactly as they were sent. Requests with the same target are
/// about the same resource.
///
/// Whether it was asked for by GET or HEAD makes no difference: the response to a GET answers a HEAD.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    text: String,
    /// The length of the part before the path.
    origin_bytes: usize,
}

impl Target {
    /// Returns the normalized URL of an absolute URI, by which responses are stored.
    pub fn of(uri: &Uri) -> Result<Self, TargetError> {
        let scheme = uri.scheme_str().unwrap_or_default();
        let schemes = [("http", 80), ("https", 443)];
        let known = schemes.into_iter().find(|(known, _)| scheme.eq_ignore_ascii_case(known));
        let (scheme, own_port) = known.ok_or(TargetError::Scheme)?;
        let authority = uri.authority().ok_or(TargetError::Host)?;
        let text = authority.as_str();
        if text.contains('@') {
            return Err(TargetError::User);
        }
        // Only an IPv6 address has other colons than the one before a port.
        let end = text.rfind(']').map_or(0, |end| end + 1);
        let end = text[end..].find(':').map_or(text.len(), |colon| end + colon);
        let (host, port) = (&text[..end], text.get(end + 1..).and_then(|port| port.parse().ok()));
        if host.is_empty() {
            return Err(TargetError::Host);
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        // Every request comes here: the text is written once, into an allocation with room for it.
        let most = scheme.len() + authority.as_str().len() + path.len() + ":///".len();
        let mut text = String::with_capacity(most);
        text.push_str(scheme);
        text.push_str("://");
        text.push_str(host);
        text.make_ascii_lowercase();
        if let Some(port) = port.filter(|port: &u16| *port != own_port) {
            text.push(':');
            text.push_str(itoa::Buffer::new().format(port));
        }
        let origin_bytes = text.len();
        if !path.starts_with('/') {
            text.push('/');
        }
        text.push_str(path);
        Ok(Self { text, origin_bytes })
    }

    /// Returns the scheme, host and port of the URL as text.
    pub fn origin(&self) -> &str {
        &self.text[..self.origin_bytes]
    }

    /// Returns the path and query of the URL as text.
    pub fn path(&self) -> &str {
        &self.text[self.origin_bytes..]
    }

    /// Returns the whole normalized URL as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the URL with those bytes percent-encoded that no URI may have; `None` if it has none of them.
    pub(crate) fn encoded(&self) -> Option<Self> {
        let text = encoded(&self.text);
        (text != self.text).then_some(Self { text, origin_bytes: self.origin_bytes })
    }

    /// Returns the URL that a reference (such as a `Location`) in a response from this URL leads to; `None` if that is
    /// invalid.
    pub(super) fn resolve(&self, reference: &[u8]) -> Option<Self> {
        let reference = str::from_utf8(reference).ok()?;
        let mut url = Url::parse(&self.text).ok()?.join(reference).ok()?;
        url.set_fragment(None);
        let _ = (url.set_username(""), url.set_password(None));
        Self::of(&url.as_str().parse().ok()?).ok()
    }
}

/// Whether a byte is not allowed in the path and query of a URI (RFC 3986, section 3.3), though clients send it.
pub(crate) fn is_raw(byte: u8) -> bool {
    matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x80..)
}

/// Returns a URL in which those bytes of its path and query are percent-encoded that no URI may have.
pub(crate) fn encoded(url: &str) -> String {
    let host = url.find("://").map_or(0, |end| end + "://".len());
    let path = url[host..].find(['/', '?']).map_or(url.len(), |end| host + end);
    let mut text = url.as_bytes()[..path].to_vec();
    for byte in url.bytes().skip(path) {
        if is_raw(byte) {
            push_encoded(&mut text, byte);
        } else {
            text.push(byte);
        }
    }
    String::from_utf8(text).expect("bytes of a path that are not ASCII are encoded")
}

/// Appends a byte to a text in percent-encoded form, such as `%C3`.
pub(crate) fn push_encoded(text: &mut Vec<u8>, byte: u8) {
    const DIGITS: [u8; 16] = *b"0123456789ABCDEF";
    let digits = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
    text.extend_from_slice(&[b'%', digits[0], digits[1]]);
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(uri: &str) -> Result<Target, TargetError> {
        Target::of(&uri.parse().expect("a URI"))
    }

    #[test]
    fn targets_of_uris() {
        for (uri, expected) in [
            ("http://example.org", Ok("http://example.org/")),
            ("http://example.org/", Ok("http://example.org/")),
            ("HTTP://EXAMPLE.org/A", Ok("http://example.org/A")),
            ("http://example.org:80/", Ok("http://example.org/")),
            ("http://example.org:443/", Ok("http://example.org:443/")),
            ("https://example.org:443/", Ok("https://example.org/")),
            ("http://example.org:8080/?", Ok("http://example.org:8080/?")),
            ("http://example.org?a=b", Ok("http://example.org/?a=b")),
            ("http://example.org/%61//../b?q=%20", Ok("http://example.org/%61//../b?q=%20")),
            ("http://[::1]:80/", Ok("http://[::1]/")),
            ("/a", Err(TargetError::Scheme)),
            ("ftp://example.org/", Err(TargetError::Scheme)),
            ("http://user@example.org/", Err(TargetError::User)),
            ("http://user:word@example.org/", Err(TargetError::User)),
        ] {
            let found = of(uri);
            let text = found.as_ref().map(Target::as_str).map_err(|error| *error);
            assert_eq!(text, expected, "{uri}");
        }
        let target = of("http://example.org:8080/a?b").expect("a target");
        assert_eq!((target.origin(), target.path()), ("http://example.org:8080", "/a?b"));
    }

    #[test]
    fn bytes_that_no_uri_may_have() {
        for (uri, expected) in [
            ("http://a/b?c=%7B%22&d[]='!", None),
            (
                "http://a/{\"x\"}|\\^?q={a|`}",
                Some("http://a/%7B%22x%22%7D%7C%5C%5E?q=%7Ba%7C%60%7D"),
            ),
            ("http://a/\u{fc}?\u{1f600}", Some("http://a/%C3%BC?%F0%9F%98%80")),
        ] {
            let found = of(uri).expect("a target").encoded();
            assert_eq!(found.as_ref().map(Target::as_str), expected, "{uri}");
            assert!(found.is_none_or(|target| target.origin() == "http://a"), "{uri}");
        }
    }

    #[test]
    fn references_in_responses() {
        let base = of("http://example.org/a/b?c").expect("a target");
        for (reference, expected) in [
            ("", Some("http://example.org/a/b?c")),
            ("d", Some("http://example.org/a/d")),
            ("/d", Some("http://example.org/d")),
            ("?e", Some("http://example.org/a/b?e")),
            ("#f", Some("http://example.org/a/b?c")),
            ("//other.example/x#f", Some("http://other.example/x")),
            ("http://u:p@example.org:80/", Some("http://example.org/")),
            ("mailto:a@b", None),
            ("http://", None),
        ] {
            let found = base.resolve(reference.as_bytes());
            assert_eq!(found.as_ref().map(Target::as_str), expected, "{reference}");
        }
        assert_eq!(base.resolve(b"\xFF"), None);
    }

    proptest! {
        #[test]
        fn no_reference_is_too_strange(reference in "\\PC{0,40}") {
            let base = of("http://example.org/a/b?c").expect("a target");
            let _ = base.resolve(reference.as_bytes());
        }
    }
}
