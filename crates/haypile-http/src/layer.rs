//! The cache as a layer around any service.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use crate::cache::{Body, BoxError, HttpCache, ServiceOrigin};

/// Puts an [`HttpCache`] around services that answer HTTP requests: clients as well as servers.
///
/// The requests need absolute URIs. A service that decodes bodies or follows redirects belongs
/// outside of the cache, so that what is stored is what the origin sent.
#[derive(Clone, Debug)]
pub struct CacheLayer(HttpCache);

impl CacheLayer {
    /// Returns a layer; all services in it share the cache.
    pub fn new(cache: HttpCache) -> Self {
        Self(cache)
    }
}

impl<S> Layer<S> for CacheLayer {
    type Service = CacheService<S>;

    fn layer(&self, service: S) -> CacheService<S> {
        CacheService { cache: self.0.clone(), service }
    }
}

/// A service behind a cache.
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
