//! The schemes `redis` and `redis+unix` and their options.

use std::sync::Arc;

use haypile::url::{OptionSpec, Place, ResolvedLevel, Scheme, UrlError, ValueKind};
use haypile::{Clock, OpenError, Opener, Store};

use super::login::Login;
use super::nodes::Nodes;
use super::settings::Redis;
use super::store::RedisStore;
use crate::address::Address;
use crate::fence::Fences;
use crate::options::{Common, LEASES, OPTIONS, TIMEOUT, socket, wrong_place};
use crate::server::Server;

pub(super) const DEFAULT_PORT: u16 = 6379;
/// The highest database number that a server can be configured for.
const MAX_DATABASE: u64 = i32::MAX as u64;
/// The longest namespace, which leaves room for keys.
const MAX_NAMESPACE_BYTES: usize = 255;

static TCP: Scheme = Scheme {
    name: "redis",
    place: Place::Server,
    idle: &[],
    options: OPTIONS,
    help: "a database of Redis or Valkey over TCP",
};

static UNIX: Scheme = Scheme {
    name: "redis+unix",
    place: Place::Path,
    idle: &[],
    options: &[
        OptionSpec {
            name: "db",
            kind: ValueKind::Count { min: 0, max: MAX_DATABASE },
            help: "number of the database; 0 by default",
        },
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
    ],
    help: "a database of Redis or Valkey over a Unix socket",
};

/// An opener of Redis stores, with the URLs `redis://USER:PASSWORD@HOST:PORT/DATABASE` and
/// `redis+unix:///PATH?db=DATABASE`.
#[derive(Debug)]
pub struct RedisOpener {
    scheme: &'static Scheme,
}

impl RedisOpener {
    /// Creates the opener for the URL scheme `redis`.
    pub fn tcp() -> Self {
        Self { scheme: &TCP }
    }

    /// Creates the opener for the URL scheme `redis+unix`.
    pub fn unix() -> Self {
        Self { scheme: &UNIX }
    }
}

/// The reason why the server cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "Redis at {address} cannot be used: {why}; check that it runs there (for example: redis-server \
     {arguments}) and lets this user in, or name another server"
)]
struct NoServer {
    address: Address,
    why: String,
    arguments: String,
}

/// A namespace that is too long.
#[derive(Debug, thiserror::Error)]
#[error("a namespace of {bytes} bytes is too long; the limit is {MAX_NAMESPACE_BYTES}")]
struct LongNamespace {
    bytes: usize,
}

/// Reads the options that all remote stores share from one level of a URL, and checks the length of the prefix.
pub(super) fn common(level: &ResolvedLevel) -> Result<Common, OpenError> {
    let common = Common::of(level);
    if common.prefix.len() > MAX_NAMESPACE_BYTES + 1 {
        let source = LongNamespace { bytes: common.prefix.len() - 1 }.into();
        return Err(OpenError::Backend { url: common.url.to_string(), source });
    }
    Ok(common)
}

impl Opener for RedisOpener {
    fn scheme(&self) -> &'static Scheme {
        self.scheme
    }

    fn open(
        &self,
        level: &ResolvedLevel,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Store>, OpenError> {
        let common = common(level)?;
        let failed = |source| OpenError::Backend { url: common.url.to_string(), source };
        let Database { address, number, login } = Database::of(level)?;
        let redis = Redis::alone(login, address.clone(), number);
        let (clock, fences) = (Arc::clone(&clock), Arc::new(Fences::new(clock)));
        let server = Server::new(redis, address.to_string(), common.timeout, clock, fences);
        if server.try_out(Redis::check).is_none() {
            let why = server.last_failure().unwrap_or_default();
            return Err(failed(no_server(address, why).into()));
        }
        Ok(Arc::new(RedisStore::new(Nodes::One(Arc::new(server)), common)))
    }
}

fn no_server(address: Address, why: String) -> NoServer {
    let arguments = match &address {
        Address::Tcp { host, port } => format!("--bind {host} --port {port}"),
        Address::Unix(path) => format!("--port 0 --unixsocket {}", path.display()),
    };
    NoServer { address, why, arguments }
}

/// The address of a database, and the login.
#[derive(Debug, PartialEq)]
struct Database {
    address: Address,
    number: i64,
    login: Login,
}

impl Database {
    fn of(level: &ResolvedLevel) -> Result<Self, UrlError> {
        if level.server().is_empty() {
            let database = level.count("db").unwrap_or(0);
            let database = i64::try_from(database).expect("the option's range is checked");
            let address = socket(level.level())?;
            return Ok(Self { address, number: database, login: Login::default() });
        }
        let wrong = |expected: &str| wrong_place(level.level(), expected);
        let (login, host) = Login::split(level.server()).ok_or_else(|| {
            wrong("a user needs a password, as in redis://USER:PASSWORD@HOST:PORT")
        })?;
        let address = Address::parse(host, DEFAULT_PORT).ok_or_else(|| {
            wrong(
                "the URL needs one server, as in redis://HOST:PORT/0 or \
                 redis://USER:PASSWORD@HOST:PORT, with an IPv6 address in brackets",
            )
        })?;
        let database = match level.path().to_string_lossy().trim_start_matches('/') {
            "" => Some(0),
            number => number.parse().ok().filter(|number| *number <= MAX_DATABASE),
        };
        let database = database.and_then(|number| i64::try_from(number).ok()).ok_or_else(|| {
            wrong("the path after the server is the number of a database, as in /0")
        })?;
        Ok(Self { address, number: database, login })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Database, UrlError> {
        let url = text.parse::<haypile::url::CacheUrl>().unwrap();
        let scheme = if text.starts_with("redis+") { &UNIX } else { &TCP };
        Database::of(&url.levels()[0].resolve(scheme)?)
    }

    #[test]
    fn places_are_read() {
        let place = of("redis://ann:a%40b:c@h:7/3").unwrap();
        assert_eq!((place.address.to_string().as_str(), place.number), ("h:7", 3));
        assert_eq!(Some((place.login, "h")), Login::split("ann:a@b:c@h"));
        let place = of("redis://:secret@[::1]").unwrap();
        assert_eq!((place.address.to_string().as_str(), place.number), ("[::1]:6379", 0));
        assert_eq!(Some((place.login, "h")), Login::split(":secret@h"));
        let place = of("redis+unix:///run/r.sock?db=2").unwrap();
        assert_eq!((place.address.to_string().as_str(), place.number), ("/run/r.sock", 2));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for (text, says) in [
            ("redis://u:secret@h/x", "number of a database"),
            ("redis://u:secret@h/-1", "number of a database"),
            ("redis://u:secret@a,b", "one server"),
            ("redis://u@h", "a user needs a password"),
            ("redis+unix:///s?db=x", "whole number"),
            ("redis+unix:///u:secret@/run/s", "without a user and a password"),
            ("redis+unix:///:sec/ret@h", "without a user and a password"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("secret"), "{error}");
        }
    }
}
