//! The size of a body, as the browser transferred it.

use serde_json::Value;

use super::entry::{number, whole};
use crate::site::resource::MAX_BODY_BYTES;

/// The size of a recorded response's body: as transferred, after decoding (which may be more), or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodySize {
    /// The HAR does not state the size.
    Unknown,
    /// The size after decoding: of an encoded body, more than what came.
    Decoded(u64),
    /// The size as transferred over the network, without headers.
    Transferred(u64),
}

impl BodySize {
    /// Determines the size of a recorded response's body from a HAR file; header names are in lower case.
    pub(super) fn read(response: &Value, headers: &[(String, String)]) -> Self {
        if response.get("status").and_then(Value::as_u64) == Some(304) {
            return Self::of_confirmed(response);
        }
        let content = response.get("content").unwrap_or(&Value::Null);
        let bytes = |value: Option<&Value>| value.and_then(number).and_then(whole);
        let above_0 = |bytes: Option<u64>| bytes.filter(|bytes| *bytes > 0);
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = above_0(length.and_then(|(_, value)| value.trim().parse().ok()));
        let all = above_0(bytes(response.get("_transferSize")));
        let transferred = all.and_then(|all| match bytes(response.get("headersSize")) {
            Some(of_headers) => all.checked_sub(of_headers),
            // Compressed headers have no size of their own. What comes cannot be more than everything.
            None => length.filter(|length| *length <= all).or(Some(all)),
        });
        let body = above_0(bytes(response.get("bodySize")));
        let decoded = bytes(content.get("size"));
        let compressed = || {
            let saved = content.get("compression").and_then(number)?;
            // Of what a cache answered, everything counts as saved.
            above_0(whole(decoded? as f64 - saved))
        };
        // Where nothing was decoded nothing came, whatever the server meant to send.
        let stated = length.filter(|_| decoded != Some(0));
        let found = above_0(transferred).or(body).or_else(compressed).or(stated);
        match (found, decoded) {
            (Some(bytes), _) => Self::Transferred(bytes),
            // Nothing is nothing, encoded or not.
            (None, Some(0)) => Self::Transferred(0),
            (None, Some(bytes)) => Self::Decoded(bytes),
            (None, None) if bytes(response.get("bodySize")) == Some(0) => Self::Transferred(0),
            (None, None) => Self::Unknown,
        }
    }

    /// Returns the size of a body that the browser had and the server confirmed. What came was headers.
    fn of_confirmed(response: &Value) -> Self {
        let decoded = response.get("content").and_then(|content| content.get("size"));
        match decoded.and_then(number).and_then(whole) {
            Some(bytes) if bytes > 0 => Self::Decoded(bytes),
            _ => Self::Unknown,
        }
    }

    /// Returns the more reliable of two recorded sizes of the body for the same URL: a transferred one rather than a
    /// decoded one.
    pub(super) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (Self::Decoded(_), Self::Transferred(_)) => other,
            _ => self,
        }
    }

    /// Returns the size of the body in bytes; 0 if the HAR file does not state it, and at most [`MAX_BODY_BYTES`].
    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::Unknown => 0,
            Self::Decoded(bytes) | Self::Transferred(bytes) => bytes.min(MAX_BODY_BYTES),
        }
    }

    /// Whether the recorded body is larger than a site allows, so that it is shortened.
    pub(super) fn is_cut(self) -> bool {
        matches!(self, Self::Decoded(bytes) | Self::Transferred(bytes) if bytes > MAX_BODY_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn size(response: &Value) -> BodySize {
        let headers = response["headers"].as_object().cloned().unwrap_or_default();
        let headers: Vec<(String, String)> = headers
            .into_iter()
            .map(|(name, value)| (name, value.as_str().unwrap().to_owned()))
            .collect();
        BodySize::read(response, &headers)
    }

    #[test]
    fn the_bytes_of_the_wire_come_first() {
        use BodySize::{Decoded, Transferred, Unknown};
        let length = |text: &str| json!({ "content-length": text });
        for (response, expected) in [
            // Chrome, HTTP/1.1: all bytes, those of the headers, and the body after decoding.
            (
                json!({"_transferSize": 1200, "headersSize": 200, "bodySize": 900, "content": {"size": 5000}}),
                Transferred(1000),
            ),
            // Chrome, HTTP/2: headers are compressed, and have no size.
            (
                json!({"_transferSize": 1200, "headersSize": -1, "bodySize": -1,
                    "headers": length("1000"), "content": {"size": 5000}}),
                Transferred(1000),
            ),
            (
                json!({"_transferSize": 1200, "headersSize": -1, "headers": length("4000"),
                    "content": {"size": 5000}}),
                Transferred(1200),
            ),
            // A 304 of headers alone says nothing of the body.
            (
                json!({"_transferSize": 200, "headersSize": 200, "bodySize": 700, "content": {"size": 5000}}),
                Transferred(700),
            ),
            // Firefox and WebPageTest.
            (json!({"bodySize": 900, "content": {"size": 5000}}), Transferred(900)),
            // HAR 1.2 without more.
            (
                json!({"bodySize": -1, "content": {"size": 5000, "compression": 4100}}),
                Transferred(900),
            ),
            // Chrome, from its cache: everything was saved, and the field is of the stored response.
            (
                json!({"_transferSize": 0, "bodySize": 0, "headers": length("900"),
                    "content": {"size": 5000, "compression": 5000}}),
                Transferred(900),
            ),
            (
                json!({"_transferSize": 0, "bodySize": 0, "content": {"size": 5000, "compression": 5000}}),
                Decoded(5000),
            ),
            (json!({"bodySize": -1, "content": {"size": 5000}}), Decoded(5000)),
            (json!({"bodySize": "900"}), Transferred(900)),
            (json!({"bodySize": -1, "content": {"size": 0}}), Transferred(0)),
            (json!({"bodySize": 0}), Transferred(0)),
            (
                json!({"bodySize": 0, "headers": length("900"), "content": {"size": 0}}),
                Transferred(0),
            ),
            (json!({"bodySize": -1, "content": {"size": -1}}), Unknown),
            (json!({}), Unknown),
        ] {
            assert_eq!(size(&response), expected, "{response}");
        }
    }

    #[test]
    fn what_is_known_better_is_taken() {
        use BodySize::{Decoded, Transferred, Unknown};
        assert_eq!(Decoded(9).or(Transferred(3)), Transferred(3));
        assert_eq!(Transferred(3).or(Transferred(9)), Transferred(3));
        assert_eq!(Unknown.or(Decoded(9)), Decoded(9));
        assert_eq!(Transferred(3).or(Unknown), Transferred(3));
        let huge = BodySize::Decoded(u64::MAX);
        assert_eq!((huge.bytes(), huge.is_cut()), (MAX_BODY_BYTES, true));
    }
}
