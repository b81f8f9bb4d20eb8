//! Notation of keys as text.
//!
//! A key is any bytes. Printable text stays as it is; everything else is escaped: `\n`, `\r`, `\t`,
//! `\\` for a backslash and `\xHH` for any other byte. Each text stands for exactly one key and
//! reads back as it.

use std::fmt::Write;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Returns a cache key as printable text on one line, with escapes for other bytes.
pub(crate) fn escape(key: &[u8]) -> String {
    let mut text = String::with_capacity(key.len());
    for chunk in key.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str(r"\\"),
                '\n' => text.push_str(r"\n"),
                '\r' => text.push_str(r"\r"),
                '\t' => text.push_str(r"\t"),
                character if shows(character) => text.push(character),
                character => {
                    escape_bytes(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut text);
                }
            }
        }
        escape_bytes(chunk.invalid(), &mut text);
    }
    text
}

fn escape_bytes(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        write!(text, r"\x{byte:02x}").expect("writing to a string does not fail");
    }
}

/// Whether a character is visible. Characters that control a terminal or reverse the order of text
/// are not.
fn shows(character: char) -> bool {
    if character.is_ascii() {
        return character == ' ' || character.is_ascii_graphic();
    }
    // `escape_debug` escapes a combining accent at the start of a text.
    let text = String::from_iter(['x', character]);
    text.escape_debug().eq(text.chars())
}

/// Returns the cache key that a text from [`escape`] stands for. Hexadecimal digits may be
/// upper-case too, and any byte may be escaped.
pub(crate) fn unescape(text: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut key = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        key.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let (byte, length) = match rest {
            [_, b'\\', ..] => (b'\\', 2),
            [_, b'n', ..] => (b'\n', 2),
            [_, b'r', ..] => (b'\r', 2),
            [_, b't', ..] => (b'\t', 2),
            [_, b'x', high, low, ..]
                if let (Some(high), Some(low)) = (digit(*high), digit(*low)) =>
            {
                (high << 4 | low, 4)
            }
            _ => bail!(
                r"the key '{}' has an unknown escape at byte {} (known: \\ \n \r \t, and \xHH with two hexadecimal digits)",
                escape(text),
                text.len() - rest.len() + 1
            ),
        };
        key.push(byte);
        rest = &rest[length..];
    }
    key.extend_from_slice(rest);
    Ok(key)
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// Returns bytes encoded in base64 of RFC 4648, with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Returns the cache key that a base64 text stands for.
pub(crate) fn decode(text: &[u8]) -> anyhow::Result<Vec<u8>> {
    STANDARD.decode(text).with_context(|| format!("the key '{}' is not base64", escape(text)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn printable_text_stays_as_it_is() {
        for text in [
            "",
            " ",
            "user:7",
            "a b",
            "https://x.org/%20?a=1&b='\"",
            "Straße",
            "日本語",
            "e\u{301}",
        ] {
            assert_eq!(escape(text.as_bytes()), text);
        }
    }

    #[test]
    fn all_other_bytes_are_escaped() {
        for (key, text) in [
            (&b"C:\\temp"[..], r"C:\\temp"),
            (b"a\nb\rc\td", r"a\nb\rc\td"),
            (b"\0\x1b[31m\x7f", r"\x00\x1b[31m\x7f"),
            (b"\xff\xfe", r"\xff\xfe"),
            // Cut off in the middle of a character.
            ("a\u{df}".as_bytes().split_last().unwrap().1, r"a\xc3"),
            // A control sequence of 8 bits, an override of the direction, an invisible space.
            ("\u{9b}31m".as_bytes(), r"\xc2\x9b31m"),
            ("\u{202e}".as_bytes(), r"\xe2\x80\xae"),
            ("\u{200b}".as_bytes(), r"\xe2\x80\x8b"),
            ("\u{2028}".as_bytes(), r"\xe2\x80\xa8"),
        ] {
            assert_eq!(escape(key), text);
            assert_eq!(unescape(text.as_bytes()).unwrap(), key);
        }
    }

    #[test]
    fn digits_may_be_upper_case() {
        assert_eq!(unescape(br"\xAf\x41\xC3\x9F").unwrap(), b"\xafA\xc3\x9f");
    }

    #[test]
    fn an_unknown_escape_is_an_error_with_its_place() {
        for (text, place) in
            [(r"\", 1), (r"a\", 2), (r"ab\q", 3), (r"\x4", 1), (r"\xg0", 1), (r"\\\x+1", 3)]
        {
            let message = unescape(text.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(&format!("at byte {place} ")), "{message}");
        }
        let message = decode(b"!").unwrap_err().to_string();
        assert_eq!(message, "the key '!' is not base64");
    }

    proptest! {
        #[test]
        fn every_key_reads_back(key in prop_oneof![any::<Vec<u8>>(), ".*".prop_map(String::into_bytes)]) {
            let text = escape(&key);
            prop_assert!(text.chars().all(|character| !character.is_control()));
            prop_assert_eq!(unescape(text.as_bytes()).unwrap(), &key[..]);
            prop_assert_eq!(decode(encode(&key).as_bytes()).unwrap(), key);
        }

        #[test]
        fn no_text_panics(text in any::<Vec<u8>>()) {
            let _ = unescape(&text);
            let _ = decode(&text);
        }
    }
}
