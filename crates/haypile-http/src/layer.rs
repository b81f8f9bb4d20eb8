//! The cache as a layer around any service.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, HOST};
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use tower_layer::Layer;
use tower_service::Service;

use crate::cache::{Body, BoxError, HttpCache, Origin, ServiceOrigin};

/// A tower layer that puts an [`HttpCache`] in front of HTTP clients: services that answer requests with absolute URIs.
/// For the services of a server, see [`server`](Self::server).
///
/// A service that decodes bodies or follows redirects belongs
/// outside of the cache, so that what is stored is what the origin sent.
#[derive(Clone, Debug)]
pub struct CacheLayer(HttpCache);

impl CacheLayer {
    /// Creates a tower layer that puts a cache in front of HTTP clients; all services in the layer share the cache.
    pub fn new(cache: HttpCache) -> Self {
        Self(cache)
    }

    /// Creates a tower layer that puts a cache in front of a server's services, such as those of axum or hyper: it
    /// takes the host from the `Host` field, and answers errors of its service itself.
    ///
    /// ```
    /// use haypile_http::{CacheLayer, HttpCache};
    /// # let cache = haypile::Cache::open("memory:size=1MiB")?;
    ///
    /// let layer = CacheLayer::server(HttpCache::builder(cache).build());
    /// // axum::Router::new().route("/", get(page)).layer(layer)
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn server(cache: HttpCache) -> ServerLayer {
        ServerLayer { cache, scheme: Scheme::HTTP }
    }
}

/// A tower layer that puts an [`HttpCache`] in front of the services of a server.
///
/// Whatever a response depends on besides its URL, `Vary` has to name; a page for one user says
/// `Cache-Control: private`. Middleware that decides who may see a page belongs outside of the cache.
#[derive(Clone, Debug)]
pub struct ServerLayer {
    cache: HttpCache,
    scheme: Scheme,
}

impl ServerLayer {
    /// Makes the layer treat URLs of requests as `https`, as clients ask for them and purges name
    /// them.
    #[must_use]
    pub fn https(self) -> Self {
        Self { scheme: Scheme::HTTPS, ..self }
    }
}

impl<S> Layer<S> for ServerLayer {
    type Service = ServerService<S>;

    fn layer(&self, service: S) -> ServerService<S> {
        let Self { cache, scheme } = self.clone();
        ServerService { cache, scheme, service }
    }
}

/// A tower service of a server, with an HTTP cache in front of it.
#[derive(Clone, Debug)]
pub struct ServerService<S> {
    cache: HttpCache,
    scheme: Scheme,
    service: S,
}

impl<S, A, B> Service<Request<A>> for ServerService<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    A: http_body::Body<Data = Bytes> + Send + 'static,
    A::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (cache, origin) = (self.cache.clone(), Local(ServiceOrigin(self.service.clone())));
        let mut request = request.map(Body::wrap);
        // One without a host goes to the service, and its response says that it was not cached.
        if let Some(uri) = absolute(&request, &self.scheme) {
            *request.uri_mut() = uri;
        }
        Box::pin(
            async move { Ok(cache.answer(origin, request).await.unwrap_or_else(|_| failed())) },
        )
    }
}

/// Returns the URI of a request to a server with the host that it is for; `None` if it does not say.
fn absolute<B>(request: &Request<B>, scheme: &Scheme) -> Option<Uri> {
    let mut parts = request.uri().clone().into_parts();
    if parts.authority.is_none() {
        let mut hosts = request.headers().get_all(HOST).iter();
        let (host, None) = (hosts.next()?, hosts.next()) else { return None };
        parts.authority = Some(host.to_str().ok()?.parse().ok()?);
    }
    parts.scheme = Some(scheme.clone());
    parts.path_and_query.get_or_insert(PathAndQuery::from_static("/"));
    Uri::from_parts(parts).ok()
}

/// A service that gets requests as a server does.
#[derive(Clone)]
struct Local<O>(O);

impl<O: Origin> Origin for Local<O> {
    async fn send(self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let path = request.uri().path_and_query().cloned();
        *request.uri_mut() = path.map(Uri::from).unwrap_or_default();
        self.0.send(request).await
    }
}

/// Returns the response to a request in which the service failed. The error is none of the client's
/// business.
fn failed() -> Response<Body> {
    let mut response = Response::new(Body::full("internal server error\n"));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    let none = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, none);
    response
}

impl<S> Layer<S> for CacheLayer {
    type Service = CacheService<S>;

    fn layer(&self, service: S) -> CacheService<S> {
        CacheService { cache: self.0.clone(), service }
    }
}

/// A tower service of an HTTP client, with a cache in front of it.
#[derive(Clone, Debug)]
pub struct CacheService<S> {
    cache: HttpCache,
    service: S,
}

impl<S, A, B> Service<Request<A>> for CacheService<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    A: http_body::Body<Data = Bytes> + Send + 'static,
    A::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Most requests never get to the service; those that do wait for it then.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (cache, origin) = (self.cache.clone(), ServiceOrigin(self.service.clone()));
        Box::pin(async move { cache.answer(origin, request.map(Body::wrap)).await })
    }
}
