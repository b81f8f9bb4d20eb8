//! URLs: the names of caches.
//!
//! A cache is one level, or several with the fastest in front. There are two forms with the same
//! meaning:
//!
//! | | one level | several |
//! |---|---|---|
//! | canonical | `memory://?size=64MiB&policy=lru` | joined by ` -> ` |
//! | short, for a shell without quotes | `memory:size=64MiB,policy=lru` | joined by `+` |
//!
//! The canonical form is `SCHEME://SERVER/PATH?NAME=VALUE&NAME=VALUE`; the short form is
//! `SCHEME:SERVER/PATH,NAME=VALUE,NAME=VALUE`. In both, `%` and two hexadecimal digits stand for a
//! byte, so that a path may contain the separators. Paths are absolute; on Unix they are bytes, elsewhere UTF-8.
//! Everything else is UTF-8.
//!
//! A level in front of another also accepts tier options, whatever its scheme:
//! `memory:size=16MiB,stale=5s+file:/tmp/app.haypile`; see [`tier`](crate::tier).
//!
//! [`CacheUrl`] and [`Level`] know this syntax but no scheme. A [`Scheme`] declares its options; a
//! [`Registry`](crate::Registry) knows the schemes that can be opened, and checks a URL against
//! them.

mod error;
mod parse;
mod redact;
mod resolve;
mod resolved;
mod scheme;

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode, utf8_percent_encode};

pub use error::UrlError;
pub use resolved::ResolvedLevel;
pub use scheme::{OptionSpec, Place, Scheme, ValueKind};

/// The characters to escape in paths and values: all that could end or split a part of either form,
/// or that are special to a shell.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'/')
    .remove(b':')
    .remove(b'@')
    .remove(b'=');

/// The characters to escape in a server, which ends at a slash and differs from an option by having
/// no `=`. An IPv6 address is in brackets.
const ESCAPED_IN_SERVER: &AsciiSet = &ESCAPED.add(b'/').add(b'=').remove(b'[').remove(b']');

/// The URL that names a cache: one level or several, the fastest first.
///
/// Parsing checks the syntax only; [`Registry::parse`](crate::Registry::parse) also checks it
/// against the schemes that can be opened. `Display` prints the canonical form, and
/// [`short`](Self::short) the other.
///
/// ```
/// use haypile::url::CacheUrl;
///
/// let url: CacheUrl = "memory:size=16MiB+memcached:127.0.0.1:11211".parse().unwrap();
/// assert_eq!(url.to_string(), "memory://?size=16MiB -> memcached://127.0.0.1:11211");
/// assert_eq!(url.levels()[1].server(), "127.0.0.1:11211");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheUrl {
    levels: Vec<Level>,
}

impl CacheUrl {
    /// Returns the URL that names a cache with these levels, the fastest first. It does not check that they exist or fit.
    ///
    /// # Errors
    ///
    /// [`UrlError::Empty`] if there is none.
    pub fn new(levels: Vec<Level>) -> Result<Self, UrlError> {
        if levels.is_empty() { Err(UrlError::Empty) } else { Ok(Self { levels }) }
    }

    /// Returns the levels of the URL, the fastest first. There is at least one.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Returns the short form of the URL, which needs no quotes in a shell.
    pub fn short(&self) -> impl fmt::Display + '_ {
        Short(self)
    }
}

impl From<Level> for CacheUrl {
    fn from(level: Level) -> Self {
        Self { levels: vec![level] }
    }
}

impl FromStr for CacheUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        parse::cache_url(text)
    }
}

impl fmt::Display for CacheUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, level) in self.levels.iter().enumerate() {
            if position > 0 {
                f.write_str(" -> ")?;
            }
            write!(f, "{level}")?;
        }
        Ok(())
    }
}

/// One level of a cache URL: its scheme, its server or path, and its options in the given order.
/// `Debug` prints it without its password, and `Display` with it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Level {
    scheme: String,
    server: String,
    path: PathBuf,
    options: Vec<(String, String)>,
}

impl Level {
    /// Returns a level of a URL with this scheme, and without a server, a path or options.
    ///
    /// # Errors
    ///
    /// [`UrlError::BadScheme`] unless the scheme is a lower-case letter and then lower-case
    /// letters, digits, `+`, `-` or `.`.
    pub fn new(scheme: &str) -> Result<Self, UrlError> {
        let mut bytes = scheme.bytes();
        let first = bytes.next().is_some_and(|byte| byte.is_ascii_lowercase());
        let rest = bytes.all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte)
        });
        if !first || !rest {
            return Err(UrlError::BadScheme { text: scheme.to_owned() });
        }
        Ok(Self {
            scheme: scheme.to_owned(),
            server: String::new(),
            path: PathBuf::new(),
            options: Vec::new(),
        })
    }

    /// Sets the server in this level of a URL: a host and a port, or nothing.
    #[must_use]
    pub fn with_server(mut self, server: impl Into<String>) -> Self {
        self.server = server.into();
        self
    }

    /// Sets the path in this level of a URL.
    ///
    /// # Errors
    ///
    /// [`UrlError::RelativePath`] unless it is empty or starts with a slash.
    pub fn with_path(mut self, path: impl Into<PathBuf>) -> Result<Self, UrlError> {
        let path = path.into();
        if !path.as_os_str().is_empty() && !path.has_root() {
            return Err(UrlError::RelativePath { path: path.display().to_string() });
        }
        self.path = path;
        Ok(self)
    }

    /// Adds an option to this level of a URL.
    ///
    /// # Errors
    ///
    /// [`UrlError::NotAnOption`] for a name that is not of lower-case letters, digits, `_` and
    /// `-`; [`UrlError::DuplicateOption`].
    pub fn with_option(
        mut self,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<Self, UrlError> {
        let name = name.into();
        let allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        if name.is_empty() || !name.bytes().all(allowed) {
            return Err(UrlError::NotAnOption { text: name });
        }
        if self.option(&name).is_some() {
            return Err(UrlError::DuplicateOption { name });
        }
        self.options.push((name, value.into()));
        Ok(self)
    }

    /// Returns the scheme of this level of a URL, which comes before its first colon: `memory`,
    /// `redis+unix`.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Returns the host and port of this level of a URL, decoded; empty if there is none.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the path of this level of a URL, decoded; empty or absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of this level of a URL as text, with a replacement character for bytes that
    /// are not UTF-8.
    pub(crate) fn path_text(&self) -> Cow<'_, str> {
        self.path.to_string_lossy()
    }

    /// Returns the names and values of the options of this level of a URL, decoded. No name occurs
    /// twice.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.options.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the value of an option of this level of a URL, by the option's name, if it is given.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options().find(|(option, _)| *option == name).map(|(_, value)| value)
    }

    /// Replaces the value of an option of this level of a URL, if the option is given.
    #[must_use]
    #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
    pub(crate) fn with_value(mut self, name: &str, value: &str) -> Self {
        if let Some((_, given)) = self.options.iter_mut().find(|(option, _)| option == name) {
            value.clone_into(given);
        }
        self
    }

    /// Returns this level with its scheme and place alone.
    fn without_options(&self) -> Self {
        Self { options: Vec::new(), ..self.clone() }
    }

    /// Returns this level of a URL without the options that `is_taken` selects, and a level with
    /// only those options, without a server or a path.
    pub(crate) fn split_options(&self, is_taken: impl Fn(&str) -> bool) -> (Self, Self) {
        let (taken, left) = self.options.iter().cloned().partition(|(name, _)| is_taken(name));
        let (server, path) = (String::new(), PathBuf::new());
        let taken = Self { scheme: self.scheme.clone(), server, path, options: taken };
        (Self { options: left, ..self.clone() }, taken)
    }

    fn write_place(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", utf8_percent_encode(&self.server, ESCAPED_IN_SERVER))?;
        write!(f, "{}", percent_encode(self.path.as_os_str().as_encoded_bytes(), ESCAPED))
    }

    fn write_options(
        &self,
        f: &mut fmt::Formatter<'_>,
        first: &'static str,
        then: &'static str,
    ) -> fmt::Result {
        let mut separator = first;
        for (name, value) in self.options() {
            write!(f, "{separator}{name}={}", utf8_percent_encode(value, ESCAPED))?;
            separator = then;
        }
        Ok(())
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme)?;
        self.write_place(f)?;
        self.write_options(f, "?", "&")
    }
}

struct Short<'a>(&'a CacheUrl);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, level) in self.0.levels.iter().enumerate() {
            if position > 0 {
                f.write_str("+")?;
            }
            write!(f, "{}:", level.scheme)?;
            // `SCHEME://` marks the canonical form, and a path may start like that.
            let path = level.path.as_os_str().as_encoded_bytes();
            if level.server.is_empty() && path.starts_with(b"//") {
                let rest = percent_encode(&path[1..], ESCAPED_IN_SERVER);
                write!(f, "/{rest}")?;
            } else {
                level.write_place(f)?;
            }
            let placed = !level.server.is_empty() || !path.is_empty();
            level.write_options(f, if placed { "," } else { "" }, ",")?;
        }
        Ok(())
    }
}
