//! Errors in cache URLs.

use haypile_policy::PolicyError;

use crate::compress::CompressionError;
use crate::size::SizeError;

use super::redact::REDACTED;

/// The error of a cache URL that cannot be parsed, or that has a part or option that its scheme
/// does not have.
///
/// It quotes the URL without what could be a password: `xxxxx` stands in its place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// The URL is empty, or has an empty level.
    #[error(
        "an empty URL or level; write SCHEME://... or SCHEME:... as in memory://?size=64MiB or \
         memory:size=64MiB, and join levels by ' -> ' (first form) or '+' (second form)"
    )]
    Empty,
    /// An arrow between two levels lacks a blank before or after it.
    #[error(
        "'{text}': '->' joins two levels and needs a blank before and after it, as in 'memory:// \
         -> none://'; the form without blanks is memory:+none:; inside of a value or path write \
         %3E for '>'"
    )]
    BadSeparator {
        /// The text around the arrow.
        text: String,
    },
    /// The options of one form stand behind the place of the other.
    #[error(
        "'{text}' mixes two forms; write file:///PATH?size=64MiB&ttl=10m or \
         file:/PATH,size=64MiB,ttl=10m; inside of a path write %3F for '?' and %2C for ','"
    )]
    MixedForms {
        /// The place and the options behind it.
        text: String,
    },
    /// The text before the colon is not a scheme, or there is no colon.
    #[error(
        "'{text}' does not start with a scheme and a colon, as memory:// and memory: do; a scheme \
         has lower-case letters, digits, '+', '-' and '.'; inside of a value or path write \
         %2B for '+'"
    )]
    BadScheme {
        /// The text of the level.
        text: String,
    },
    /// A `%` does not start an escape, or escapes are not UTF-8.
    #[error(
        "'{text}': a % needs two hexadecimal digits after it, and the bytes have to be \
         UTF-8; write %25 for a % sign"
    )]
    BadEscape {
        /// The part that contains it.
        text: String,
    },
    /// The path does not start at the root.
    #[error("the path '{path}' is not absolute; it has to start with a slash")]
    RelativePath {
        /// The path given by the user.
        path: String,
    },
    /// An option is not of the form `name=value`.
    #[error(
        "'{text}' is not an option; options are name=value, the name of lower-case letters, \
         digits, '_' and '-'; they follow a '?' and are separated by '&', or by ',' in the short \
         form"
    )]
    NotAnOption {
        /// The text given by the user.
        text: String,
    },
    /// An option is given twice.
    #[error("the option '{name}' is given twice; give it once")]
    DuplicateOption {
        /// The name of the option.
        name: String,
    },
    /// The scheme is not registered.
    #[error("unknown scheme '{scheme}' (known: {allowed})")]
    UnknownScheme {
        /// The scheme given by the user.
        scheme: String,
        /// The names of the registered schemes.
        allowed: String,
    },
    /// The scheme does not have this option.
    #[error("'{scheme}' has no option '{name}'; it takes {allowed}")]
    UnknownOption {
        /// The name of the scheme.
        scheme: &'static str,
        /// The name of the option given.
        name: String,
        /// The options it has.
        allowed: String,
    },
    /// The server or the path, or the lack of one, does not fit the scheme.
    #[error("'{level}': {expected}")]
    WrongPlace {
        /// The level in its canonical form.
        level: String,
        /// The form that the scheme expects.
        expected: String,
    },
    /// The value is not a size.
    #[error("option '{name}' is invalid: {source}")]
    BadSize {
        /// The name of the option.
        name: &'static str,
        /// The problem with the value.
        source: SizeError,
    },
    /// The size is out of range.
    #[error("option '{name}': {size} is out of range; it has to be from {min} to {max}")]
    SizeOutOfRange {
        /// The name of the option.
        name: &'static str,
        /// The size given by the user.
        size: String,
        /// The smallest allowed size.
        min: String,
        /// The largest allowed size.
        max: String,
    },
    /// The value is not a whole number, or out of range.
    #[error("option '{name}': '{value}' is not a whole number from {min} to {max}")]
    BadCount {
        /// The name of the option.
        name: &'static str,
        /// The value given by the user.
        value: String,
        /// The smallest allowed value.
        min: u64,
        /// The largest allowed value.
        max: u64,
    },
    /// The value is not a duration, or zero.
    #[error(
        "option '{name}': '{value}' is not a duration; write a number above zero and a unit: ns, \
         us, ms, s, m, h or days, as in 500ms, 30s, 10m or 1h30m"
    )]
    BadDuration {
        /// The name of the option.
        name: &'static str,
        /// The value given by the user.
        value: String,
    },
    /// The policy does not exist, or a parameter of it is wrong.
    #[error("option '{name}' is invalid: {source}")]
    BadPolicy {
        /// The name of the option.
        name: &'static str,
        /// The problem with the value.
        source: PolicyError,
    },
    /// The value is not a method of compression.
    #[error("option '{name}': unknown compression '{value}': {source}")]
    BadCompression {
        /// The name of the option.
        name: &'static str,
        /// The value given by the user.
        value: String,
        /// The error with the allowed values.
        source: CompressionError,
    },
    /// This build lacks the method of compression.
    #[error(
        "option '{name}': this program was built without haypile's feature '{feature}'; build it with this \
         feature, or choose another method"
    )]
    MissingFeature {
        /// The name of the option.
        name: &'static str,
        /// The feature that supports the method.
        feature: &'static str,
    },
    /// The value is not one of the choices.
    #[error("option '{name}': unknown value '{value}' (known: {allowed})")]
    NotAChoice {
        /// The name of the option.
        name: &'static str,
        /// The value given by the user.
        value: String,
        /// The values allowed.
        allowed: String,
    },
    /// The path cannot be that of a file.
    #[error(
        "option '{name}': '{value}' cannot be the path of a file; it is absolute or relative to \
         the current directory, and does not end in a slash"
    )]
    NotAFile {
        /// The name of the option.
        name: &'static str,
        /// The value given by the user.
        value: String,
    },
    /// The value cannot be used, in a URL whose password may have been split at a separator.
    #[error(
        "option '{name}': its value cannot be used; it is not shown, because the URL has an '@' after \
         its server, and it could be a part of a password; in a password write %40 for '@', %2C for \
         ',', %3F for '?', %26 for '&', %2B for '+', %2F for '/' and %25 for '%'"
    )]
    HiddenValue {
        /// The name of the option.
        name: &'static str,
    },
    /// The option has no meaning without another.
    #[error("the option '{name}' needs '{needs}'; give both or none")]
    OptionNeeds {
        /// The name of the option given.
        name: &'static str,
        /// The option that is missing.
        needs: &'static str,
    },
    /// The option does nothing where another has this value.
    #[error("the option '{name}' has no effect with {other}={value}; leave out one of them")]
    NoEffect {
        /// The name of the option given.
        name: &'static str,
        /// The name of the other option.
        other: &'static str,
        /// The value of the other option.
        value: &'static str,
    },
    /// A tier option is on a level that has none below it.
    #[error(
        "the option '{name}' belongs to a level in front of another, as in \
         'memory://?{name}=... -> file:///PATH'; this level has none below it"
    )]
    NoLevelBelow {
        /// The name of the option given.
        name: &'static str,
    },
    /// The value is empty.
    #[error("option '{name}' has no value; it takes {help}")]
    EmptyValue {
        /// The name of the option.
        name: &'static str,
        /// The purpose of the option.
        help: &'static str,
    },
}

impl UrlError {
    /// Returns the same error about a URL without any text that the user wrote, which may contain a
    /// password.
    pub(super) fn redacted(mut self) -> Self {
        let quoted = match &mut self {
            Self::BadSeparator { text }
            | Self::MixedForms { text }
            | Self::BadScheme { text }
            | Self::BadEscape { text }
            | Self::NotAnOption { text } => text,
            Self::RelativePath { path } => path,
            Self::DuplicateOption { name } | Self::UnknownOption { name, .. } => name,
            Self::UnknownScheme { scheme, .. } => scheme,
            Self::WrongPlace { level, .. } => level,
            Self::SizeOutOfRange { size, .. } => size,
            Self::BadCount { value, .. }
            | Self::BadDuration { value, .. }
            | Self::NotAChoice { value, .. }
            | Self::NotAFile { value, .. } => value,
            // Their sources have texts of their own.
            Self::BadSize { name, .. }
            | Self::BadPolicy { name, .. }
            | Self::BadCompression { name, .. } => {
                return Self::HiddenValue { name };
            }
            Self::Empty
            | Self::HiddenValue { .. }
            | Self::OptionNeeds { .. }
            | Self::MissingFeature { .. }
            | Self::NoEffect { .. }
            | Self::NoLevelBelow { .. }
            | Self::EmptyValue { .. } => return self,
        };
        REDACTED.clone_into(quoted);
        self
    }
}
