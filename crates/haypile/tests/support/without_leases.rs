//! A store without leases, such as a memcached without versions: only changes through its caches are noticed.

use std::sync::Arc;

use haypile::{Error, Layer, Lease, Store};

#[derive(Debug)]
pub(crate) struct WithoutLeases(pub(crate) Arc<dyn Store>);

impl Layer for WithoutLeases {
    fn inner(&self) -> &dyn Store {
        &*self.0
    }

    fn lease(&self, _: &[u8]) -> Result<Lease, Error> {
        Err(Error::Unsupported { operation: "lease", store: self.describe() })
    }
}
