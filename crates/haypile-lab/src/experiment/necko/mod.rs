//! `loop` and `sequence`: the Necko benchmarks (a browser's HTTP cache), on caches or over HTTP.
//!
//! The source loads resources over HTTP, and so does `--http` (`over_http`). Without it a load is a
//! lookup in the cache, and where that misses the value is made: copied from memory, as nothing has
//! to come over a network. So a row says what the cache costs, and not what it saves; the ratio of a
//! miss to a hit, which in the source is 13 for 50 bytes and 2.2 for 512 KiB, belongs to the network.
//!
//! | case | one run | caches |
//! |---|---|---|
//! | `call` | a lookup in an empty cache | all |
//! | `call + clear` | the same after clearing the cache | all |
//! | `miss (clear)` | clearing, a lookup, and a write of the value made | all but none |
//! | `miss (no-store)` | a lookup, and the value made, which is not written | all |
//! | `hit` | a lookup of an entry that is there | all but none |
//!
//! `loop` repeats each of them on one key. `sequence` does it once for each of 101 keys: first all
//! are loaded, then all are loaded again. (The source waits in between until everything is written; these
//! caches have nothing left to write when a `set` returns.)

pub mod looped;
mod options;
mod over_http;
mod printout;
mod section;
pub mod sequence;
mod served;
mod source;
mod table;

use haypile_measure::job::Settings;
use haypile_measure::measure::{Case, Places, Surroundings};
use haypile_measure::subject::SubjectSpec;
pub use options::{LoopOptions, SequenceOptions};
pub use source::{SourceMachine, SourceRow, source_rows};
pub use table::{Line, lines};

use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::experiment::on_caches::{Measuring, OverHttp, Setup};
use options::OriginDelay;
use over_http::Requests;
use served::{CaseOrigin, CountedPlaces};

/// The sizes of resources in the Necko benchmarks (of Firefox's network library), in bytes.
pub const SIZES: [u32; 4] = [50, 1_024, 51_200, 524_288];

/// The lookups in which a cache that holds nothing has no part.
const NOT_NONE: &[&str] = &["none"];

/// The capacity of a subject that states none: the disk cache of the source.
const CAPACITY_BYTES: u64 = 1 << 30;

/// Keys look like the addresses of a browser's resources.
fn key(number: u32) -> String {
    format!("http://localhost:4444/resource?q={number}")
}

/// Returns the measurements over HTTP: the cases of an origin whose requests are counted.
fn setup_over_http(
    measuring: &Measuring,
    subjects: Vec<SubjectSpec>,
    requests: Requests,
    cases: impl FnOnce(Requests, &Rc<CaseOrigin>) -> Vec<Case>,
) -> anyhow::Result<Setup> {
    let origin = Rc::new(CaseOrigin::default());
    let directory = measuring.run.absolute_directory()?;
    let places = Places::new(&directory);
    let places = places.with_context(|| format!("cannot write into {}", directory.display()))?;
    let subjects = OverHttp { http: true }.subjects(subjects)?;
    let setup = Setup::new(cases(requests, &origin), subjects);
    let surroundings = Some(Box::new(CountedPlaces::new(places, origin)) as Box<dyn Surroundings>);
    Ok(Setup { surroundings, keeps_runners: true, ..setup })
}

/// Returns small cases of the experiment `loop` that check an HTTP cache, and the HTTP origin that
/// verifies them by counting requests.
pub fn http_check(
    places: Places,
    runs: u32,
    value_bytes: u32,
    seed: u64,
) -> (Vec<Case>, Box<dyn Surroundings>) {
    let origin = Rc::new(CaseOrigin::default());
    let requests = Requests { runs: Some(runs), delay: Duration::ZERO, seed };
    let cases = over_http::loop_cases(&[value_bytes], requests, &origin);
    (cases, Box::new(CountedPlaces::new(places, origin)))
}

/// Checks that the options of an origin come with `--http`.
fn check_delay(http: OverHttp, delay: Option<OriginDelay>) -> anyhow::Result<()> {
    if delay.is_some() && !http.http {
        bail!("--origin-delay delays an HTTP origin, which only --http uses; add --http");
    }
    Ok(())
}

/// Returns the time that the origin takes to answer.
fn delay(delay: Option<OriginDelay>) -> Duration {
    delay.map_or(Duration::ZERO, |delay| delay.0)
}

fn settings(seed: u64, value_bytes: u32) -> Settings {
    let entry_bytes = u64::from(value_bytes) + key(0).len() as u64;
    Settings::new(seed, CAPACITY_BYTES, CAPACITY_BYTES / entry_bytes)
}
