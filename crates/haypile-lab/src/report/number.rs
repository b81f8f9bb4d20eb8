//! Counts and lists as words.

use haypile_number::NBSP;

/// Returns the text, shortened at its end if it has more than `most` characters.
pub(crate) fn bounded(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// Returns a number with its noun in the singular or plural, such as `3 blocks`.
pub(crate) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1{NBSP}{one}") } else { format!("{number}{NBSP}{one}s") }
}

/// Returns up to `most` names with commas between them, and "and N more" for the others.
pub(crate) fn first(names: &[String], most: usize) -> String {
    let shown = names.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Returns the words as a list in a sentence, with commas and a final "and".
pub(crate) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [words @ .., last] => format!("{} and {last}", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined() {
        let words = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(list(&words), "a, b and c");
        assert_eq!(list(&words[..1]), "a");
        assert_eq!(
            (count(1, "block"), count(2, "block")),
            ("1\u{A0}block".into(), "2\u{A0}blocks".into())
        );
    }
}
