//! A store is a trait object that threads share; a scheme of another crate registers like ours.

use std::sync::Arc;

use haypile::url::{Place, ResolvedLevel, Scheme};
use haypile::{Cache, Clock, NoneStore, OpenError, Opener, Registry, Reservation, Store};

fn shared<T: Send + Sync + ?Sized>() {}

fn sent<T: Send + ?Sized>() {}

#[test]
fn stores_are_shared_as_objects() {
    shared::<dyn Store>();
    shared::<Cache>();
    shared::<Registry>();
    sent::<dyn Reservation>();
    let stores: Vec<Box<dyn Store>> = vec![Box::new(NoneStore::new())];
    assert_eq!(stores[0].describe(), "none://");
}

static SCHEME: Scheme = Scheme {
    name: "memcached",
    place: Place::ServerOrPath,
    idle: &[],
    options: &[],
    help: "a stand-in",
};

#[derive(Debug)]
struct StandIn;

impl Opener for StandIn {
    fn scheme(&self) -> &'static Scheme {
        &SCHEME
    }

    fn open(
        &self,
        level: &ResolvedLevel,
        _clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Store>, OpenError> {
        assert_eq!(level.server(), "127.0.0.1:11211");
        Ok(Arc::new(NoneStore::new()))
    }
}

#[test]
fn another_crate_registers_its_scheme() {
    let mut registry = Registry::new();
    registry.register(Arc::new(StandIn));
    assert!(registry.open("memcached:127.0.0.1:11211").is_ok());
    let names: Vec<&str> = registry.schemes().map(|scheme| scheme.name).collect();
    assert_eq!(names, ["file", "memcached", "memory", "none"]);
    let error = registry.open("memcached:").unwrap_err().to_string();
    assert!(error.contains("memcached://HOST:PORT or memcached:///PATH"), "{error}");
}
