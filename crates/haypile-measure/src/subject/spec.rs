//! The name of a subject.

use std::fmt;
use std::str::FromStr;

use haypile::url::CacheUrl;

/// The name of a subject (cache under test), and its options after a colon: `noop`, `mock:100ns`,
/// `memory:policy=lru`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubjectSpec(String);

impl SubjectSpec {
    /// Returns the subject's name without options: the part before the first colon; of a cache of
    /// levels, as in `memory+file`, the part before the first plus.
    pub fn name(&self) -> &str {
        let name = self.0.split_once(':').map_or(&*self.0, |(name, _)| name);
        match name {
            // The schemes that have a plus in them.
            "redis+unix" | "redis+cluster" => name,
            _ => name.split_once('+').map_or(name, |(first, _)| first),
        }
    }

    /// Returns the name of the cache that the subject measures: of an HTTP cache based on another,
    /// as in `http:memory+file`, the last level of the other; of a browser's caches, as in
    /// `necko:memory,size=6000KB`, the chosen one.
    pub fn cache_name(&self) -> &str {
        if let Some(browser) = self.0.strip_prefix("necko:") {
            return browser.split(',').next().unwrap_or(browser);
        }
        match self.0.strip_prefix("http:") {
            Some(cache) => {
                let last = cache.rsplit('+').next().unwrap_or(cache);
                last.split(':').next().unwrap_or(last)
            }
            None => self.name(),
        }
    }

    /// Returns the subject's name without options; of `again:3:noop`, the name of the subject that
    /// is repeated.
    pub(crate) fn inner_name(&self) -> &str {
        match self.rest().split_once(':') {
            Some((_, inner)) if self.name() == "again" => {
                inner.split_once(':').map_or(inner, |(name, _)| name)
            }
            _ => self.name(),
        }
    }

    /// Returns the subject's options: the part after the first colon; empty if there is none.
    pub fn rest(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, rest)| rest)
    }

    /// Returns the whole text of the subject's name and options, as the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the whole text of the subject's name and options with `xxxxx` in place of a possible
    /// password, for messages.
    pub fn redacted(&self) -> String {
        CacheUrl::redacted_text(&self.0)
    }
}

impl FromStr for SubjectSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() || text.starts_with(':') || text.contains(['\n', '\r', '\t']) {
            return Err(format!(
                "'{}' is not a subject; write a name, as in memory:policy=lru",
                CacheUrl::redacted_text(text)
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for SubjectSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Splits a list of subjects at its commas. A piece such as `policy=lru` belongs to the subject
/// before it, so that caches can be named in their short form.
///
/// ```
/// use haypile_measure::subject::split_list;
///
/// let subjects = split_list("memory:size=1MiB,policy=lru,noop").unwrap();
/// assert_eq!(subjects[0].to_string(), "memory:size=1MiB,policy=lru");
/// assert_eq!(subjects[1].to_string(), "noop");
/// ```
///
/// # Errors
///
/// A text that says which piece is not a subject.
pub fn split_list(text: &str) -> Result<Vec<SubjectSpec>, String> {
    let mut subjects: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let name = piece.split_once('=').map_or("", |(name, _)| name);
        match subjects.last_mut() {
            Some(subject) if !name.is_empty() && !name.contains(':') => {
                subject.push(',');
                subject.push_str(piece);
            }
            _ => subjects.push(piece.to_owned()),
        }
    }
    subjects.iter().map(|subject| subject.parse()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        split_list(text).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn commas_part_subjects_but_not_their_options() {
        assert_eq!(split("noop"), ["noop"]);
        assert_eq!(
            split("memory:policy=lru,size=1MiB,again:3:memory:policy=fifo,hashmap"),
            ["memory:policy=lru,size=1MiB", "again:3:memory:policy=fifo", "hashmap"]
        );
        assert_eq!(split("memory://?size=1MiB&policy=lru,noop")[1], "noop");
    }

    #[test]
    fn a_subject_has_a_name() {
        for text in ["", "a,,b", ":3", "a,", "a\nb", "://:hunter2@h"] {
            let error = split_list(text).unwrap_err();
            assert!(error.contains("is not a subject") && !error.contains("hunter2"), "{error}");
        }
        let spec: SubjectSpec = "again:3:noop".parse().unwrap();
        assert_eq!((spec.name(), spec.rest()), ("again", "3:noop"));
        for (text, name) in
            [("again:3:noop", "noop"), ("again:3:mock:9ns", "mock"), ("file:9", "file")]
        {
            assert_eq!(text.parse::<SubjectSpec>().unwrap().inner_name(), name);
        }
        for (text, name) in [
            ("memory+file", "memory"),
            ("memory:size=1MiB+memcached", "memory"),
            ("redis+unix:///run/redis.sock", "redis+unix"),
            ("redis+cluster://server", "redis+cluster"),
        ] {
            assert_eq!(text.parse::<SubjectSpec>().unwrap().name(), name);
        }
        for (text, name) in [
            ("memory+file", "memory"),
            ("http:none", "none"),
            ("http:memory:size=1MiB", "memory"),
            ("http:memory:size=1MiB+file", "file"),
            ("necko", "necko"),
            ("necko:none", "none"),
            ("necko:memory,size=6000KB", "memory"),
        ] {
            assert_eq!(text.parse::<SubjectSpec>().unwrap().cache_name(), name);
        }
    }
}
