//! The results of `startup` for people.

use haypile_measure::result::Sample;
use haypile_number::Quantity;

use super::cold_start::{self, ColdVerdict};
use super::condition::Condition;
use super::difference::{StartCase, cases};
use super::row::is_watched;
use super::{bench, explain, section, source, tables};
use crate::experiment::Printout;
use crate::report::table::Table;

/// The shortest start, with what is around it, of which the system's ticks of about 10 ms tell the share
/// of other programs.
const MIN_WINDOW_NS: u64 = 200_000_000;

/// Returns the tables of the measured starts of each command, warm and cold; if `explains`, also
/// their differences in system calls, files and programs.
pub(super) fn printout(samples: &[Sample], explains: bool) -> Printout {
    let mut printout = Printout::default();
    let all = cases(samples);
    for case in &all {
        printout.gap().append(of_case(case, &all));
        if explains
            && !cold(case)
            && let Some(table) = explain::table(case)
        {
            printout.text("\n").show(&table);
            printout.text("\n");
            for text in explain::only(case) {
                printout.text(format!("{text}\n"));
            }
        }
    }
    // A command that failed before it was measured has nothing else.
    let watched = samples.iter().filter(|sample| is_watched(sample));
    for sample in watched.filter(|sample| sample.error.is_some()) {
        let error = sample.error.as_deref().unwrap_or_default();
        printout.text(format!("error: {}, {}: {error}\n", sample.case, sample.subject.name));
    }
    printout
}

/// Whether the starts of a case are cold ones.
fn cold(case: &StartCase<'_>) -> bool {
    case.resident_share().is_some()
}

/// Returns the tables of one command's starts: its conditions, their differences, and the delay of
/// cold starts.
pub(super) fn case_tables(case: &StartCase<'_>, all: &[StartCase<'_>]) -> Vec<Table> {
    let warm = all.iter().find(|it| it.name == case.name && !cold(it)).filter(|_| cold(case));
    let costs = warm.and_then(|warm| cold_start::table(case, warm));
    [tables::conditions(case), tables::differences(case), costs].into_iter().flatten().collect()
}

fn of_case(case: &StartCase<'_>, all: &[StartCase<'_>]) -> Printout {
    let mut printout = Printout::default();
    for table in case_tables(case, all) {
        printout.show(&table);
    }
    if printout.blocks().is_empty() {
        printout.text(format!("{}, ready: {}\n", tables::title(case), case.ready));
    }
    printout.text("\n");
    for note in notes(case).into_iter().chain(case.notes()) {
        printout.text(format!("{note}\n"));
    }
    for (condition, error, times) in case.errors() {
        let times = if times == 1 { String::new() } else { format!(" ({times} times)") };
        printout.text(format!("error: {condition}: {error}{times}\n"));
    }
    let answer = if case.pair.is_some() {
        bench::sentence(case)
    } else {
        section::answer(case).map(|answer| format!("{answer}."))
    };
    if let Some(answer) = answer {
        printout.text(format!("\n{answer}\n"));
    }
    printout
}

/// Returns notes for a reader of the times of one command's starts, such as that the use of the
/// cache was not verified.
pub(super) fn notes(case: &StartCase<'_>) -> Vec<String> {
    let mut notes: Vec<String> = source::note(case.name).into_iter().collect();
    let reference = case.samples(case.reference());
    let starts = reference.iter().filter(|sample| sample.error.is_none()).count();
    if starts > 0 && case.pair.is_none() && case.count(Condition::With, "use_verified") == 0 {
        notes.push("The use of the cache was not verified (--verify, --cache).".to_owned());
    }
    let any = |name: &str| case.conditions().any(|condition| case.count(condition, name) > 0);
    if any("cpu_incomplete") {
        notes.push(
            "CPU incomplete: a process ignored the end of its children, and no control group counts them."
                .to_owned(),
        );
    }
    if any("cpu_by_clocks") {
        notes.push(
            "CPU of living processes by their clocks; of their ended children in ticks of 10 ms."
                .to_owned(),
        );
    }
    if starts > 0 {
        let memory = if any("memory_by_group") {
            "Memory: the control group's peak, with pages of files that it was the first to read."
        } else {
            "Memory: the peak of the largest process."
        };
        notes.push(memory.to_owned());
    }
    for condition in case.conditions() {
        let codes = case.samples(condition).iter().filter_map(|it| it.counts.get("exit_code"));
        let failed = codes.filter(|code| **code != 0).count();
        if failed > 0 {
            notes.push(format!(
                "{condition} ended with another exit status than 0 in {failed} starts, which --ignore-failure accepts."
            ));
        }
    }
    if any("left_running") {
        notes.push("Processes went on after the command had exited, and were ended.".to_owned());
    }
    if let Some(verdict) = ColdVerdict::of(case) {
        notes.push(verdict.sentence());
    } else {
        notes.extend(explain::sentences(case));
    }
    notes.extend(explain::own_cache(case));
    if let Some(within_ns) = median_of_count(case, "ready_within_ns") {
        notes.push(format!(
            "Ready is known to within {}: a command that is run again and again tells it.",
            Quantity::Time.write(within_ns)
        ));
    }
    if let Some(share) = other_work(case).filter(|share| *share > 0.1) {
        notes.push(format!(
            "Other programs used {:.0} % of a processor while it was measured: measure on a quiet machine.",
            share * 100.0
        ));
    }
    notes
}

/// Returns the median of a count over all starts of a case that have it.
fn median_of_count(case: &StartCase<'_>, name: &str) -> Option<f64> {
    let all = case.conditions().flat_map(|condition| case.samples(condition).iter());
    let mut counts: Vec<u64> = all.filter_map(|sample| sample.counts.get(name).copied()).collect();
    counts.sort_unstable();
    counts.get(counts.len() / 2).map(|count| *count as f64)
}

/// The processor time of everything but the command, as a share of the time of its starts; `None` where
/// that is too short to be told in ticks.
fn other_work(case: &StartCase<'_>) -> Option<f64> {
    let all = || case.conditions().flat_map(|condition| case.samples(condition).iter());
    let good = || all().filter(|sample| sample.error.is_none());
    let count = |name: &str| -> u64 { good().filter_map(|sample| sample.counts.get(name)).sum() };
    let (busy_ns, window_ns) = (count("machine_busy_ns"), count("machine_window_ns"));
    let starts = good().count() as u64;
    if window_ns < MIN_WINDOW_NS.saturating_mul(starts.max(1)) {
        return None;
    }
    // The command that asks whether it is ready is ours.
    let cpu_ns = good().map(|sample| sample.cpu_ns).sum::<u64>() + count("probes_cpu_ns");
    // The supervisor's own start and end take a few milliseconds each.
    let own_ns = 10_000_000 * starts;
    let other_ns = busy_ns.saturating_sub(cpu_ns).saturating_sub(own_ns);
    Some(other_ns as f64 / window_ns as f64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn other_programs_are_named_where_ticks_can_tell_of_them() {
        let note = |window_ns: u64, busy_ns: u64| {
            let sample: Sample = serde_json::from_value(json!({
                "schema": 1, "run": "r", "experiment": "startup", "case": "x", "seed": 1,
                "position": 0, "parameters": { "page_cache": "warm", "ready": "exit" },
                "subject": { "name": "with", "program": "haypile", "language": "", "version": "" },
                "block": 0, "operations": 1, "wall_ns": 1_000_000, "cpu_ns": 0, "hits": 0,
                "misses": 0,
                "counts": { "machine_busy_ns": busy_ns, "machine_window_ns": window_ns },
            }))
            .unwrap();
            let samples = [sample];
            let notes = notes(&cases(&samples)[0]);
            notes.into_iter().find(|note| note.starts_with("Other programs"))
        };
        assert_eq!(note(2_000_000, 4_000_000), None, "shorter than a tick");
        assert_eq!(note(0, 4_000_000_000), None, "rows of earlier versions");
        let half = note(400_000_000, 210_000_000).unwrap();
        assert!(half.contains("50 % of a processor"), "{half}");
    }
}
