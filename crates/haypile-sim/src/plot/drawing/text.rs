//! Text that fits: its characters, its width, and its abbreviation.

use unicode_width::UnicodeWidthChar;

/// Most characters of a text that are drawn.
const MAX_CHARS: usize = 300;

/// Returns the text as one line of characters that XML allows, cut at a sensible length.
pub fn printable(text: &str) -> String {
    let end = text.char_indices().nth(MAX_CHARS).map_or(text.len(), |(end, _)| end);
    one_line(&text[..end])
}

/// Returns the text as one line of characters that XML allows, of any length.
pub fn one_line(text: &str) -> String {
    let line = text.chars().map(|c| match c {
        '\u{FFFE}' | '\u{FFFF}' => '\u{FFFD}',
        // Marks that turn the direction of all that follows would reorder the numbers too.
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => ' ',
        c if c.is_control() || c.is_whitespace() && c != '\u{A0}' => ' ',
        c => c,
    });
    let line: String = line.collect();
    line.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Estimates the width of a text, in multiples of the font size.
///
/// The viewer of an SVG may have another sans-serif font, so this is an estimate that errs on the
/// wide side.
pub fn width_em(text: &str) -> f64 {
    text.chars().map(char_width_em).sum()
}

fn char_width_em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' => 0.30,
        'f' | 'r' | 't' | ' ' | '\u{A0}' | '(' | ')' | '[' | ']' | '-' | '/' => 0.40,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 0.92,
        '<' | '>' | '=' | '+' | '~' | '^' | '&' | '#' => 0.84,
        c if c.is_uppercase() => 0.70,
        c => match c.width() {
            Some(0) | None => 0.0,
            Some(1) => 0.59,
            Some(_) => 1.05,
        },
    }
}

/// Returns the text, without its end if it is wider than `em`.
pub fn cut(text: &str, em: f64) -> String {
    if width_em(text) <= em {
        return text.to_owned();
    }
    format!("{}…", fitting(text.chars(), em - char_width_em('…')).trim_end())
}

/// The text, with its middle left out if it is wider than `em`: names that start alike often
/// differ at the end.
pub fn shorten(text: &str, em: f64) -> String {
    if width_em(text) <= em {
        return text.to_owned();
    }
    let room = em - char_width_em('…');
    let head = fitting(text.chars(), room * 0.6);
    let tail = fitting(text.chars().rev(), room - width_em(&head));
    let tail: String = tail.chars().rev().collect();
    format!("{}…{}", head.trim_end(), tail.trim_start())
}

fn fitting(chars: impl Iterator<Item = char>, em: f64) -> String {
    let mut used = 0.0;
    chars
        .take_while(|&c| {
            used += char_width_em(c);
            used <= em
        })
        .collect()
}

/// Text as the content of an XML element.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_name_keeps_both_of_its_ends() {
        let short = shorten("s3fifo with a small queue of a tenth, threshold 2", 12.0);
        assert!(short.starts_with("s3fifo"), "{short}");
        assert!(short.ends_with("old 2"), "{short}");
        assert!(short.contains('…'), "{short}");
    }

    #[test]
    fn control_characters_become_spaces() {
        assert_eq!(printable("a\u{0}\n\t b\u{1b}[1m\u{202e}c\u{ffff}"), "a b [1m c\u{fffd}");
    }

    proptest! {
        #[test]
        fn shortened_text_fits_and_text_that_fits_stays(text in "\\PC{0,60}", em in 3.0..40.0f64) {
            for short in [shorten(&text, em), cut(&text, em)] {
                prop_assert!(width_em(&short) <= em + 1e-9);
                prop_assert!(short == text || width_em(&text) > em);
            }
        }
    }
}
