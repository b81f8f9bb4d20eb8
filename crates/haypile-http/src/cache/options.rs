//! The options of a program for one request, among the request's extensions.

use std::time::Duration;

use crate::semantics::RequestDirectives;

/// The way in which one request uses the cache (an extension of the request): the modes of the Fetch standard
/// (<https://fetch.spec.whatwg.org/#concept-request-cache-mode>).
///
/// ```
/// use haypile_http::CacheMode;
/// use http::Request;
///
/// let request = Request::get("http://example.org/").extension(CacheMode::ForceCache).body(())?;
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheMode {
    /// The request's own `Cache-Control` decides.
    #[default]
    Default,
    /// The request goes to the origin, and its response is not stored.
    NoStore,
    /// A stored response is validated before it is served.
    NoCache,
    /// A stored response is served however stale it is; the origin is asked only if there is none.
    ForceCache,
    /// A stored response is served however stale it is; the answer is 504 if there is none.
    OnlyIfCached,
}

impl CacheMode {
    /// Changes the cache directives of a request as this cache mode of the Fetch standard demands, such as adding
    /// `no-store`.
    pub(super) fn apply(self, asked: &mut RequestDirectives) {
        match self {
            Self::Default => {}
            Self::NoStore => asked.no_store = true,
            Self::NoCache => asked.no_cache = true,
            Self::ForceCache | Self::OnlyIfCached => {
                *asked = RequestDirectives {
                    max_stale: Some(Duration::MAX),
                    only_if_cached: self == Self::OnlyIfCached,
                    no_transform: asked.no_transform,
                    ..RequestDirectives::default()
                };
            }
        }
    }
}

/// The time for which the response to one request is fresh (an extension of the request), in place
/// of what the response states. It does not make a response storable that is not, such as a
/// `private` one in a shared cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheTtl(pub Duration);

/// The key of the response to one request (an extension of the request), in place of its URL:
/// requests with the same key share their responses. Purges by URL, and requests that change the
/// URL, do not reach it; purges by group do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheKey(pub String);
