//! One line of a list.

use std::time::Duration;

use haypile::ByteSize;

use crate::site::page::MAX_WAIT;
use crate::site::resource::ResourceKind;

/// The directives of `Cache-Control` that a list of resources may have; those that end with `=`
/// take seconds.
pub const DIRECTIVES: [&str; 11] = [
    "max-age=",
    "s-maxage=",
    "stale-while-revalidate=",
    "stale-if-error=",
    "no-cache",
    "no-store",
    "private",
    "public",
    "must-revalidate",
    "proxy-revalidate",
    "immutable",
];

/// The parsed words of a line in a list of resources: a URL, size, status and so on.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ListLine<'a> {
    pub(super) url: &'a str,
    pub(super) bytes: Option<u64>,
    pub(super) media_type: Option<&'a str>,
    pub(super) status: Option<u16>,
    pub(super) wait: Duration,
    directives: Vec<&'a str>,
    /// The text of an entity tag; empty for one that is generated.
    etag: Option<&'a str>,
    /// Names and values of the other words.
    others: Vec<(&'a str, &'a str)>,
}

impl<'a> ListLine<'a> {
    /// Parses a line of a list of resources, which has at least one word (the URL).
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let mut line = Self { url: words.next().unwrap_or_default(), ..Self::default() };
        for word in words {
            line.word(word)?;
        }
        Ok(line)
    }

    /// Whether a line in a list of resources states more than a URL and a wait, such as a size.
    pub(super) fn describes_resource(&self) -> bool {
        *self != Self { url: self.url, wait: self.wait, ..Self::default() }
    }

    /// Returns the response header lines that a line of a list states.
    pub(super) fn headers(&self, kind: ResourceKind, seed: u64) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        let media_type = self.media_type.unwrap_or_else(|| kind.media_type());
        headers.push(("content-type".to_owned(), media_type.to_owned()));
        if !self.directives.is_empty() {
            headers.push(("cache-control".to_owned(), self.directives.join(", ")));
        }
        if let Some(etag) = self.etag {
            let made = if etag.is_empty() { format!("\"{seed:016x}\"") } else { etag.to_owned() };
            headers.push(("etag".to_owned(), made));
        }
        headers
            .extend(self.others.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())));
        headers
    }

    fn word(&mut self, word: &'a str) -> Result<(), String> {
        if word.starts_with(|first: char| first.is_ascii_digit()) {
            let ByteSize(bytes) = word.parse().map_err(|error| format!("{error}"))?;
            return once(&mut self.bytes, bytes, "size");
        }
        match word.split_once('=') {
            Some(("type", value)) => once(&mut self.media_type, value, "type"),
            Some(("status", value)) => {
                let status = value.parse().map_err(|_| format!("'{value}' is not a status"))?;
                once(&mut self.status, status, "status")
            }
            Some(("wait", value)) => {
                self.wait = wait(value)?;
                Ok(())
            }
            Some(("etag", value)) => once(&mut self.etag, value, "etag"),
            Some((name @ ("vary" | "expires" | "age"), value)) => {
                self.others.push((name, value));
                Ok(())
            }
            None if word == "etag" => once(&mut self.etag, "", "etag"),
            _ => word.split(',').try_for_each(|directive| self.directive(directive)),
        }
    }

    fn directive(&mut self, directive: &'a str) -> Result<(), String> {
        let is_known = match directive.split_once('=') {
            Some((_, seconds)) => {
                let name = &directive[..directive.len() - seconds.len()];
                DIRECTIVES.contains(&name) && seconds.parse::<u32>().is_ok()
            }
            None => DIRECTIVES.contains(&directive),
        };
        if !is_known {
            return Err(format!(
                "unknown option '{directive}' (known: a size as 20KB, {}, etag, etag=TAG, \
                 vary=NAME, expires=TEXT, age=N, type=TYPE, status=N, wait=Nms; N of seconds is \
                 less than 4294967296)",
                DIRECTIVES.map(|known| known.replace('=', "=N")).join(", ")
            ));
        }
        self.directives.push(directive);
        Ok(())
    }
}

fn once<T>(place: &mut Option<T>, value: T, name: &str) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("two words for the {name}; write one")),
    }
}

fn wait(text: &str) -> Result<Duration, String> {
    let milliseconds = text.strip_suffix("ms").and_then(|number| number.parse().ok());
    milliseconds.map(Duration::from_millis).filter(|wait| *wait <= MAX_WAIT).ok_or_else(|| {
        format!(
            "'{text}' is not a wait: write milliseconds, as in wait=50ms, up to {}ms",
            MAX_WAIT.as_millis()
        )
    })
}

/// Returns the part of a list's line before its comment.
pub(super) fn without_comment(text: &str) -> &str {
    let begins =
        |(at, _): &(usize, &str)| text[..*at].chars().next_back().is_none_or(char::is_whitespace);
    let comment = text.match_indices('#').find(begins);
    comment.map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_begin_after_a_blank() {
        for (text, rest) in [("#x", ""), ("a #x", "a "), ("a#x", "a#x"), ("a#b\t# c", "a#b\t")] {
            assert_eq!(without_comment(text), rest);
        }
    }

    #[test]
    fn words_come_in_any_order() {
        let one = ListLine::parse("/a max-age=5,public 20KB wait=5ms etag").unwrap();
        let other = ListLine::parse("/a wait=5ms 20KB etag max-age=5 public").unwrap();
        assert_eq!(one, other);
        assert_eq!((one.bytes, one.wait), (Some(20_000), Duration::from_millis(5)));
        assert!(one.describes_resource());
        assert!(!ListLine::parse("/a wait=5ms").unwrap().describes_resource());
    }

    #[test]
    fn unknown_words_are_refused_with_the_known_ones() {
        for word in ["x", "max-age", "max-age=x", "no-store=1", "max-age=-1", "public,,private"] {
            let error = ListLine::parse(&format!("/a {word}")).unwrap_err();
            assert!(error.contains("max-age=N, ") && error.contains("etag=TAG"), "{error}");
        }
        for (words, part) in [
            ("5 6", "two words for the size"),
            ("20kb", "not a size"),
            ("status=x", "'x' is not a status"),
            ("wait=5", "wait=50ms"),
            ("wait=3600001ms", "up to 3600000ms"),
        ] {
            let error = ListLine::parse(&format!("/a {words}")).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
