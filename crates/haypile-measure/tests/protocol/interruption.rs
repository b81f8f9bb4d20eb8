//! An interruption loses what is running and nothing else.

use std::io;

use haypile_measure::measure::measure;
use haypile_measure::result::ResultsError;

use crate::scripted::{RESULTS, StopAfter, contender, measured_until, plan, polite, run};

#[test]
fn what_is_finished_is_kept() {
    let mut plan = plan(vec![contender(&polite(RESULTS))]);
    plan.blocks = 1000;
    let outcome = measured_until(&plan, 2);
    assert_eq!((outcome.samples.len(), outcome.is_complete), (2, false));
}

#[test]
fn a_runner_that_hangs_does_not_hold_it_up() {
    for script in ["exec cat /dev/zero > /dev/null", "exec cat /dev/zero > /dev/null 2>&1"] {
        let outcome = measured_until(&plan(vec![contender(script)]), 0);
        assert_eq!((outcome.samples.len(), outcome.is_complete), (0, false));
    }
}

#[test]
fn a_sample_that_cannot_be_kept_ends_it() {
    let mut plan = plan(vec![contender(&polite(RESULTS))]);
    plan.blocks = 3;
    let full = || ResultsError::Io {
        path: "results.jsonl".into(),
        source: io::ErrorKind::StorageFull.into(),
    };
    let mut seen = 0;
    let mut keep = |_| {
        seen += 1;
        Err(full())
    };
    let error = measure(&plan, &run(), &StopAfter::samples(u64::MAX), &mut keep).unwrap_err();
    assert_eq!(error.to_string(), full().to_string());
    assert_eq!(seen, 1);
}
