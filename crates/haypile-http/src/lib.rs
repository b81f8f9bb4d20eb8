//! HTTP caching on any of Haypile's caches.
//!
//! [`HttpCache`] answers requests from a cache or has their origin answer them; [`CacheLayer`] puts
//! it around any `tower` service that is a client, [`CacheLayer::server`] around one that is a server, and the module `reqwest`, with the feature of that name, around
//! clients of reqwest. [`semantics`] has the rules: it is pure, and knows no store, no
//! connection and no clock.
//!
//! The feature `proxy` adds a reverse proxy.

mod cache;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod layer;
#[cfg(feature = "proxy")]
pub mod proxy;
#[cfg(feature = "reqwest")]
pub mod reqwest;
pub mod semantics;
mod storage;

pub use cache::{
    Body, BodyError, BoxError, Builder, CacheKey, CacheMode, CacheTtl, ClientNoCache,
    CloseDelimited, Collapse, FollowedRedirect, Forwarded, HttpCache, Origin, Purge, PurgeError,
    ServiceOrigin, Status,
};
pub use layer::{CacheLayer, CacheService, ServerLayer, ServerService};
pub use storage::StoreTroubles;
