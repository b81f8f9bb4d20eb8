//! The cache as a middleware for clients of `reqwest`.
//!
//! `reqwest` follows redirects and decodes bodies inside its client, below any middleware. A cache has
//! to be below both, so that it keeps what the origin sent, each response under its own URL.
//! [`CachingClientBuilder`] therefore switches them off in the client and does them above the cache:
//!
//! ```no_run
//! use haypile_http::HttpCache;
//! use haypile_http::reqwest::CachingClientBuilder;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = haypile::Cache::open("file:/var/tmp/http.haypile,size=1GiB")?;
//! let cache = HttpCache::builder(store).build();
//! let client = CachingClientBuilder::new(cache, reqwest::Client::builder()).build()?;
//! let text = client.get("http://example.org/").send().await?.text().await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`CacheMiddleware::new`] puts the cache around a client as it is.
//!
//! # What the cache does not see
//!
//! It decides by the fields of the requests that reach it. What the client adds below it has no part
//! in that: the `default_headers` and `user_agent` of a [`reqwest::ClientBuilder`], and its cookie
//! store. With an `Authorization` or a `Cookie` set there, a shared cache would store one user's
//! responses for all. Set such fields on the request or with
//! [`CachingClientBuilder::default_headers`], and leave the cookie store off. A response from the
//! cache does not go through the client either: a URL that the client refuses, as with `https_only`,
//! is still answered if a response to it is stored.
//!
//! Of a redirect below the cache only the URL of the response tells. One that leads back to the same
//! URL is not noticed.

mod deadline;
mod origin;
mod redirects;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::reqwest::redirect::Policy;
use ::reqwest::{ResponseBuilderExt, Url};
use http::header::{ACCEPT_ENCODING, Entry, HeaderValue, RANGE};
use http::{Extensions, HeaderMap, Request, Response};
use reqwest_middleware::{ClientWithMiddleware, Error, Middleware, Next};
use tokio::time::{Instant, timeout, timeout_at};
use tower_http::decompression::Decompression;
use tower_http::follow_redirect::{FollowRedirect, RequestUri};
use tower_service::Service;

use crate::cache::{Body, BoxError, CacheKey, CacheMode, CacheTtl, FollowedRedirect, HttpCache};
use deadline::{BodyDeadline, timed_out};
use origin::{ClientOrigin, ResponseUrl, from_reqwest, to_reqwest, wrap};
use redirects::Redirects;
pub use redirects::TooManyRedirects;

/// The number of redirects that are followed, unless it is set; as in `reqwest`.
const MOST_REDIRECTS: usize = 10;
/// The time that the client has, once a timeout is over, to fail by it: callers recognise its error
/// as a timeout, and not the middleware's.
const TIMEOUT_GRACE: Duration = Duration::from_millis(100);

/// A middleware of `reqwest` that answers requests from a cache, or forwards them to a client.
///
/// It belongs at the end of a chain of middlewares, for it has its own client and never calls the
/// next: the store fills, and stale responses are revalidated, after the caller has gone, and the
/// rest of a chain ends with the caller. A middleware that is to see only what goes to the origin
/// belongs into that client.
///
/// The timeout of a request holds for the caller, and for what it has sent. The extensions of a
/// request reach the middlewares below as copies.
#[derive(Clone, Debug)]
pub struct CacheMiddleware {
    cache: HttpCache,
    client: ClientWithMiddleware,
    /// The fields that are added to requests without them.
    default_headers: HeaderMap,
    /// The number of redirects that are followed above the cache; `None` if redirects and codings are not handled
    /// there.
    redirects: Option<usize>,
}

impl CacheMiddleware {
    /// Creates a middleware with a cache in front of a `reqwest` client. What the client does itself, such as following
    /// redirects, happens below the cache:
    ///
    /// - The response to a request that the client has redirected is passed on and not stored.
    /// - A body that the client has decoded is no longer what its `ETag` names. Switch decoding off
    ///   in the client (`no_gzip`, `no_brotli`, `no_deflate`, `no_zstd`), or have
    ///   [`CachingClientBuilder`] do so. Requests without `Accept-Encoding` ask for `identity`, so
    ///   that the client does not ask for codings by itself; where an origin uses one even then, a
    ///   decoded response is not stored if the origin had announced its length.
    pub fn new(cache: HttpCache, client: impl Into<ClientWithMiddleware>) -> Self {
        let (client, default_headers) = (client.into(), HeaderMap::new());
        Self { cache, client, default_headers, redirects: None }
    }

    async fn answer(
        &self,
        origin: ClientOrigin,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, BoxError> {
        let cached = Cached { cache: self.cache.clone(), origin };
        // A part of a coded body cannot be decoded.
        let is_whole = !request.headers().contains_key(RANGE);
        let Some(most) = self.redirects.filter(|_| is_whole) else {
            if let Entry::Vacant(entry) = request.headers_mut().entry(ACCEPT_ENCODING) {
                entry.insert(HeaderValue::from_static("identity"));
            }
            return match self.redirects {
                Some(most) => following(cached, most).call(request).await,
                None => cached.answer(request).await,
            };
        };
        let response = Decompression::new(following(cached, most)).call(request).await?;
        Ok(response.map(Body::wrap))
    }
}

fn following(cached: Cached, most: usize) -> FollowRedirect<Cached, Redirects> {
    FollowRedirect::with_policy(cached, Redirects::up_to(most))
}

#[async_trait::async_trait]
impl Middleware for CacheMiddleware {
    async fn handle(
        &self,
        request: ::reqwest::Request,
        extensions: &mut Extensions,
        _next: Next<'_>,
    ) -> Result<::reqwest::Response, Error> {
        let url = request.url().clone();
        // A timeout that is too long for a time to be its end is none.
        let deadline = request.timeout().and_then(|timeout| Instant::now().checked_add(*timeout));
        let (mut parts, body) = Request::<::reqwest::Body>::try_from(request)?.into_parts();
        for name in self.default_headers.keys() {
            if !parts.headers.contains_key(name) {
                for value in self.default_headers.get_all(name) {
                    parts.headers.append(name, value.clone());
                }
            }
        }
        // What the program says of the request is for the cache.
        copy_extension::<CacheMode>(extensions, &mut parts.extensions);
        copy_extension::<CacheTtl>(extensions, &mut parts.extensions);
        copy_extension::<CacheKey>(extensions, &mut parts.extensions);
        let asked = parts.uri.clone();
        let request = Request::from_parts(parts, from_reqwest(body).await?);
        let (client, extensions) = (self.client.clone(), extensions.clone());
        let answer = self.answer(ClientOrigin { client, extensions, deadline }, request);
        let answered = match deadline {
            None => answer.await,
            Some(deadline) => {
                tokio::pin!(answer);
                match timeout_at(deadline, &mut answer).await {
                    Ok(answered) => answered,
                    Err(_) => timeout(TIMEOUT_GRACE, answer)
                        .await
                        .unwrap_or_else(|_| Err(timed_out().into())),
                }
            }
        };
        let response = answered.map_err(to_error)?;
        let to_reqwest = |body| match deadline {
            Some(deadline) => wrap(BodyDeadline::new(body, deadline)),
            None => to_reqwest(body),
        };
        // The caller's own URL where that is the last: it has the fragment.
        let last = redirected_to(response.extensions(), &asked).unwrap_or(url);
        Ok(with_url(response.map(to_reqwest), last))
    }
}

/// The cache in front of a client, as a service.
#[derive(Clone, Debug)]
struct Cached {
    cache: HttpCache,
    origin: ClientOrigin,
}

type Answered = Result<Response<Body>, BoxError>;

impl Cached {
    async fn answer(self, request: Request<Body>) -> Answered {
        self.cache.answer(self.origin, request).await
    }
}

impl Service<Request<Body>> for Cached {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Answered> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

fn copy_extension<T: Clone + Send + Sync + 'static>(from: &Extensions, to: &mut Extensions) {
    if let Some(extension) = from.get::<T>() {
        to.insert(extension.clone());
    }
}

/// Returns the URL to which a request for this one was redirected; `None` if it was not.
fn redirected_to(extensions: &Extensions, asked: &http::Uri) -> Option<Url> {
    if extensions.get::<FollowedRedirect>().is_some() {
        return extensions.get().map(|ResponseUrl(url)| url.clone());
    }
    let RequestUri(last) = extensions.get().filter(|RequestUri(last)| last != asked)?;
    Url::parse(&last.to_string()).ok()
}

/// Returns a response with the URL that it is from, which only a builder can set.
fn with_url(response: Response<::reqwest::Body>, url: Url) -> ::reqwest::Response {
    let (mut parts, body) = response.into_parts();
    if let Some(extensions) = Response::builder().url(url).extensions_mut() {
        parts.extensions.extend(std::mem::take(extensions));
    }
    Response::from_parts(parts, body).into()
}

/// An error that is neither the client's nor a middleware's.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Failed(BoxError);

fn to_error(error: BoxError) -> Error {
    match error.downcast() {
        Ok(error) => *error,
        Err(error) => match error.downcast::<::reqwest::Error>() {
            Ok(error) => Error::Reqwest(*error),
            Err(error) => Error::middleware(Failed(error)),
        },
    }
}

/// A builder of a `reqwest` client with a cache, which follows redirects and decodes bodies above
/// the cache.
///
/// Bodies coded with gzip, deflate, Brotli or Zstandard are decoded; each request that has no
/// `Accept-Encoding` and asks for the whole response asks for these. Redirects are followed as
/// `reqwest` does by default, but without `Referer`: 303, and after a POST 301 and 302, become a GET;
/// 307 and 308 send the body again if it is in memory, and are returned otherwise. An origin that the
/// caller did not name gets neither `Authorization` nor `Cookie`.
///
/// Without a feature of `reqwest` that has TLS, the client knows `http` only.
#[derive(Debug)]
#[must_use]
pub struct CachingClientBuilder {
    cache: HttpCache,
    client: ::reqwest::ClientBuilder,
    default_headers: HeaderMap,
    redirects: usize,
    below: Stack,
}

struct Stack(Vec<Arc<dyn Middleware>>);

impl std::fmt::Debug for Stack {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} middlewares", self.0.len())
    }
}

impl CachingClientBuilder {
    /// Creates a builder from a cache and a builder of `reqwest`, whose settings apply except those of redirects,
    /// `Referer` and content codings.
    pub fn new(cache: HttpCache, client: ::reqwest::ClientBuilder) -> Self {
        let (default_headers, below) = (HeaderMap::new(), Stack(Vec::new()));
        Self { cache, client, default_headers, redirects: MOST_REDIRECTS, below }
    }

    /// Sets the largest number of redirects that a request follows, 10 by default. With more, a request fails with
    /// [`TooManyRedirects`]; with 0, redirects are returned as they are.
    pub fn redirects(mut self, most: usize) -> Self {
        self.redirects = most;
        self
    }

    /// Sets header fields for all requests that do not have them. They are added above the cache, unlike those of
    /// [`reqwest::ClientBuilder::default_headers`].
    pub fn default_headers(mut self, headers: HeaderMap) -> Self {
        self.default_headers = headers;
        self
    }

    /// Adds a middleware below the cache: it gets the requests that go to the origin, each redirect
    /// as a separate request, and bodies as the origin sends them.
    pub fn with_below(mut self, middleware: impl Middleware) -> Self {
        self.below.0.push(Arc::new(middleware));
        self
    }

    /// Builds the `reqwest` client with the cache in front of it.
    ///
    /// # Errors
    ///
    /// Those of [`reqwest::ClientBuilder::build`].
    pub fn build(self) -> ::reqwest::Result<ClientWithMiddleware> {
        let (client, middleware) = self.build_parts()?;
        Ok(reqwest_middleware::ClientBuilder::new(client).with(middleware).build())
    }

    /// Builds the client and the cache's middleware separately, for a chain of middlewares that ends with the cache.
    ///
    /// # Errors
    ///
    /// Those of [`reqwest::ClientBuilder::build`].
    pub fn build_parts(self) -> ::reqwest::Result<(::reqwest::Client, CacheMiddleware)> {
        let client = self.client.redirect(Policy::none()).referer(false);
        // These do nothing where the client does not know the coding.
        let client = client.no_gzip().no_brotli().no_deflate().no_zstd().build()?;
        let below = ClientWithMiddleware::new(client.clone(), self.below.0);
        let middleware = CacheMiddleware {
            cache: self.cache,
            client: below,
            default_headers: self.default_headers,
            redirects: Some(self.redirects),
        };
        Ok((client, middleware))
    }
}
