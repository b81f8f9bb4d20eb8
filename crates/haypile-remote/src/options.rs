//! What the schemes of servers have in common.

use std::time::Duration;

use haypile::DEFAULT_COMPUTE_WAIT;
use haypile::url::{Level, OptionSpec, UrlError, ValueKind};

/// How long an operation waits for the server where the URL says nothing.
const DEFAULT_TIMEOUT: Duration = Duration::from_millis(250);

/// `timeout=`.
pub(crate) const TIMEOUT: OptionSpec = OptionSpec {
    name: "timeout",
    kind: ValueKind::Duration,
    help: "how long an operation waits for the server before it goes on without; 250ms by default",
};

/// What URLs of all of them may say.
pub(crate) const OPTIONS: &[OptionSpec] = &[
    TIMEOUT,
    OptionSpec::TTL,
    OptionSpec::NAMESPACE,
    OptionSpec::COMPUTE_WAIT,
    OptionSpec::RECORD,
    OptionSpec::RECORD_MAX,
    OptionSpec::RECORD_KEYS,
    OptionSpec::COMPRESS,
    OptionSpec::COMPRESS_MIN,
];

/// That what stands after a scheme is not what it takes.
pub(crate) fn wrong_place(level: &Level, expected: &str) -> UrlError {
    UrlError::WrongPlace { level: level.redacted().to_string(), expected: expected.to_owned() }
}

/// The options that all of them have, as they were given.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) timeout: Duration,
    pub(crate) ttl: Option<Duration>,
    pub(crate) compute_wait: Duration,
    /// What the keys on the server start with.
    pub(crate) prefix: Vec<u8>,
    /// The name without a password.
    pub(crate) url: String,
}

impl Common {
    /// Reads them.
    pub(crate) fn of(level: &Level) -> Result<Self, UrlError> {
        let prefix = level.option("namespace").map(|name| format!("{name}:").into_bytes());
        Ok(Self {
            timeout: level.duration_option("timeout")?.unwrap_or(DEFAULT_TIMEOUT),
            ttl: level.duration_option("ttl")?,
            compute_wait: level.duration_option("compute_wait")?.unwrap_or(DEFAULT_COMPUTE_WAIT),
            prefix: prefix.unwrap_or_default(),
            url: level.redacted().to_string(),
        })
    }

    /// The key as the server knows it.
    pub(crate) fn key(&self, key: &[u8]) -> Vec<u8> {
        [&self.prefix, key].concat()
    }

    /// Whether the store has all of the server.
    pub(crate) fn is_whole(&self) -> bool {
        self.prefix.is_empty()
    }
}
