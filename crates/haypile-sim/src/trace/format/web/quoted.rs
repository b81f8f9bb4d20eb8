//! Columns that are separated by blanks, of which some are quoted or in brackets.

/// Splits a text after its opening quote into the quoted part and the rest, at the first quote without a backslash
/// before it.
pub(super) fn split_quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', text.get(from..)?)?;
        if text[at] == b'"' {
            return Some((&text[..at], &text[at + 1..]));
        }
        from = at + 2;
    }
}

/// An iterator over the columns of a log's line: words, `"..."` and `[...]`, without the quotes and brackets.
pub(super) struct Columns<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Columns<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.0.trim_ascii_start();
        let (column, rest) = match text.first()? {
            b'"' => split_quoted(&text[1..]),
            b'[' => super::split_at_byte(&text[1..], b']'),
            _ => None,
        }
        .unwrap_or_else(|| {
            let is_blank = |byte: &u8| byte.is_ascii_whitespace();
            text.split_at(text.iter().position(is_blank).unwrap_or(text.len()))
        });
        self.0 = rest;
        Some(column)
    }
}

/// An iterator over the columns of a log's line: words, and quoted texts in which two quotes stand for one.
pub(super) struct Doubled<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Doubled<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.0.trim_ascii_start();
        let end_of_word = || text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        let quoted = if text.first()? == &b'"' { closing_quote(&text[1..]) } else { None };
        let (column, end) = match quoted {
            Some(length) => (&text[1..=length], length + 2),
            None => (&text[..end_of_word()], end_of_word()),
        };
        self.0 = &text[end..];
        Some(column)
    }
}

/// Returns where the first quote is that stands alone.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr(b'"', text.get(at..)?)?;
        if text.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(text: &str) -> Vec<String> {
        Columns(text.as_bytes())
            .map(|column| String::from_utf8_lossy(column).into_owned())
            .collect()
    }

    #[test]
    fn two_quotes_are_one() {
        let columns = |text: &'static str| Doubled(text.as_bytes()).collect::<Vec<_>>();
        let expected: [&[u8]; 5] = [b"a", b"", b"b c", br#" ""d"" e "#, b"f"];
        assert_eq!(columns(r#"a "" "b c" " ""d"" e " f"#), expected);
        assert_eq!(columns(r#"a """#), [&b"a"[..], b""]);
    }

    #[test]
    fn marks_belong_to_no_column() {
        assert_eq!(
            columns(r#" a  "b \"c\" d" [1 2] - "" e"#),
            ["a", r#"b \"c\" d"#, "1 2", "-", "", "e"]
        );
        assert_eq!(columns("\"open [shut"), ["\"open", "[shut"]);
        assert_eq!(columns(r#"a "\"#), ["a", r#""\"#]);
        assert_eq!(columns("  "), [""; 0]);
    }
}
