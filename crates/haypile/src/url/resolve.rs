//! Checking a level against its scheme, and reading its options.

use std::time::Duration;

use haypile_policy::PolicySpec;

use super::resolved::OptionValue;
use super::{CacheUrl, Level, OptionSpec, Place, ResolvedLevel, Scheme, UrlError, ValueKind};
use crate::compress::Compression;
use crate::size::ByteSize;

impl Level {
    /// Returns this level of a URL, checked against `scheme`, with each option as a value of its
    /// type.
    ///
    /// An option that the scheme does not have, and that is a parameter of the policy right before
    /// it, belongs to that policy: `policy=s3fifo,small=20` is `policy=s3fifo:small=20`.
    ///
    /// # Errors
    ///
    /// Every error lists what is allowed.
    pub fn resolve(&self, scheme: &'static Scheme) -> Result<ResolvedLevel, UrlError> {
        self.check_place(scheme)?;
        let given = self.fold_policy_params(scheme)?;
        let mut values = Vec::new();
        for spec in scheme.options {
            if let Some((_, text)) = given.iter().find(|(given, _)| given.name == spec.name) {
                check_needs(spec.name, scheme, &given)?;
                check_effect(spec.name, scheme, &given)?;
                values.push((spec.name, value(spec, text)?));
            }
        }
        Ok(ResolvedLevel::new(self.without_options(), scheme, values))
    }

    fn check_place(&self, scheme: &Scheme) -> Result<(), UrlError> {
        let (server, path) = (!self.server.is_empty(), !self.path.as_os_str().is_empty());
        let name = scheme.name;
        let (fits, expected) = match scheme.place {
            Place::Nowhere => {
                (!server && !path, "it is in the process and takes only options".to_owned())
            }
            Place::Path => {
                (!server && path, format!("it needs an absolute path, as in {name}:///PATH"))
            }
            Place::Server => (server, format!("it needs a server, as in {name}://HOST:PORT")),
            Place::ServerOrPath => (
                server != path,
                format!("it needs a server or a path, as in {name}://HOST:PORT or {name}:///PATH"),
            ),
        };
        if fits {
            return Ok(());
        }
        let expected = format!("{expected}; its options are {}", scheme.allowed());
        Err(UrlError::WrongPlace { level: CacheUrl::redacted_text(&self.to_string()), expected })
    }

    fn fold_policy_params(
        &self,
        scheme: &'static Scheme,
    ) -> Result<Vec<(&'static OptionSpec, String)>, UrlError> {
        let mut given: Vec<(&'static OptionSpec, String)> = Vec::new();
        for (name, value) in self.options() {
            if let Some(spec) = scheme.option(name) {
                given.push((spec, value.to_owned()));
                continue;
            }
            let policy = given
                .last_mut()
                .filter(|(spec, text)| spec.kind == ValueKind::Policy && has_param(text, name));
            let (_, text) = policy.ok_or_else(|| UrlError::UnknownOption {
                scheme: scheme.name,
                name: name.to_owned(),
                allowed: scheme.allowed(),
            })?;
            *text = format!("{text}:{name}={value}");
        }
        Ok(given)
    }
}

/// Whether the policy at the start of `text` has this parameter. An unknown policy counts as having
/// it, so that the error concerns the policy.
fn has_param(text: &str, param: &str) -> bool {
    let name = text.split(':').next().unwrap_or(text);
    let kind = PolicySpec::kinds().iter().find(|kind| kind.name == name);
    kind.is_none_or(|kind| kind.params.iter().any(|known| known.name == param))
}

fn size(name: &'static str, value: &str) -> Result<ByteSize, UrlError> {
    value.parse().map_err(|source| UrlError::BadSize { name, source })
}

fn count(name: &'static str, value: &str, min: u64, max: u64) -> Result<u64, UrlError> {
    let count = value.parse().ok().filter(|count| (min..=max).contains(count));
    count.ok_or_else(|| UrlError::BadCount { name, value: value.to_owned(), min, max })
}

fn duration(name: &'static str, value: &str) -> Result<Duration, UrlError> {
    let duration = humantime::parse_duration(value).ok().filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| UrlError::BadDuration { name, value: value.to_owned() })
}

fn policy(name: &'static str, value: &str) -> Result<PolicySpec, UrlError> {
    value.parse().map_err(|source| UrlError::BadPolicy { name, source })
}

fn compression(name: &'static str, value: &str) -> Result<Compression, UrlError> {
    let bad = |source| UrlError::BadCompression { name, value: value.to_owned(), source };
    let compression: Compression = value.parse().map_err(bad)?;
    let method = compression.method();
    if !method.is_available() {
        return Err(UrlError::MissingFeature { name, feature: method.name() });
    }
    Ok(compression)
}

/// Refuses an option without the one that it needs: `record_max` without `record`.
fn check_needs(
    name: &'static str,
    scheme: &'static Scheme,
    given: &[(&'static OptionSpec, String)],
) -> Result<(), UrlError> {
    match needed(name, scheme) {
        Some(needed) if !given.iter().any(|(spec, _)| spec.name == needed.name) => {
            Err(UrlError::OptionNeeds { name, needs: needed.name })
        }
        _ => Ok(()),
    }
}

/// Refuses an option that does nothing next to the others: `size` with `mode=copy`.
fn check_effect(
    name: &'static str,
    scheme: &'static Scheme,
    given: &[(&'static OptionSpec, String)],
) -> Result<(), UrlError> {
    let mut others = scheme.idle.iter().filter(|(_, other, value)| {
        given.iter().any(|(spec, text)| spec.name == *other && text == value)
    });
    match others.find(|(option, ..)| *option == name) {
        Some((_, other, value)) => Err(UrlError::NoEffect { name, other, value }),
        None => Ok(()),
    }
}

/// Returns the option that another needs: the one named by the part before its first underscore.
/// `allow_shared` needs the one that names a file, unless the level's own path does.
fn needed(name: &str, scheme: &'static Scheme) -> Option<&'static OptionSpec> {
    let prefix = name.split_once('_').map(|(prefix, _)| prefix);
    let needed = if name == OptionSpec::ALLOW_SHARED.name { Some("persist") } else { prefix };
    needed.and_then(|needed| scheme.option(needed))
}

fn value(spec: &'static OptionSpec, text: &str) -> Result<OptionValue, UrlError> {
    let name = spec.name;
    if text.is_empty() {
        return Err(UrlError::EmptyValue { name, help: spec.help });
    }
    Ok(match spec.kind {
        ValueKind::Size { min_bytes, max_bytes } => {
            let size = size(name, text)?;
            if !(min_bytes..=max_bytes).contains(&size.0) {
                return Err(UrlError::SizeOutOfRange {
                    name,
                    size: size.to_string(),
                    min: ByteSize(min_bytes).to_string(),
                    max: ByteSize(max_bytes).to_string(),
                });
            }
            OptionValue::Size(size)
        }
        ValueKind::Count { min, max } => OptionValue::Count(count(name, text, min, max)?),
        ValueKind::Duration => OptionValue::Duration(duration(name, text)?),
        ValueKind::Policy => OptionValue::Policy(policy(name, text)?),
        ValueKind::Compression => OptionValue::Compression(compression(name, text)?),
        ValueKind::Choice(allowed) => {
            let word = allowed.iter().find(|word| **word == text);
            OptionValue::Choice(word.ok_or_else(|| UrlError::NotAChoice {
                name,
                value: text.to_owned(),
                allowed: allowed.join(", "),
            })?)
        }
        // A path that ends in a slash is a directory, and no path has a zero byte.
        ValueKind::Path if text.ends_with('/') || text.contains('\0') => {
            return Err(UrlError::NotAFile { name, value: text.escape_debug().to_string() });
        }
        ValueKind::Path | ValueKind::Text => OptionValue::Text(text.to_owned()),
    })
}
