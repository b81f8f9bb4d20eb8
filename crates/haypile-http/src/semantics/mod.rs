//! The rules of HTTP caching, as pure functions over heads of requests and responses.
//!
//! Sources: RFC 9111 (HTTP Caching), RFC 9110 (HTTP Semantics), RFC 5861 (stale content), RFC 8246
//! (`immutable`) and RFC 9213 (targeted cache control). Where a head is invalid or contradicts
//! itself, the stricter meaning holds.
//!
//! | question | answered by |
//! |---|---|
//! | Which responses answer the same request? | [`Target`], [`Variant`], [`SearchRule`] |
//! | May this response be stored? | [`Rules::may_store`] |
//! | May a stored response be reused for this request? | [`Rules::reuse`] |
//! | Which part of a response is this one? | [`part`] |
//! | How is a stored response revalidated, and what changes then? | [`validation`] |
//! | What does an unsafe request invalidate? | [`invalidated_by`] |
//! | Does a response clear a user's cache of its origin? | [`clears_origin`] |
//!
//! ```
//! use std::time::{Duration, UNIX_EPOCH};
//!
//! use haypile_http::semantics::{Reuse, Rules, Stored};
//! use http::{Request, Response};
//!
//! let (request, ()) = Request::get("http://example.org/").body(())?.into_parts();
//! let response = Response::builder().header("cache-control", "max-age=60").body(())?;
//! let rules = Rules::shared();
//! let (response, ()) = response.into_parts();
//! assert_eq!(rules.may_store(&request, &response), Ok(()));
//! let stored = Stored::new(&request, response, UNIX_EPOCH, UNIX_EPOCH);
//! let reuse = |seconds| rules.reuse(&request, &stored, UNIX_EPOCH + Duration::from_secs(seconds));
//! assert_eq!(reuse(59), Reuse::Fresh);
//! assert!(matches!(reuse(60), Reuse::Revalidate { .. }));
//! # Ok::<(), http::Error>(())
//! ```

mod directives;
mod fields;
mod freshness;
mod groups;
mod invalidation;
mod list;
pub mod part;
mod reuse;
mod rules;
mod search;
mod storable;
mod stored;
mod target;
mod targeted;
mod terms;
mod time;
pub mod validation;
mod vary;

pub use directives::{RequestDirectives, ResponseDirectives, Scope};
#[cfg(feature = "proxy")]
pub(crate) use fields::{HopByHop, remove_those};
pub use fields::{remove_hop_by_hop, storable_fields};
pub use freshness::Lifetime;
pub use groups::invalidated_groups;
pub use invalidation::{clears_origin, invalidated_by};
pub(crate) use reuse::Assessment;
pub use reuse::Reuse;
pub use rules::{IgnoredCookies, Rules, Sharing};
pub(crate) use rules::{OWN_LIFETIME, set_lifetime};
pub use search::SearchRule;
pub use storable::NotStored;
pub use stored::Stored;
pub(crate) use target::encoded;
pub use target::{Target, TargetError};
#[cfg(feature = "proxy")]
pub(crate) use target::{is_raw, push_encoded};
pub(crate) use terms::{KnownTerms, Terms};
pub use vary::Variant;
pub(crate) use vary::{CodingSet, Selection, accepted_coding};
