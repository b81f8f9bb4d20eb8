//! Parsing of URLs in both forms.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::redact::Quoted;
use super::{CacheUrl, Level, UrlError};

const CANONICAL_SEPARATOR: &str = " -> ";

pub(super) fn cache_url(text: &str) -> Result<CacheUrl, UrlError> {
    let parser = Parser { quoted: Quoted::new(text) };
    let level = |text| parser.level(text);
    if text.contains(CANONICAL_SEPARATOR) || is_canonical(text) {
        CacheUrl::new(text.split(CANONICAL_SEPARATOR).map(level).collect::<Result<_, _>>()?)
    } else {
        CacheUrl::new(short_levels(text).into_iter().map(level).collect::<Result<_, _>>()?)
    }
}

/// Whether the text after the scheme starts in the canonical form.
fn is_canonical(text: &str) -> bool {
    text.split_once(':').is_some_and(|(_, rest)| rest.starts_with("//"))
}

/// Splits at each `+` that ends a level. A scheme may contain one (`redis+unix:`), so a part
/// without a colon belongs to the scheme after it.
fn short_levels(text: &str) -> Vec<&str> {
    let mut levels = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices('+') {
        if at == start || text[start..at].contains(':') {
            levels.push(&text[start..at]);
            start = at + 1;
        }
    }
    levels.push(&text[start..]);
    levels
}

/// Whether a path has `,NAME=` in it. The servers before it may be separated by commas.
fn has_short_options(place: &str) -> bool {
    let path = place.find('/').map_or("", |at| &place[at..]);
    path.split(',').skip(1).any(|part| part.contains('='))
}

/// Parses parts of a text, and quotes them in errors.
struct Parser<'a> {
    quoted: Quoted<'a>,
}

impl Parser<'_> {
    fn level(&self, text: &str) -> Result<Level, UrlError> {
        if text.is_empty() {
            return Err(UrlError::Empty);
        }
        // Both forms escape `>`: the text must be meant as two levels.
        if text.contains("->") {
            return Err(UrlError::BadSeparator { text: self.quoted.part(text) });
        }
        let Some((scheme, rest)) = text.split_once(':') else {
            // Only a scheme without a place and options can be meant: `none`.
            return self.scheme(text);
        };
        let level = self.scheme(scheme)?;
        if let Some(rest) = rest.strip_prefix("//") {
            let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
            self.refuse_mixture(place, has_short_options(place))?;
            self.options(self.place(level, place)?, options, '&')
        } else {
            let (first, others) = rest.split_once(',').unwrap_or((rest, ""));
            // The name of an option has no slash, and a server no unescaped `=`.
            let mark = first.find(['/', '=']).map(|at| first.as_bytes()[at]);
            if mark == Some(b'=') {
                self.options(level, rest, ',')
            } else {
                self.refuse_mixture(first, first.contains('?'))?;
                self.options(self.place(level, first)?, others, ',')
            }
        }
    }

    fn scheme(&self, text: &str) -> Result<Level, UrlError> {
        Level::new(text).map_err(|_| UrlError::BadScheme { text: self.quoted.part(text) })
    }

    /// Refuses a place that has the options of the other form in it, which would become a part of its
    /// path.
    fn refuse_mixture(&self, place: &str, has_options: bool) -> Result<(), UrlError> {
        if has_options {
            return Err(UrlError::MixedForms { text: self.quoted.part(place) });
        }
        Ok(())
    }

    fn place(&self, level: Level, text: &str) -> Result<Level, UrlError> {
        let (server, path) = text.split_at(text.find('/').unwrap_or(text.len()));
        level.with_server(self.decode(server)?).with_path(self.decode_path(path)?)
    }

    fn options(&self, mut level: Level, text: &str, separator: char) -> Result<Level, UrlError> {
        if text.is_empty() {
            return Ok(level);
        }
        for option in text.split(separator) {
            let (name, value) = option
                .split_once('=')
                .ok_or_else(|| UrlError::NotAnOption { text: self.quoted.part(option) })?;
            let value = self.decode(value)?;
            level = level.with_option(name, value).map_err(|error| match error {
                UrlError::DuplicateOption { .. } => {
                    UrlError::DuplicateOption { name: self.quoted.part(name) }
                }
                _ => UrlError::NotAnOption { text: self.quoted.part(name) },
            })?;
        }
        Ok(level)
    }

    fn decode(&self, text: &str) -> Result<String, UrlError> {
        let error = |_| UrlError::BadEscape { text: self.quoted.part(text) };
        String::from_utf8(self.decode_bytes(text)?).map_err(error)
    }

    #[cfg(unix)]
    fn decode_path(&self, text: &str) -> Result<PathBuf, UrlError> {
        use std::os::unix::ffi::OsStringExt;
        Ok(std::ffi::OsString::from_vec(self.decode_bytes(text)?).into())
    }

    #[cfg(not(unix))]
    fn decode_path(&self, text: &str) -> Result<PathBuf, UrlError> {
        self.decode(text).map(PathBuf::from)
    }

    fn decode_bytes(&self, text: &str) -> Result<Vec<u8>, UrlError> {
        let is_escape = |rest: &str| {
            rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        };
        if !text.split('%').skip(1).all(is_escape) {
            return Err(UrlError::BadEscape { text: self.quoted.part(text) });
        }
        Ok(percent_decode_str(text).collect())
    }
}
