//! An interruption loses what is running and nothing else.

use haypile_lab::measure::measure;
use haypile_lab::result::{ResultsWriter, read};
use tempfile::TempDir;

use crate::scripted::{RESULTS, Seen, contender, plan, polite, run};

#[test]
fn what_is_finished_is_kept() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("results.jsonl");
    let mut writer = ResultsWriter::append(&path).unwrap();
    let mut plan = plan(vec![contender(&polite(RESULTS))]);
    plan.blocks = 1000;
    let mut seen = Seen { samples: 0, stop_after: 2 };
    let outcome = measure(&plan, &run(), Some(&mut writer), &mut seen).unwrap();
    assert!(!outcome.is_complete);
    assert_eq!(outcome.samples.len(), 2);
    assert_eq!(read(&path).unwrap().samples, outcome.samples);
}

#[test]
fn a_runner_that_hangs_does_not_hold_it_up() {
    for script in ["exec cat /dev/zero > /dev/null", "exec cat /dev/zero > /dev/null 2>&1"] {
        let plan = plan(vec![contender(script)]);
        let mut seen = Seen { samples: 0, stop_after: 0 };
        let outcome = measure(&plan, &run(), None, &mut seen).unwrap();
        assert_eq!((outcome.samples.len(), outcome.is_complete), (0, false));
    }
}
