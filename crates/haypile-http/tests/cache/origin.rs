//! An origin that does what a test says, and counts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use haypile_http::{Body, BoxError, Origin};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::sync::{mpsc, watch};

type Answer = Result<Response<Body>, BoxError>;
type Answering = dyn Fn(usize, &Request<Body>) -> Answer + Send + Sync;

/// Sends the pieces of a body.
type Pieces = mpsc::UnboundedSender<Result<Bytes, BoxError>>;

#[derive(Clone)]
pub(crate) struct Script {
    answer: Arc<Answering>,
    requests: Arc<AtomicUsize>,
    is_open: watch::Receiver<bool>,
    /// From the second on, requests are answered once this many have come.
    together: usize,
}

/// Holds back an origin's responses until it is opened.
pub(crate) struct Gate(watch::Sender<bool>);

impl Script {
    /// Returns an origin that answers request number 0, 1, ... so.
    pub(crate) fn new(
        answer: impl Fn(usize, &Request<Body>) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::gated(answer, true).0
    }

    /// Returns one whose responses come only once the gate is open.
    pub(crate) fn gated(
        answer: impl Fn(usize, &Request<Body>) -> Answer + Send + Sync + 'static,
        is_open: bool,
    ) -> (Self, Gate) {
        let (gate, is_open) = watch::channel(is_open);
        let (answer, requests) = (Arc::new(answer), Arc::default());
        (Self { answer, requests, is_open, together: 0 }, Gate(gate))
    }

    /// Makes it answer the requests after the first only when `requests` have come.
    pub(crate) fn together(self, requests: usize) -> Self {
        Self { together: requests, ..self }
    }

    /// Returns one that answers the first request so, and then always as the last.
    pub(crate) fn fields(responses: &'static [&'static [(&'static str, &'static str)]]) -> Self {
        Self::new(move |number, _| {
            let fields = responses[number.min(responses.len() - 1)];
            Ok(response(200, fields, format!("body {number}")))
        })
    }

    /// Returns the answer to a request, which is not counted.
    pub(crate) fn call(&self, number: usize, request: &Request<Body>) -> Answer {
        (self.answer)(number, request)
    }

    /// Returns one whose first body is sent by the test, and the sender; each further body has its number.
    pub(crate) fn first_in_pieces(
        fields: &'static [(&'static str, &'static str)],
    ) -> (Pieces, Self) {
        let (sender, body) = pieces();
        let body = Mutex::new(Some(body));
        let origin = Self::new(move |number, _| match body.lock().expect("no panic").take() {
            Some(body) => Ok(streamed(200, fields, body)),
            None => Ok(response(200, fields, format!("body {number}"))),
        });
        (sender, origin)
    }

    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Gate {
    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }
}

impl Origin for Script {
    async fn send(mut self, request: Request<Body>) -> Answer {
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        // A gate that is gone stays as it was.
        let _ = self.is_open.wait_for(|is_open| *is_open).await;
        while number > 0 && self.requests() < self.together {
            tokio::task::yield_now().await;
        }
        (self.answer)(number, &request)
    }
}

pub(crate) fn response(
    status: u16,
    fields: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Response<Body> {
    streamed(status, fields, Body::full(body.into()))
}

pub(crate) fn streamed(status: u16, fields: &[(&str, &str)], body: Body) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in fields {
        response = response.header(*name, *value);
    }
    response.body(body).expect("a response")
}

/// Returns a body of the pieces that are sent; an error breaks it off.
pub(crate) fn pieces() -> (Pieces, Body) {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let stream = futures_util::stream::poll_fn(move |context| receiver.poll_recv(context));
    let frames = futures_util::StreamExt::map(stream, |piece: Result<Bytes, BoxError>| {
        piece.map(Frame::data)
    });
    (sender, Body::wrap(StreamBody::new(frames)))
}
