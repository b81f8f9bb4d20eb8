//! Text that fits: its characters, its width, and its abbreviation.

use unicode_width::UnicodeWidthChar;

/// Most characters of a text that are drawn.
const MAX_CHARS: usize = 300;

/// Returns a text as one line of characters that XML allows, cut to at most 300 characters.
pub fn printable(text: &str) -> String {
    let end = text.char_indices().nth(MAX_CHARS).map_or(text.len(), |(end, _)| end);
    one_line(&text[..end])
}

/// Returns a text as one line of characters that XML allows, without a limit of its length.
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

/// Estimates the width of a drawn text, in multiples of the font size.
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

/// Returns the text, cut at its end with an ellipsis if it is wider than `em` font sizes.
pub fn cut(text: &str, em: f64) -> String {
    if width_em(text) <= em {
        return text.to_owned();
    }
    format!("{}…", fitting(text.chars(), em - char_width_em('…')).trim_end())
}

/// Returns the text, shortened in its middle if it is wider than `em` font sizes, because names that start alike often
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

/// Shortens names as [`shorten`] does, and keeps different names different: where two would look alike, it leaves out
/// their common part.
pub fn shorten_apart(names: &[&str], em: f64) -> Vec<String> {
    let mut short: Vec<String> = names.iter().map(|name| shorten(name, em)).collect();
    for at in 0..names.len() {
        let alike: Vec<usize> = (0..names.len())
            .filter(|other| short[*other] == short[at] && names[*other] != names[at])
            .chain([at])
            .collect();
        if alike.len() == 1 {
            continue;
        }
        let chars: Vec<Vec<char>> = alike.iter().map(|at| names[*at].chars().collect()).collect();
        let common = |from_end: bool, most: usize| {
            let char_at = |name: &[char], n: usize| {
                if from_end { name[name.len() - 1 - n] } else { name[n] }
            };
            (0..most)
                .take_while(|n| {
                    chars.iter().all(|name| char_at(name, *n) == char_at(&chars[0], *n))
                })
                .count()
        };
        let shortest = chars.iter().map(Vec::len).min().unwrap_or(0);
        let start = common(false, shortest);
        let end = common(true, shortest - start);
        for (number, (at, name)) in alike.iter().zip(&chars).enumerate() {
            let head = fitting(name.iter().copied(), em * 0.4);
            let own: String = name[start..name.len() - end].iter().collect();
            let room = em - width_em(&head) - 2.0 * char_width_em('…');
            let own = shorten(&own, room);
            short[*at] = format!("{}…{own}…", head.trim_end());
            // They may differ in the middle of a long part only.
            if alike[..number].iter().any(|other| short[*other] == short[*at]) {
                let place = format!("{}: ", at + 1);
                let name: String = name.iter().collect();
                short[*at] = place.clone() + &shorten(&name, em - width_em(&place));
            }
        }
    }
    short
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

/// Escapes a text for use as the content of an XML element.
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
    fn names_that_differ_stay_apart() {
        let name = |policy: &str, part: &str| {
            format!("{policy}, cluster-of-many-machines-{part}-in-the-first-week-of-march.csv.zst")
        };
        let names = [name("lru", "17"), name("lru", "18"), name("arc", "17"), "lru".to_owned()];
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let short = shorten_apart(&names, 16.0);
        assert!(short[0].starts_with("lru") && short[0].contains("…7…"), "{short:?}");
        assert!(short[1].starts_with("lru") && short[1].contains("…8…"), "{short:?}");
        assert_eq!(short[2], shorten(names[2], 16.0));
        assert_eq!(short[3], "lru");
        assert!(short.iter().all(|name| width_em(name) <= 16.0), "{short:?}");
        // Of names that are the same nothing can be told.
        assert_eq!(shorten_apart(&["a", "a"], 16.0), ["a", "a"]);
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
