//! Opening a cache as a part of what is timed.

use std::slice;
use std::thread;

use super::drive::{Blind, Lane, Tally};
use super::part::{Timed, only};
use crate::meter::Meter;
use crate::subject::{Subject, SubjectError};

/// The results of a job that times opening a cache and reading keys from it.
pub(super) struct OpenedSubject {
    pub(super) subject: Box<dyn Subject>,
    pub(super) timed: Timed,
    /// Results by name, as the runner prints them: the times until the cache was open and until the
    /// first hit.
    pub(super) lines: Vec<(String, String)>,
}

/// Opens a cache, reads each key until it is found, and measures how long that takes. A cache that
/// loads in the background is asked again for missing keys, until it reports that it has loaded
/// all.
pub(super) fn measure(
    meter: &dyn Meter,
    keys: &[u32],
    lane: &mut Lane<'_>,
    open: impl FnOnce() -> Result<Box<dyn Subject>, SubjectError>,
) -> Result<OpenedSubject, SubjectError> {
    let mut missing = keys.to_vec();
    let start = Clocks::read(meter);
    let mut subject = open()?;
    let opened = Clocks::read(meter);
    let mut first_hit = None;
    let mut tally = Tally::default();
    let mut passes = 0_u64;
    loop {
        let is_loading = subject.is_loading();
        let mut worker = only(&mut *subject)?;
        let asked = missing.len();
        missing.retain(|key| {
            let got = lane.drive(slice::from_ref(key), &mut *worker, &mut Blind);
            tally.add(got);
            if got.hits > 0 && first_hit.is_none() {
                first_hit = Some(Clocks::read(meter));
            }
            got.hits == 0
        });
        passes += 1;
        if missing.is_empty() || !is_loading {
            break;
        }
        if missing.len() == asked {
            // The loader may need this processor.
            thread::yield_now();
        }
    }
    let end = Clocks::read(meter);
    // Keys that were asked for again count once.
    tally.operations = keys.len() as u64;
    tally.misses = missing.len() as u64;
    let timed =
        Timed { tally, wall_ns: end.wall_ns - start.wall_ns, cpu_ns: end.cpu_ns - start.cpu_ns };
    let mut lines = vec![("passes".to_owned(), passes.to_string())];
    for (name, then) in [("open", Some(opened)), ("first_hit", first_hit)] {
        let Some(then) = then else { continue };
        lines.push((format!("{name}_wall_ns"), (then.wall_ns - start.wall_ns).to_string()));
        lines.push((format!("{name}_cpu_ns"), (then.cpu_ns - start.cpu_ns).to_string()));
    }
    Ok(OpenedSubject { subject, timed, lines })
}

#[derive(Clone, Copy)]
struct Clocks {
    wall_ns: u64,
    cpu_ns: u64,
}

impl Clocks {
    fn read(meter: &dyn Meter) -> Self {
        Self { wall_ns: meter.wall_ns(), cpu_ns: meter.cpu_ns() }
    }
}
