//! The scheme `memcached` and its options.

use std::sync::Arc;

use haypile::url::{Level, Place, ResolvedLevel, Scheme, UrlError};
use haypile::{Clock, OpenError, Opener, Store};

use super::admin;
use super::connection::Memcached;
use super::store::MemcachedStore;
use crate::address::Address;
use crate::deadline::Lost;
use crate::fence::Fences;
use crate::options::{Common, OPTIONS, socket, wrong_place};
use crate::server::Server;

const DEFAULT_PORT: u16 = 11211;
/// The length in bytes of the longest key that memcached accepts, in the form in which it is sent.
pub(super) const MAX_WIRE_KEY_BYTES: usize = memcache::exp::MAX_KEY_LENGTH;

static SCHEME: Scheme = Scheme {
    name: "memcached",
    place: Place::ServerOrPath,
    idle: &[],
    options: OPTIONS,
    help: "memcached, over TCP or a Unix socket; several servers are written HOST:PORT,HOST:PORT",
};

/// An opener of memcached stores, with the URLs `memcached://HOST:PORT` and `memcached:///PATH`.
///
/// One of the servers has to answer; [warnings](Store::warnings) name those that do not.
#[derive(Debug)]
pub struct MemcachedOpener;

/// The reason why no server can be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "memcached at {address} cannot be used: {why}; check that it runs there (for example: \
     memcached {arguments}), or name another server"
)]
struct NoServer {
    address: Address,
    why: String,
    arguments: String,
}

/// A namespace that leaves no room for keys.
#[derive(Debug, thiserror::Error)]
#[error("a namespace of {bytes} bytes leaves no room for a key; give one of at most {limit_bytes}")]
struct LongNamespace {
    bytes: usize,
    limit_bytes: usize,
}

impl Opener for MemcachedOpener {
    fn scheme(&self) -> &'static Scheme {
        &SCHEME
    }

    fn open(
        &self,
        level: &ResolvedLevel,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Store>, OpenError> {
        let common = Common::of(level);
        let failed = |source| OpenError::Backend { url: common.url.to_string(), source };
        // Leaves room for a binary key of the same length, in base64.
        let limit_bytes = MAX_WIRE_KEY_BYTES / 2;
        if common.prefix.len() > limit_bytes {
            let bytes = common.prefix.len() - 1;
            return Err(failed(LongNamespace { bytes, limit_bytes: limit_bytes - 1 }.into()));
        }
        let mut servers = Vec::new();
        let mut item_size_bytes: Option<u64> = None;
        let mut last = None;
        let fences = Arc::new(Fences::new(Arc::clone(&clock)));
        for address in addresses(level.level())? {
            match open(&address, &common, Arc::clone(&clock), &fences) {
                Ok((server, bytes)) => {
                    if let Some(bytes) = bytes {
                        item_size_bytes =
                            Some(item_size_bytes.map_or(bytes, |other| other.min(bytes)));
                    } else {
                        last = Some(address);
                    }
                    servers.push(server);
                }
                Err(why) => return Err(failed(no_server(address, &why).into())),
            }
        }
        if let Some(bytes) = item_size_bytes {
            return Ok(Arc::new(MemcachedStore::new(servers, fences, common, bytes)));
        }
        let why = servers.last().and_then(Server::last_failure).unwrap_or_default();
        let address = last.expect("a level has at least one server, and all of them failed");
        Err(failed(no_server(address, &Lost::because(why)).into()))
    }
}

fn no_server(address: Address, why: &Lost) -> NoServer {
    let arguments = match &address {
        Address::Tcp { host, port } => format!("-l {host} -p {port}"),
        Address::Unix(path) => format!("-s {}", path.display()),
    };
    NoServer { address, why: why.to_string(), arguments }
}

/// Connects to a server, and returns its `item_size_max` if it answers.
fn open(
    address: &Address,
    common: &Common,
    clock: Arc<dyn Clock>,
    fences: &Arc<Fences>,
) -> Result<(Server<Memcached>, Option<u64>), Lost> {
    let resolved = address.resolve().map_err(|error| Lost::new(&error))?;
    let memcached = Memcached::new(resolved);
    let name = address.to_string();
    let server = Server::new(memcached, name, common.timeout, clock, Arc::clone(fences));
    let item_size_bytes = server.try_out(|memcached, deadline| {
        memcached.check(deadline)?;
        let stream = memcached.address.connect(deadline)?;
        let settings = admin::numbers(stream, "stats settings", deadline)?;
        let found = settings.into_iter().find(|(name, _)| name == "item_size_max");
        found
            .map(|(_, bytes)| bytes)
            .ok_or_else(|| Lost::because("its settings lack item_size_max"))
    });
    Ok((server, item_size_bytes))
}

fn addresses(level: &Level) -> Result<Vec<Address>, UrlError> {
    if level.server().is_empty() {
        return Ok(vec![socket(level)?]);
    }
    let wrong = |expected: &str| wrong_place(level, expected);
    let mut addresses = Vec::new();
    for text in level.server().split(',') {
        let address = Address::parse(text, DEFAULT_PORT).ok_or_else(|| {
            wrong(
                "the URL needs servers, as in memcached://HOST:PORT or \
                 memcached://HOST:PORT,HOST:PORT, with IPv6 addresses in brackets; without \
                 passwords",
            )
        })?;
        if addresses.contains(&address) {
            return Err(wrong("a server is named twice; name it once"));
        }
        addresses.push(address);
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Vec<String>, UrlError> {
        let level = text.parse::<haypile::url::CacheUrl>().unwrap().levels()[0].clone();
        Ok(addresses(&level)?.iter().map(Address::to_string).collect())
    }

    #[test]
    fn servers_are_read() {
        assert_eq!(of("memcached://h").unwrap(), ["h:11211"]);
        assert_eq!(of("memcached://[::1]:5,b:6").unwrap(), ["[::1]:5", "b:6"]);
        assert_eq!(of("memcached:a:1%2Cb:2").unwrap(), ["a:1", "b:2"]);
        assert_eq!(of("memcached:///run/m.sock").unwrap(), ["/run/m.sock"]);
        for (text, says) in
            [("memcached://a,,b", "the URL needs servers"), ("memcached://a:1,a:1", "named twice")]
        {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let error = of("memcached://ann:secret@h").unwrap_err().to_string();
        assert!(error.contains("without passwords") && !error.contains("secret"), "{error}");
    }
}
