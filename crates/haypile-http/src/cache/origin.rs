//! Origins: the services that responses come from.

use std::future::{Future, poll_fn};

use bytes::Bytes;
use http::{Request, Response};
use tower_service::Service;

use super::body::{Body, BoxError};

/// A service that sends requests to an origin server, and returns its responses.
pub trait Origin: Clone + Send + 'static {
    /// Sends a request, and returns the response as soon as its head has come.
    fn send(
        self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<Response<Body>, BoxError>> + Send;
}

/// An adapter that lets any tower service act as the origin of a cache.
#[derive(Clone, Debug)]
pub struct ServiceOrigin<S>(pub S);

impl<S, B> Origin for ServiceOrigin<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    async fn send(mut self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        poll_fn(|context| self.0.poll_ready(context)).await.map_err(Into::into)?;
        let response = self.0.call(request).await.map_err(Into::into)?;
        Ok(response.map(Body::wrap))
    }
}

/// An extension of a response whose body was ended by the end of the connection, so that it may be
/// incomplete. Such a response is not stored.
#[derive(Clone, Copy, Debug)]
pub struct CloseDelimited;

/// An extension of a response for which the client has followed a redirect, so that it belongs to
/// another URL. It is returned, but neither stored nor used to validate a stored response.
#[derive(Clone, Copy, Debug)]
pub struct FollowedRedirect;
