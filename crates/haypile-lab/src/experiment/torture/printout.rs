//! The results of `torture` for people.

use haypile_measure::figure::HIT_RATIO;
use haypile_measure::result::Sample;
use haypile_measure::subject::SubjectSpec;
use haypile_measure::torture::TortureCase;
use haypile_number::{Quantity, grouped};

use crate::experiment::Printout;
use crate::experiment::on_caches::table::written;

const NOTHING: &str = "-";

/// Returns the table of the experiment `torture`, with a row for each cache and case (such as
/// killed writers), and errors below.
pub(super) fn printout(samples: &[Sample], unsupported: &[(SubjectSpec, TortureCase)]) -> Printout {
    let header = [
        "Case",
        "Subject",
        "Kills",
        "Acknowledged",
        "Compared",
        "Stale",
        "Lost",
        "Wrong",
        "Failed",
        "Busy",
        "Hits",
        "Write",
        "Read",
        "Open",
    ];
    let rows: Vec<_> = samples.iter().map(row).collect();
    let mut printout = Printout::default();
    printout.text("Times are the longest of a single operation\n").table(header, 2, 2, rows);
    for sample in samples {
        if let Some(error) = &sample.error {
            printout.text(format!("{} on {}: {error}\n", sample.subject.name, name(sample)));
        }
        let count = |name: &str| count(sample, name);
        if sample.error.is_none() && sample.case == TortureCase::Compute.name() {
            printout.text(format!(
                "{}: others took over {} computations, the slowest after {}\n",
                sample.subject.name,
                count("taken_over"),
                shown(count("longest_takeover_ns")),
            ));
        }
    }
    for sample in samples.iter().filter(|sample| is_invalidate(sample)) {
        printout.text(removals(sample));
    }
    for (subject, case) in unsupported {
        printout.text(format!("{subject} cannot do {case}\n"));
    }
    printout
}

/// Returns a count of a row; 0 where it has none of this name.
fn count(sample: &Sample, name: &str) -> u64 {
    sample.counts.get(name).copied().unwrap_or(0)
}

fn is_invalidate(sample: &Sample) -> bool {
    sample.case == TortureCase::Invalidate.name()
}

/// Returns what was removed, and what became of what others computed in the meantime.
fn removals(sample: &Sample) -> String {
    let lacking = match count(sample, "unsupported") {
        0 => String::new(),
        lacking => format!("; {} orders that it has no operation for", grouped(lacking)),
    };
    let count = |name: &str| grouped(count(sample, name));
    format!(
        "{} on {}: {} deletions, {} invalidated groups and {} clears; {} values computed, of which {} were refused{lacking}\n",
        sample.subject.name,
        name(sample),
        count("deleted"),
        count("invalidated"),
        count("cleared"),
        count("computed"),
        count("refused"),
    )
}

/// Returns the name of the case, and whether it is a control.
fn name(sample: &Sample) -> String {
    let is_control = sample.parameters.get("kills").is_some_and(|kills| kills == 0);
    if is_control { format!("{} without kills", sample.case) } else { sample.case.clone() }
}

fn row(sample: &Sample) -> Vec<String> {
    let count = |name: &str| count(sample, name);
    let whole = |name: &str| grouped(count(name));
    let time = |name: &str| {
        if count(name) == 0 { NOTHING.to_owned() } else { shown(count(name)) }
    };
    // Errors have no figure; a case that evicts is judged by its hits, whatever else failed.
    let found = Sample { error: None, ..sample.clone() };
    let hits = HIT_RATIO.of(&[&found].into_iter().collect());
    let hits = hits.filter(|_| sample.case == TortureCase::Evict.name());
    vec![
        name(sample),
        sample.subject.name.clone(),
        whole("kills"),
        whole("acknowledged"),
        whole("compared"),
        if is_invalidate(sample) { whole("stale") } else { NOTHING.to_owned() },
        whole("lost"),
        whole("wrong"),
        whole("failed"),
        whole("busy"),
        written(&HIT_RATIO, hits),
        time("longest_write_ns"),
        time("longest_read_ns"),
        time("longest_open_ns"),
    ]
}

fn shown(ns: u64) -> String {
    Quantity::Time.write(ns as f64)
}
