//! Checking a level against its scheme, and canonicalising its options.

use std::time::Duration;

use super::{Level, OptionSpec, Place, Scheme, UrlError, ValueKind};
use crate::compress::Compression;
use crate::policy::PolicySpec;
use crate::size::ByteSize;

impl Level {
    /// Returns this level with its options checked against `scheme`, each in its canonical form and
    /// in the order of the scheme's table.
    ///
    /// An option that the scheme does not have, and that is a parameter of the policy right before
    /// it, belongs to that policy: `policy=s3fifo,small=20` is `policy=s3fifo:small=20`.
    ///
    /// # Errors
    ///
    /// Every error lists what is allowed.
    pub fn resolve(&self, scheme: &'static Scheme) -> Result<Self, UrlError> {
        self.check_place(scheme)?;
        let mut resolved = Self { options: Vec::new(), ..self.clone() };
        let given = self.fold_policy_params(scheme)?;
        for spec in scheme.options {
            if let Some((_, value)) = given.iter().find(|(given, _)| given.name == spec.name) {
                check_needs(spec.name, scheme, &given)?;
                resolved.options.push((spec.name.to_owned(), canonical(spec, value)?));
            }
        }
        Ok(resolved)
    }

    /// Returns the size in an option; `None` if it is not given.
    ///
    /// # Errors
    ///
    /// [`UrlError::BadSize`]; never for a resolved level whose scheme declares a
    /// [`ValueKind::Size`].
    pub fn size_option(&self, name: &'static str) -> Result<Option<u64>, UrlError> {
        Ok(self.option(name).map(|value| size(name, value)).transpose()?.map(|size| size.0))
    }

    /// Returns the number in an option; `None` if it is not given.
    ///
    /// # Errors
    ///
    /// [`UrlError::BadCount`]; never for a resolved level whose scheme declares a
    /// [`ValueKind::Count`].
    pub fn count_option(&self, name: &'static str) -> Result<Option<u64>, UrlError> {
        self.option(name).map(|value| count(name, value, 0, u64::MAX)).transpose()
    }

    /// Returns the duration in an option; `None` if it is not given.
    ///
    /// # Errors
    ///
    /// [`UrlError::BadDuration`]; never for a resolved level whose scheme declares a
    /// [`ValueKind::Duration`].
    pub fn duration_option(&self, name: &'static str) -> Result<Option<Duration>, UrlError> {
        self.option(name).map(|value| duration(name, value)).transpose()
    }

    /// Returns the policy in an option; `None` if it is not given.
    ///
    /// # Errors
    ///
    /// [`UrlError::BadPolicy`]; never for a resolved level whose scheme declares a
    /// [`ValueKind::Policy`].
    pub fn policy_option(&self, name: &'static str) -> Result<Option<PolicySpec>, UrlError> {
        self.option(name).map(|value| policy(name, value)).transpose()
    }

    /// Returns the compression in an option; `None` if it is not given.
    ///
    /// # Errors
    ///
    /// [`UrlError::BadCompression`]; never for a resolved level whose scheme declares a
    /// [`ValueKind::Compression`].
    pub fn compression_option(&self, name: &'static str) -> Result<Option<Compression>, UrlError> {
        self.option(name).map(|value| compression(name, value)).transpose()
    }

    fn check_place(&self, scheme: &Scheme) -> Result<(), UrlError> {
        let (server, path) = (!self.server.is_empty(), !self.path.is_empty());
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
        Err(UrlError::WrongPlace { level: self.to_string(), expected })
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
    value.parse().map_err(bad)
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

/// Returns the option that another needs: the one named by the part before its first underscore.
/// `allow_shared` needs the one that names a file, unless the level's own path does.
fn needed(name: &str, scheme: &'static Scheme) -> Option<&'static OptionSpec> {
    let prefix = name.split_once('_').map(|(prefix, _)| prefix);
    let needed = if name == OptionSpec::ALLOW_SHARED.name { Some("persist") } else { prefix };
    needed.and_then(|needed| scheme.option(needed))
}

fn canonical(spec: &'static OptionSpec, value: &str) -> Result<String, UrlError> {
    let name = spec.name;
    if value.is_empty() {
        return Err(UrlError::EmptyValue { name, help: spec.help });
    }
    match spec.kind {
        ValueKind::Size { min_bytes, max_bytes } => {
            let size = size(name, value)?;
            if (min_bytes..=max_bytes).contains(&size.0) {
                return Ok(size.to_string());
            }
            Err(UrlError::SizeOutOfRange {
                name,
                size: size.to_string(),
                min: ByteSize(min_bytes).to_string(),
                max: ByteSize(max_bytes).to_string(),
            })
        }
        ValueKind::Count { min, max } => Ok(count(name, value, min, max)?.to_string()),
        ValueKind::Duration => {
            let text = humantime::format_duration(duration(name, value)?).to_string();
            Ok(text.replace(' ', ""))
        }
        // Colons, because a comma would have to be escaped in the short form.
        ValueKind::Policy => Ok(policy(name, value)?.to_string().replace(',', ":")),
        ValueKind::Compression => Ok(compression(name, value)?.to_string()),
        ValueKind::Choice(allowed) if !allowed.contains(&value) => {
            Err(UrlError::NotAChoice { name, value: value.to_owned(), allowed: allowed.join(", ") })
        }
        // A path that ends in a slash is a directory, and no path has a zero byte.
        ValueKind::Path if value.ends_with('/') || value.contains('\0') => {
            Err(UrlError::NotAFile { name, value: value.escape_debug().to_string() })
        }
        ValueKind::Choice(_) | ValueKind::Path | ValueKind::Text => Ok(value.to_owned()),
    }
}
