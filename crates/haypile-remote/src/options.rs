//! Options that all schemes of servers share.

use std::time::Duration;

use haypile::url::{CacheUrl, Level, OptionSpec, ResolvedLevel, UrlError, ValueKind};

use crate::address::Address;

/// The default of `timeout=`.
const DEFAULT_TIMEOUT: Duration = Duration::from_millis(250);

/// The URL option `timeout`: the longest time that an operation waits for a server.
pub(crate) const TIMEOUT: OptionSpec = OptionSpec {
    name: "timeout",
    kind: ValueKind::Duration,
    help: "time that an operation waits for the server before it goes on without; 250ms by default",
};

/// The URL options that all remote stores accept, such as `timeout` and `ttl`.
pub(crate) const OPTIONS: &[OptionSpec] = &[
    TIMEOUT,
    OptionSpec::TTL,
    OptionSpec::NAMESPACE,
    OptionSpec::COMPUTE_WAIT,
    LEASES,
    OptionSpec::RECORD,
    OptionSpec::RECORD_MAX,
    OptionSpec::RECORD_KEYS,
    OptionSpec::COMPRESS,
    OptionSpec::COMPRESS_MIN,
];

/// The URL option `leases`, which turns off the placeholders that mark on the server which keys are being computed.
pub(crate) const LEASES: OptionSpec = OptionSpec {
    name: "leases",
    kind: ValueKind::Choice(&["yes", "no"]),
    help: "no: never leave a placeholder under a key that is being computed, which other programs read as a value; \
           deletions during a computation by another process are then undone",
};

/// The least life of a placeholder: computations that take longer are not stored.
const LEAST_LEASE: Duration = Duration::from_mins(10);

/// Returns the error of a remote store's URL whose host or path its scheme does not accept.
pub(crate) fn wrong_place(level: &Level, expected: &str) -> UrlError {
    UrlError::WrongPlace {
        level: CacheUrl::redacted_text(&level.to_string()),
        expected: expected.to_owned(),
    }
}

/// Returns the address of the Unix socket that the path of a URL names. A path that looks like a login and a host is an
/// error, because messages name the socket.
pub(crate) fn socket(level: &Level) -> Result<Address, UrlError> {
    let path = level.path().to_string_lossy();
    let login = path.rsplit_once('@').map_or("", |(login, _)| login);
    if login.split('/').nth(1).is_some_and(|first| first.contains(':')) {
        return Err(wrong_place(level, "the path of a socket comes without a user and a password"));
    }
    Ok(Address::Unix(level.path().into()))
}

/// The values of the URL options that all remote stores share, such as the timeout, the TTL and the prefix of keys.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) timeout: Duration,
    pub(crate) ttl: Option<Duration>,
    pub(crate) compute_wait: Duration,
    /// Whether the store may mark a missing key that is being computed by a placeholder (an item without a value) on
    /// the server.
    pub(crate) has_leases: bool,
    /// The prefix (namespace) that the store's keys have on the server.
    pub(crate) prefix: Vec<u8>,
    /// The URL of the store, without its password.
    pub(crate) url: CacheUrl,
}

impl Common {
    /// Reads the options that all remote stores share from one level of a URL.
    pub(crate) fn of(level: &ResolvedLevel) -> Self {
        let prefix = level.text("namespace").map(|name| format!("{name}:").into_bytes());
        Self {
            timeout: level.duration("timeout").unwrap_or(DEFAULT_TIMEOUT),
            ttl: level.duration("ttl"),
            compute_wait: level
                .duration("compute_wait")
                .unwrap_or(OptionSpec::DEFAULT_COMPUTE_WAIT),
            has_leases: level.choice("leases") != Some("no"),
            prefix: prefix.unwrap_or_default(),
            url: level.url(),
        }
    }

    /// Returns the time for which a placeholder (the mark that a key is being computed) stays on the server.
    pub(crate) fn lease_life(&self) -> Duration {
        LEAST_LEASE.max(self.compute_wait)
    }

    /// Returns a key in the form in which the server stores it, with the store's prefix.
    pub(crate) fn key(&self, key: &[u8]) -> Vec<u8> {
        [&self.prefix, key].concat()
    }

    /// Whether the store uses all keys of the server, because it has no namespace.
    pub(crate) fn is_whole(&self) -> bool {
        self.prefix.is_empty()
    }
}
