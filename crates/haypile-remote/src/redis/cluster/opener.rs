//! The scheme `redis+cluster` and its options.

use std::sync::Arc;

use haypile::url::{Place, ResolvedLevel, Scheme, UrlError};
use haypile::{Clock, OpenError, Opener, Store};

use super::Cluster;
use crate::address::Address;
use crate::options::{OPTIONS, wrong_place};
use crate::redis::login::Login;
use crate::redis::nodes::Nodes;
use crate::redis::opener::{DEFAULT_PORT, common};
use crate::redis::store::RedisStore;

static SCHEME: Scheme = Scheme {
    name: "redis+cluster",
    place: Place::Server,
    idle: &[],
    options: OPTIONS,
    help: "a Redis or Valkey Cluster; the URL names one or several of its nodes: \
           HOST:PORT,HOST:PORT",
};

/// An opener of Redis Cluster stores, with the URL `redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT`: these nodes
/// name the others. All accept the same user and password.
///
/// One of the named nodes has to answer, and one of those that have slots;
/// [warnings](Store::warnings) name those that do not. Opening waits for each of them up to
/// `timeout=`. A cluster that refuses all keys at the moment can be opened, and is an empty cache
/// until it accepts them.
#[derive(Debug)]
pub struct RedisClusterOpener;

/// The reason why the cluster cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "the Redis Cluster cannot be used: {why}; check that its nodes run (redis-server \
     --cluster-enabled yes), can be reached from here at the addresses of 'CLUSTER SLOTS' and \
     let this user in, or name others; a single server has the URL redis://HOST:PORT"
)]
struct NoCluster {
    why: String,
}

impl Opener for RedisClusterOpener {
    fn scheme(&self) -> &'static Scheme {
        &SCHEME
    }

    fn open(
        &self,
        level: &ResolvedLevel,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Store>, OpenError> {
        let common = common(level)?;
        let (login, addresses) = seeds(level)?;
        let failed = |why| OpenError::Backend {
            url: common.url.to_string(),
            source: NoCluster { why }.into(),
        };
        let cluster = Cluster::new(login, &addresses, common.timeout, clock);
        cluster.try_out().map_err(failed)?;
        Ok(Arc::new(RedisStore::new(Nodes::Cluster(Box::new(cluster)), common)))
    }
}

fn seeds(level: &ResolvedLevel) -> Result<(Login, Vec<Address>), UrlError> {
    let wrong = |expected: &str| wrong_place(level.level(), expected);
    if !level.path().to_string_lossy().trim_start_matches('/').is_empty() {
        return Err(wrong(
            "a cluster has no numbered databases; leave out the part after the servers",
        ));
    }
    let (login, hosts) = Login::split(level.server()).ok_or_else(|| {
        wrong("a user needs a password, as in redis+cluster://USER:PASSWORD@HOST:PORT")
    })?;
    let mut addresses = Vec::new();
    for text in hosts.split(',') {
        let address = Address::parse(text, DEFAULT_PORT).ok_or_else(|| {
            wrong(
                "the URL needs nodes, as in redis+cluster://HOST:PORT,HOST:PORT or \
                 redis+cluster://USER:PASSWORD@HOST:PORT, with IPv6 addresses in brackets",
            )
        })?;
        if addresses.contains(&address) {
            return Err(wrong("a node is named twice; name it once"));
        }
        addresses.push(address);
    }
    Ok((login, addresses))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Vec<String>, UrlError> {
        let url = text.parse::<haypile::url::CacheUrl>().unwrap();
        let (_, addresses) = seeds(&url.levels()[0].resolve(&SCHEME)?)?;
        Ok(addresses.iter().map(Address::to_string).collect())
    }

    #[test]
    fn nodes_are_read() {
        assert_eq!(of("redis+cluster://h").unwrap(), ["h:6379"]);
        assert_eq!(of("redis+cluster://ann:a,b@[::1]:5,b:6/").unwrap(), ["[::1]:5", "b:6"]);
        assert_eq!(of("redis+cluster:a:1%2Cb:2").unwrap(), ["a:1", "b:2"]);
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for (text, says) in [
            ("redis+cluster://u:secret@h/0", "no numbered databases"),
            ("redis+cluster://u:secret@h:1,h:1", "named twice"),
            ("redis+cluster://u:secret@a,,b", "needs nodes"),
            ("redis+cluster://u@h", "a user needs a password"),
            ("redis+cluster:///run/redis.sock", "server"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("secret"), "{error}");
        }
    }
}
