//! A text that names no cache.

use crate::compress::CompressionError;
use crate::policy::PolicyError;
use crate::size::SizeError;

/// A URL that cannot be read, or that asks for what its scheme does not have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// There is no text, or nothing between two levels.
    #[error(
        "a cache has no name here; write SCHEME://... or SCHEME:... as in memory://?size=64MiB or \
         memory:size=64MiB, and join levels by ' -> ' (first form) or '+' (second form)"
    )]
    Empty,
    /// An arrow between two levels without a blank on each side.
    #[error(
        "'{text}': '->' joins two levels with a blank before and after it, as in 'memory:// -> \
         none://'; the form without blanks is memory:+none:; inside of a value or path write %3E \
         for '>'"
    )]
    BadSeparator {
        /// The text around it.
        text: String,
    },
    /// The options of one form behind the place of the other.
    #[error(
        "'{text}' mixes two forms; write file:///PATH?size=64MiB&ttl=10m or \
         file:/PATH,size=64MiB,ttl=10m; inside of a path write %3F for '?' and %2C for ','"
    )]
    MixedForms {
        /// The place with the options.
        text: String,
    },
    /// What stands before the colon is no scheme, or there is no colon.
    #[error(
        "'{text}' does not start with a scheme and a colon, as memory:// and memory: do; a scheme \
         has lower-case letters, digits, '+', '-' and '.'; inside of a value or path write \
         %2B for '+'"
    )]
    BadScheme {
        /// The text in its place.
        text: String,
    },
    /// A `%` that is no escape, or escapes that give no UTF-8.
    #[error(
        "'{text}': after a % two hexadecimal digits have to follow, and the bytes have to be \
         UTF-8; write %25 for a % sign"
    )]
    BadEscape {
        /// The part that it stands in.
        text: String,
    },
    /// A path that does not start at the root.
    #[error("the path '{path}' is not absolute; it has to start with a slash")]
    RelativePath {
        /// The path given.
        path: String,
    },
    /// Something that is not `name=value`.
    #[error(
        "'{text}' is no option; options are name=value, the name of lower-case letters, digits, \
         '_' and '-'; they follow a '?' and are separated by '&', or by ',' in the short form"
    )]
    NotAnOption {
        /// The text given.
        text: String,
    },
    /// An option that is given twice.
    #[error("the option '{name}' is given twice; give it once")]
    DuplicateOption {
        /// The name of the option.
        name: String,
    },
    /// A scheme that nobody registered.
    #[error("there is no cache '{scheme}'; there are {allowed}")]
    UnknownScheme {
        /// The scheme given.
        scheme: String,
        /// The schemes registered.
        allowed: String,
    },
    /// An option that the scheme does not have.
    #[error("'{scheme}' has no option '{name}'; it takes {allowed}")]
    UnknownOption {
        /// The scheme.
        scheme: &'static str,
        /// The option given.
        name: String,
        /// The options it has.
        allowed: String,
    },
    /// A server or a path, or the lack of one, that does not fit the scheme.
    #[error("'{level}': {expected}")]
    WrongPlace {
        /// The level in its canonical form.
        level: String,
        /// What the scheme expects.
        expected: String,
    },
    /// A value that is no size.
    #[error("option '{name}': {source}")]
    BadSize {
        /// The option.
        name: &'static str,
        /// What is wrong.
        source: SizeError,
    },
    /// A size that is out of range.
    #[error("option '{name}': {size} is out of range; it has to be from {min} to {max}")]
    SizeOutOfRange {
        /// The option.
        name: &'static str,
        /// The size given.
        size: String,
        /// The smallest allowed.
        min: String,
        /// The largest allowed.
        max: String,
    },
    /// A value that is no whole number, or out of range.
    #[error("option '{name}': '{value}' is not a whole number from {min} to {max}")]
    BadCount {
        /// The option.
        name: &'static str,
        /// The value given.
        value: String,
        /// The smallest allowed.
        min: u64,
        /// The largest allowed.
        max: u64,
    },
    /// A value that is no duration, or zero.
    #[error(
        "option '{name}': '{value}' is no duration; write a number above zero and a unit: ns, us, \
         ms, s, m, h or days, as in 500ms, 30s, 10m or 1h30m"
    )]
    BadDuration {
        /// The option.
        name: &'static str,
        /// The value given.
        value: String,
    },
    /// A policy that cannot be had.
    #[error("option '{name}': {source}")]
    BadPolicy {
        /// The option.
        name: &'static str,
        /// What is wrong.
        source: PolicyError,
    },
    /// A value that is no method of compression.
    #[error("option '{name}': '{value}' is no compression: {source}")]
    BadCompression {
        /// The option.
        name: &'static str,
        /// The value given.
        value: String,
        /// What is allowed.
        source: CompressionError,
    },
    /// A value that is none of those allowed.
    #[error("option '{name}': there is no '{value}'; it takes {allowed}")]
    NotAChoice {
        /// The option.
        name: &'static str,
        /// The value given.
        value: String,
        /// The values allowed.
        allowed: String,
    },
    /// A path that can be no file's.
    #[error(
        "option '{name}': '{value}' cannot be the path of a file; it is absolute or counts from \
         the current directory, and does not end in a slash"
    )]
    NotAFile {
        /// The option.
        name: &'static str,
        /// The value given.
        value: String,
    },
    /// An option that means nothing without another.
    #[error("the option '{name}' means nothing without '{needs}'; give both or none")]
    OptionNeeds {
        /// The option given.
        name: &'static str,
        /// The option that is missing.
        needs: &'static str,
    },
    /// An option for working with the level below, on a level that has none.
    #[error(
        "the option '{name}' is for a level that stands before another, as in \
         'memory://?{name}=... -> file:///PATH'; there is none below this one"
    )]
    NoLevelBelow {
        /// The option given.
        name: &'static str,
    },
    /// An empty value.
    #[error("option '{name}' has no value; it takes {help}")]
    EmptyValue {
        /// The option.
        name: &'static str,
        /// What the option is for.
        help: &'static str,
    },
}
