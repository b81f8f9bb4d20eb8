//! Fields whose values are lists: RFC 9110, section 5.6.1.

use std::iter;

use http::{HeaderMap, HeaderName};

/// Returns the members of a comma-separated header field over all its lines, without surrounding
/// whitespace. Empty members are left out. A comma within a quoted string separates nothing.
pub(super) fn members<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a [u8]> {
    headers.get_all(name).iter().flat_map(|line| split(line.as_bytes()))
}

/// Returns all lines of a header field joined into one, as for structured fields (RFC 9651, section
/// 4.2).
pub(super) fn joined(headers: &HeaderMap, name: &HeaderName) -> Vec<u8> {
    let lines: Vec<&[u8]> = headers.get_all(name).iter().map(AsRef::as_ref).collect();
    lines.join(&b", "[..])
}

/// Returns the members of one line.
fn split(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    // An unclosed quote hides nothing: a directive behind it may be the stricter one.
    let has_quotes = line.iter().all(|byte| *byte != b'"') || member_end(line, true).is_some();
    let mut rest = Some(line);
    let members = iter::from_fn(move || {
        let line = rest?;
        let end = if has_quotes { member_end(line, true)? } else { member_end(line, false)? };
        rest = line.get(end + 1..);
        Some(line[..end].trim_ascii())
    });
    members.filter(|member| !member.is_empty())
}

/// Returns where the first member ends; `None` if a quoted string of the line is never closed.
fn member_end(line: &[u8], has_quotes: bool) -> Option<usize> {
    let (mut end, mut is_quoted, mut is_escaped) = (None, false, false);
    for (at, byte) in line.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'"' if has_quotes => is_quoted = !is_quoted,
            b'\\' if is_quoted => is_escaped = true,
            b',' if !is_quoted && end.is_none() => end = Some(at),
            _ => {}
        }
    }
    (!is_quoted).then(|| end.unwrap_or(line.len()))
}

/// Whether bytes of a header field are a token (RFC 9110, section 5.6.2).
pub(super) fn is_token(bytes: &[u8]) -> bool {
    let is_sign = |byte: &u8| b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || is_sign(byte))
}

/// Returns the text of a quoted string in a header field, without its quotes and escapes; `None` if
/// it is not one.
pub(super) fn unquoted(bytes: &[u8]) -> Option<Vec<u8>> {
    let inner = bytes.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut text = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return None,
            b'\\' => text.push(*bytes.next()?),
            byte => text.push(*byte),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use http::header::{CACHE_CONTROL, HeaderValue};
    use proptest::prelude::*;

    use super::*;

    fn of(lines: &[&str]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(CACHE_CONTROL, HeaderValue::from_str(line).expect("a value"));
        }
        let members = members(&headers, &CACHE_CONTROL);
        members.map(|member| String::from_utf8_lossy(member).into_owned()).collect()
    }

    #[test]
    fn members_of_lists() {
        for (lines, expected) in [
            (&[][..], &[][..]),
            (&["", " , ,\t"], &[]),
            (&["a, b ,,c"], &["a", "b", "c"]),
            (&["a", "b, c"], &["a", "b", "c"]),
            (&["x=\"a, b\", c"], &["x=\"a, b\"", "c"]),
            (&["x=\"a\\\", b\", c"], &["x=\"a\\\", b\"", "c"]),
            (&["a, x=\"b, no-store"], &["a", "x=\"b", "no-store"]),
            (&["x=\"b\\\", no-store", "c"], &["x=\"b\\\"", "no-store", "c"]),
        ] {
            assert_eq!(of(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn tokens() {
        for (bytes, expected) in [
            ("max-age", true),
            ("!#$%&'*+-.^_`|~9Z", true),
            ("", false),
            ("a b", false),
            ("a=", false),
        ] {
            assert_eq!(is_token(bytes.as_bytes()), expected, "{bytes}");
        }
    }

    #[test]
    fn quoted_strings() {
        for (bytes, text) in [
            ("\"\"", Some("")),
            ("\"a\"", Some("a")),
            ("\"a\\\"b\\\\\"", Some("a\"b\\")),
            ("a", None),
            ("\"", None),
            ("\"a", None),
            ("\"a\"b\"", None),
            ("\"a\\\"", None),
        ] {
            let found = unquoted(bytes.as_bytes());
            assert_eq!(found.as_deref(), text.map(str::as_bytes), "{bytes}");
        }
    }

    proptest! {
        #[test]
        fn any_line_has_an_end(line in prop::collection::vec(any::<u8>(), 0..60)) {
            for member in split(&line) {
                prop_assert!(!member.is_empty() && member.len() <= line.len());
            }
        }
    }
}
