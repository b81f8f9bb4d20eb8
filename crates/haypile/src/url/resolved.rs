//! Levels whose options have been read.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use haypile_policy::PolicySpec;

use super::{CacheUrl, Level, Scheme};
use crate::compress::Compression;
use crate::size::ByteSize;

/// A level of a URL that was [resolved](Level::resolve) against its scheme. Its server or path is
/// of the kind that the scheme declares, and each of its options has a value of the declared type.
///
/// The methods that return options panic if the scheme declares another type for the option; an
/// option that is not given, or that the scheme does not declare, is `None`.
///
/// ```
/// use haypile::url::CacheUrl;
///
/// let url: CacheUrl = "memory:size=1MiB,policy=lru,ttl=5m".parse().unwrap();
/// let registry = haypile::Registry::new();
/// let scheme = registry.schemes().find(|scheme| scheme.name == "memory").unwrap();
/// let level = url.levels()[0].resolve(scheme).unwrap();
/// assert_eq!(level.size("size"), Some(1 << 20));
/// assert_eq!(level.duration("ttl"), Some(std::time::Duration::from_secs(300)));
/// assert_eq!(level.level().to_string(), "memory://?size=1MiB&policy=lru&ttl=5m");
/// ```
#[derive(Clone, Debug)]
pub struct ResolvedLevel {
    /// The canonical form, with options in the order of the scheme's table.
    level: Level,
    scheme: &'static Scheme,
    values: Vec<(&'static str, OptionValue)>,
}

/// The value of a URL option, parsed as the type that the URL's scheme declares for it, such as a
/// size or a duration.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OptionValue {
    Size(ByteSize),
    Count(u64),
    Duration(Duration),
    Policy(PolicySpec),
    Compression(Compression),
    Choice(&'static str),
    Text(String),
}

impl fmt::Display for OptionValue {
    /// Prints the canonical form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => write!(f, "{size}"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Duration(duration) => {
                let text = humantime::format_duration(*duration).to_string();
                f.write_str(&text.replace(' ', ""))
            }
            // Colons, because a comma would have to be escaped in the short form.
            Self::Policy(policy) => f.write_str(&policy.to_string().replace(',', ":")),
            Self::Compression(compression) => write!(f, "{compression}"),
            Self::Choice(word) => f.write_str(word),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl ResolvedLevel {
    /// Returns a level of a URL with these parsed values of its options; `level` itself has no
    /// options.
    pub(super) fn new(
        mut level: Level,
        scheme: &'static Scheme,
        values: Vec<(&'static str, OptionValue)>,
    ) -> Self {
        let text =
            |(name, value): &(&'static str, OptionValue)| ((*name).to_owned(), value.to_string());
        level.options = values.iter().map(text).collect();
        Self { level, scheme, values }
    }

    /// Returns this level of a URL in its canonical form.
    pub fn level(&self) -> &Level {
        &self.level
    }

    /// Returns the URL of this level alone, without its password: the name of a store.
    pub fn url(&self) -> CacheUrl {
        self.level.redacted().into()
    }

    /// Returns the URL scheme of this level.
    pub fn scheme(&self) -> &'static Scheme {
        self.scheme
    }

    /// Returns the host and port in this level of a URL, decoded; empty if there is none.
    pub fn server(&self) -> &str {
        self.level.server()
    }

    /// Returns the path in this level of a URL, decoded; empty or absolute.
    pub fn path(&self) -> &Path {
        self.level.path()
    }

    /// Returns the value of a URL option that is a size, in bytes; `None` if it is not given.
    pub fn size(&self, name: &str) -> Option<u64> {
        self.value(name, "a size", |value| match value {
            OptionValue::Size(ByteSize(bytes)) => Some(*bytes),
            _ => None,
        })
    }

    /// Returns the value of a URL option that is a whole number; `None` if it is not given.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.value(name, "a count", |value| match value {
            OptionValue::Count(count) => Some(*count),
            _ => None,
        })
    }

    /// Returns the value of a URL option that is a duration; `None` if it is not given.
    pub fn duration(&self, name: &str) -> Option<Duration> {
        self.value(name, "a duration", |value| match value {
            OptionValue::Duration(duration) => Some(*duration),
            _ => None,
        })
    }

    /// Returns the value of a URL option that is an eviction policy; `None` if it is not given.
    pub fn policy(&self, name: &str) -> Option<&PolicySpec> {
        self.value(name, "a policy", |value| match value {
            OptionValue::Policy(policy) => Some(policy),
            _ => None,
        })
    }

    /// Returns the value of a URL option that is a method of compression; `None` if it is not
    /// given.
    pub fn compression(&self, name: &str) -> Option<Compression> {
        self.value(name, "a compression", |value| match value {
            OptionValue::Compression(compression) => Some(*compression),
            _ => None,
        })
    }

    /// Returns the value of a URL option that is one of several words; `None` if it is not given.
    pub fn choice(&self, name: &str) -> Option<&'static str> {
        self.value(name, "a choice", |value| match value {
            OptionValue::Choice(word) => Some(*word),
            _ => None,
        })
    }

    /// Whether a URL option that takes `no` or `yes` is `yes`.
    pub fn is_yes(&self, name: &str) -> bool {
        self.choice(name) == Some("yes")
    }

    /// Returns the value of a URL option that is a text, or the path of a file; `None` if it is not
    /// given.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.value(name, "a text", |value| match value {
            OptionValue::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    fn value<'a, T>(
        &'a self,
        name: &str,
        kind: &str,
        of: impl FnOnce(&'a OptionValue) -> Option<T>,
    ) -> Option<T> {
        let (_, value) = self.values.iter().find(|(given, _)| *given == name)?;
        let of_kind = of(value);
        assert!(
            of_kind.is_some(),
            "{} declares '{name}' as another type than {kind}",
            self.scheme.name
        );
        of_kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::{OptionSpec, Place, ValueKind};

    static SCHEME: Scheme = Scheme {
        name: "x",
        place: Place::Nowhere,
        idle: &[],
        options: &[
            OptionSpec::TTL,
            OptionSpec { name: "n", kind: ValueKind::Count { min: 0, max: 9 }, help: "" },
            OptionSpec::ALLOW_SHARED,
        ],
        help: "",
    };

    fn resolved(text: &str) -> ResolvedLevel {
        text.parse::<CacheUrl>().unwrap().levels()[0].resolve(&SCHEME).unwrap()
    }

    #[test]
    fn values_have_the_types_of_the_scheme_and_one_text() {
        let level = resolved("x:n=007,ttl=90s");
        assert_eq!(
            (level.count("n"), level.duration("ttl")),
            (Some(7), Some(Duration::from_secs(90)))
        );
        assert_eq!((level.count("m"), level.is_yes("allow_shared")), (None, false));
        assert!(resolved("x:allow_shared=yes").is_yes("allow_shared"));
        assert_eq!(level.url().to_string(), "x://?ttl=1m30s&n=7");
    }

    #[test]
    #[should_panic(expected = "x declares 'n' as another type than a size")]
    fn an_option_of_another_type_is_an_error_of_the_program() {
        resolved("x:n=1").size("n");
    }
}
