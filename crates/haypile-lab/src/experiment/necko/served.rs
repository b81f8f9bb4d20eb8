//! The origin of requests over HTTP, which has the responses of one case, and counts.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use haypile_origin::server::{BodySource, Reply, Script, ScriptedOrigin};
use http::{Response, StatusCode, Uri, header};

use haypile_measure::job::{Job, JobError, JobOrigin};
use haypile_measure::measure::{Case, Contender, Places, Surroundings};
use tempfile::TempDir;

/// The path of the response to every request, where a case has one URL for each run.
const ANY: &str = "any";

/// The HTTP origin of the case that is being measured, which counts the requests of each sample. It
/// counts them in this process, so that results do not depend on what runners report.
#[derive(Default)]
pub(super) struct CaseOrigin {
    server: RefCell<Option<ScriptedOrigin>>,
    requests: Cell<u64>,
    body_bytes: Cell<u64>,
    /// The number of requests of a sample that is right by definition; `None` where that depends on
    /// the room in the cache.
    expected: Cell<Option<u64>>,
}

/// The responses that the HTTP origin of a case serves: the value of each key under its path, or
/// one body under every path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// The value of each key, under the key.
    Values { cache_control: &'static str },
    /// One body of this length under every path.
    Any { cache_control: &'static str, bytes: u64 },
}

impl CaseOrigin {
    /// Starts an HTTP origin with the responses of a case, in place of the previous one, and
    /// returns its address for the job.
    pub(super) fn start(&self, script: Script, requests: Option<u64>) -> io::Result<JobOrigin> {
        let server = ScriptedOrigin::start_in_thread(script)?;
        let address = server.address();
        *self.server.borrow_mut() = Some(server);
        self.expected.set(requests);
        self.requests.set(0);
        self.body_bytes.set(0);
        Ok(JobOrigin::Server(address))
    }

    /// Stops the HTTP origin, because the next case needs none.
    pub(super) fn end(&self) {
        *self.server.borrow_mut() = None;
    }

    /// Returns the requests and the bytes of bodies since the last call.
    fn take(&self) -> Option<(u64, u64)> {
        let server = self.server.borrow();
        let server = server.as_ref()?;
        let (requests, bytes) = (server.requests(), server.body_bytes_sent());
        let before = (self.requests.replace(requests), self.body_bytes.replace(bytes));
        Some((requests - before.0, bytes - before.1))
    }
}

impl Served {
    /// Returns the script of an HTTP origin that serves these responses to the job in this
    /// directory.
    pub(super) fn script(self, directory: &Path, delay: Duration) -> Result<Script, JobError> {
        let reply = |cache_control: &str, body: BodySource| {
            let response = Response::builder()
                .header(header::CACHE_CONTROL, cache_control)
                .header(header::CONTENT_TYPE, "application/octet-stream")
                .header(header::ETAG, "\"1\"")
                .body(body)
                .expect("the fields are valid");
            // An entry of which a part is evicted while it is read asks for the rest.
            Reply::from(response).answering_ranges().delay(delay)
        };
        match self {
            Self::Any { cache_control, bytes } => {
                let body = BodySource::generated(bytes, ANY.len() as u64);
                Ok(Script::new([reply(cache_control, body)]))
            }
            Self::Values { cache_control } => {
                let job = Job::read(directory)?;
                let mut pool = job.pool().to_vec();
                let mut script = Script::new([Reply::empty(StatusCode::NOT_FOUND)]);
                for number in 0..job.keys() {
                    let entry = job.entry(number);
                    let body = entry.value(number, &mut pool, <[u8]>::to_vec);
                    let reply = reply(cache_control, body.into());
                    script = script.on(path(job.key(entry)), [reply]);
                }
                Ok(script)
            }
        }
    }
}

/// Returns the path and query of a key, which is a URL of ours.
fn path(key: &[u8]) -> String {
    let uri = str::from_utf8(key).ok().and_then(|key| key.parse::<Uri>().ok());
    let uri = uri.expect("the keys of these jobs are URLs");
    uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string)
}

/// Working directories for measurements whose requests an HTTP origin counts.
pub(super) struct CountedPlaces {
    places: Places,
    origin: Rc<CaseOrigin>,
}

impl CountedPlaces {
    pub(super) fn new(places: Places, origin: Rc<CaseOrigin>) -> Self {
        Self { places, origin }
    }
}

impl fmt::Debug for CountedPlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountedPlaces").field("places", &self.places).finish_non_exhaustive()
    }
}

impl Surroundings for CountedPlaces {
    fn before(&self, case: &Case, contender: &Contender) -> io::Result<PathBuf> {
        // A runner that was killed may have asked since the last sample ended.
        let _ = self.origin.take();
        self.places.before(case, contender)
    }

    fn after(&self, case: &Case, contender: &Contender) -> Result<Vec<(String, u64)>, String> {
        let mut counts = self.places.after(case, contender)?;
        let Some((requests, bytes)) = self.origin.take() else { return Ok(counts) };
        if let Some(expected) = self.origin.expected.get().filter(|expected| *expected != requests)
        {
            return Err(format!(
                "the origin counted {requests} requests, and {expected} are right by definition"
            ));
        }
        counts.extend([
            ("origin_requests".to_owned(), requests),
            ("origin_body_bytes".to_owned(), bytes),
        ]);
        Ok(counts)
    }

    fn kept(&self) -> io::Result<TempDir> {
        self.places.kept()
    }
}
