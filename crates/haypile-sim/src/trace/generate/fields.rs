//! Text form `KIND:name=value,name=value`, and its errors.

use std::fmt::Display;
use std::str::FromStr;

/// The error of a wrong description of a trace to generate, such as an unknown field in `zipf:keys=100,size=1`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The word before the colon is unknown.
    #[error("unknown {what} '{name}' (known: {allowed})")]
    Kind {
        /// The kind of name.
        what: &'static str,
        /// The user's text.
        name: String,
        /// The known names, with their fields.
        allowed: String,
    },
    /// A field that this kind does not have.
    #[error("unknown field '{field}' of '{kind}' (write {usage})")]
    Field {
        /// The kind.
        kind: String,
        /// The user's text.
        field: String,
        /// The form of the kind.
        usage: String,
    },
    /// A required field that is missing.
    #[error("'{kind}' needs '{field}=' (write {usage})")]
    Missing {
        /// The kind.
        kind: String,
        /// The field.
        field: &'static str,
        /// The form of the kind.
        usage: String,
    },
    /// A value that is not allowed.
    #[error("invalid '{field}={value}': write {allowed}")]
    Value {
        /// The field.
        field: String,
        /// The user's text.
        value: String,
        /// The allowed values.
        allowed: String,
    },
}

/// The usage text of a key pattern or size distribution, for errors: its name, then its fields, optional ones in
/// brackets.
#[derive(Debug)]
pub(super) struct Usage {
    pub(super) kind: &'static str,
    pub(super) fields: &'static str,
}

impl Usage {
    fn text(&self) -> String {
        format!("{}:{}", self.kind, self.fields)
    }
}

/// The fields in a description of a generated trace that have not been read yet.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    pub(super) kind: &'static str,
    usage: String,
    /// Names and values of the fields that are left.
    left: Vec<(&'a str, &'a str)>,
}

impl<'a> Fields<'a> {
    /// Splits a description such as `zipf:keys=100` into its kind and fields. The kind has to be one of `usages`, and
    /// `what` names these in errors.
    pub(super) fn split(
        text: &'a str,
        what: &'static str,
        usages: &[Usage],
    ) -> Result<Self, SpecError> {
        let (kind, fields) = text.split_once(':').unwrap_or((text, ""));
        let usage = usages.iter().find(|usage| usage.kind == kind.trim());
        let usage = usage.ok_or_else(|| SpecError::Kind {
            what,
            name: kind.to_owned(),
            allowed: usages.iter().map(Usage::text).collect::<Vec<_>>().join("  "),
        })?;
        let fields = fields.split(',').map(str::trim).filter(|field| !field.is_empty());
        let fields = fields.map(|field| {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            (name.trim(), value.trim())
        });
        Ok(Self { kind: usage.kind, usage: usage.text(), left: fields.collect() })
    }

    /// Removes a field from the description and returns its text; `None` if it is not given.
    pub(super) fn take_text(&mut self, name: &str) -> Option<&'a str> {
        let position = self.left.iter().position(|&(field, _)| field == name)?;
        Some(self.left.remove(position).1)
    }

    /// Removes an optional field from the description and parses its number, which must be in `range`.
    pub(super) fn take<T: Copy + FromStr + PartialOrd + Display>(
        &mut self,
        name: &'static str,
        range: (T, T),
    ) -> Result<Option<T>, SpecError> {
        let Some(text) = self.take_text(name) else { return Ok(None) };
        let value = text.parse().ok().filter(|value| range.0 <= *value && *value <= range.1);
        value.map(Some).ok_or_else(|| {
            bad_value(name, text, format!("a number from {} to {}", range.0, range.1))
        })
    }

    /// Removes a required field from the description and parses its number, which must be in `range`.
    pub(super) fn need<T: Copy + FromStr + PartialOrd + Display>(
        &mut self,
        name: &'static str,
        range: (T, T),
    ) -> Result<T, SpecError> {
        self.take(name, range)?.ok_or_else(|| self.missing(name))
    }

    /// Removes a required field from the description and parses its number of bytes, which may have a unit.
    pub(super) fn need_bytes(&mut self, name: &'static str) -> Result<u32, SpecError> {
        let text = self.take_text(name).ok_or_else(|| self.missing(name))?;
        let bytes = text.parse::<bytesize::ByteSize>().ok();
        let bytes = bytes.and_then(|bytes| u32::try_from(bytes.as_u64()).ok());
        bytes
            .filter(|&bytes| bytes > 0)
            .ok_or_else(|| bad_value(name, text, "bytes from 1 to 4294967295, also as 4KB or 4KiB"))
    }

    /// Returns an error if unknown fields are left in the description.
    pub(super) fn end(self) -> Result<(), SpecError> {
        match self.left.first() {
            None => Ok(()),
            Some((field, _)) => Err(SpecError::Field {
                kind: self.kind.to_owned(),
                field: (*field).to_owned(),
                usage: self.usage,
            }),
        }
    }

    fn missing(&self, field: &'static str) -> SpecError {
        SpecError::Missing { kind: self.kind.to_owned(), field, usage: self.usage.clone() }
    }
}

pub(super) fn bad_value(
    field: impl Into<String>,
    value: impl Display + Copy,
    allowed: impl Into<String>,
) -> SpecError {
    SpecError::Value { field: field.into(), value: value.to_string(), allowed: allowed.into() }
}
