//! `http:CACHE`: an HTTP cache on a cache of the engine, used by requests.
//!
//! Keys are URLs, and values are bodies. A write is the response of a server within the process,
//! which the HTTP cache stores. A read is a GET: it hits if the response comes from the cache. What
//! the cache lacks comes from the job's origin, which is timed with it; a job without an origin asks
//! with `only-if-cached`, so that a miss is the search in the cache alone.

use std::env;

use bytes::Bytes;
use haypile_http::{Body, BoxError, HttpCache, Origin, Status};
use haypile_measure::job::JobOrigin;
use haypile_measure::meter::Residency;
use haypile_measure::subject::{
    Cause, Kind, Room, StoreSubject, Subject, SubjectError, SubjectSpec, Subjects, Worker,
    complete, is_of_engine,
};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use tokio::runtime::{Builder, Runtime};

use haypile_pages::client::Http1Client;

pub(crate) const KIND: Kind = Kind {
    name: "http",
    usage: "http:CACHE",
    help: "an HTTP cache on one of these caches, used by requests; keys are URLs",
    language: "rust",
    version: env!("CARGO_PKG_VERSION"),
    hidden: true,
    shared: true,
    open: |spec, room, _| Ok(Box::new(HttpSubject::open(spec, room)?)),
    check,
};

/// The user whose browser this is. The source's caches are of browsers too.
const USER: &str = "user";
/// The lifetime of what is written.
const LIFETIME: HeaderValue = HeaderValue::from_static("max-age=86400");
const ONLY_IF_CACHED: HeaderValue = HeaderValue::from_static("only-if-cached");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// One request follows the other.
const CONNECTIONS: usize = 1;

/// Finds mistakes in the name, which ends with that of a cache of the engine.
fn check(spec: &SubjectSpec) -> Result<(), SubjectError> {
    let inner = inner(spec)?;
    if !is_of_engine(&inner) {
        let wrong = "behind http: stands a cache of the engine, as in http:memory".to_owned();
        return Err(SubjectError::Spec { subject: spec.redacted(), wrong });
    }
    Subjects::ours().check(&inner)
}

/// Returns the cache of the engine in the name of an HTTP subject.
fn inner(spec: &SubjectSpec) -> Result<SubjectSpec, SubjectError> {
    let wrong = |wrong| SubjectError::Spec { subject: spec.redacted(), wrong };
    spec.rest().parse().map_err(wrong)
}

struct HttpSubject {
    store: StoreSubject,
    origin: Option<JobOrigin>,
}

impl HttpSubject {
    fn open(spec: &SubjectSpec, room: &Room) -> Result<Self, SubjectError> {
        let inner = inner(spec)?;
        let directory = env::current_dir().map_err(SubjectError::open(spec))?;
        let url = complete(&inner, room, &directory)?;
        let store = StoreSubject::open(&url, room, &directory).map_err(SubjectError::open(spec))?;
        Ok(Self { store, origin: room.origin })
    }

    fn worker(&self) -> Result<HttpWorker, Cause> {
        let cache = HttpCache::builder(self.store.cache().clone());
        // The experiment, and not the layer, says which sizes are stored.
        let cache = cache.private(USER).largest_body(u64::MAX).build();
        let origin = match self.origin {
            None => WorkerOrigin::Nobody,
            Some(JobOrigin::Inner) => WorkerOrigin::Inner,
            Some(JobOrigin::Server(address)) => {
                WorkerOrigin::Server(Http1Client::new(address, CONNECTIONS))
            }
        };
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(HttpWorker { runtime, cache, origin })
    }
}

impl Subject for HttpSubject {
    fn version(&self) -> String {
        KIND.version.to_owned()
    }

    fn workers(
        &mut self,
        threads: usize,
    ) -> Result<Vec<Box<dyn Worker + Send + '_>>, SubjectError> {
        let worker = |_| {
            let worker = self.worker().map_err(SubjectError::open(KIND.name))?;
            Ok(Box::new(worker) as Box<dyn Worker + Send + '_>)
        };
        (0..threads).map(worker).collect()
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        self.store.fresh()
    }

    fn clear(&mut self) -> Result<(), Cause> {
        self.store.clear()
    }

    fn flush(&mut self) -> Result<(), Cause> {
        Ok(self.store.flush_last_level()?)
    }

    fn cool(&mut self) -> Result<Residency, Cause> {
        self.store.cool()
    }

    fn entries(&mut self) -> Option<u64> {
        self.store.entries()
    }

    fn counts(&mut self) -> Vec<(&'static str, u64)> {
        self.store.counts()
    }

    fn server_pid(&self) -> Option<u32> {
        self.store.server_pid()
    }

    fn check(&mut self) -> Result<(), Cause> {
        self.store.check()
    }
}

/// A user of the cache, on one thread.
struct HttpWorker {
    runtime: Runtime,
    cache: HttpCache,
    origin: WorkerOrigin,
}

/// The origin of a worker's reads, or the response that a write stores.
#[derive(Clone, Debug)]
enum WorkerOrigin {
    Nobody,
    Inner,
    Server(Http1Client),
    Written(Bytes),
}

impl Origin for WorkerOrigin {
    async fn send(self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let response = |cache_control, body: Bytes| {
            let mut response = Response::new(Body::full(body));
            response.headers_mut().insert(CACHE_CONTROL, cache_control);
            response
        };
        match self {
            Self::Nobody => Err("a request that allows only stored responses was sent on".into()),
            Self::Inner => Ok(response(NO_STORE, Bytes::new())),
            Self::Server(client) => client.send(request).await,
            Self::Written(value) => Ok(response(LIFETIME, value)),
        }
    }
}

impl HttpWorker {
    /// Has a request answered, reads the body into `buffer`, and returns the cache's status and that
    /// of the response.
    fn answer(
        &self,
        origin: WorkerOrigin,
        request: Request<Body>,
        buffer: &mut Vec<u8>,
    ) -> Result<(Status, StatusCode), Cause> {
        buffer.clear();
        self.runtime.block_on(async {
            let response = self.cache.answer(origin, request).await?;
            let status = response.extensions().get::<Status>().cloned().unwrap_or_default();
            let code = response.status();
            let mut body = response.into_body();
            while let Some(frame) = body.frame().await {
                if let Ok(piece) = frame?.into_data() {
                    buffer.extend_from_slice(&piece);
                }
            }
            Ok((status, code))
        })
    }

    fn store(&self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        let origin = WorkerOrigin::Written(Bytes::copy_from_slice(value));
        let mut request = request(key)?;
        // What is stored is replaced.
        request.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        self.answer(origin, request, &mut Vec::new())?;
        Ok(())
    }
}

/// Returns the request for a key that is a URL, or else the path of one.
fn request(key: &[u8]) -> Result<Request<Body>, Cause> {
    let key = str::from_utf8(key)?;
    let uri = match key.parse::<Uri>() {
        Ok(uri) if uri.scheme().is_some() => uri,
        _ => format!("http://localhost/{key}").parse()?,
    };
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = uri;
    Ok(request)
}

impl Worker for HttpWorker {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Cause> {
        let mut request = request(key)?;
        let is_alone = matches!(self.origin, WorkerOrigin::Nobody);
        if is_alone {
            request.headers_mut().insert(CACHE_CONTROL, ONLY_IF_CACHED);
        }
        let (status, code) = self.answer(self.origin.clone(), request, buffer)?;
        let is_miss = is_alone && code == StatusCode::GATEWAY_TIMEOUT;
        if !is_miss && code != StatusCode::OK {
            return Err(format!("the response to a request has the status {code}").into());
        }
        Ok(!is_miss && status.forwarded.is_none())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        self.store(key, value)
    }

    fn delete(&mut self, _key: &[u8]) -> Result<bool, Cause> {
        Err("an HTTP cache deletes nothing by a request".into())
    }
}
