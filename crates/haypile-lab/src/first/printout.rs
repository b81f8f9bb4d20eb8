//! The results of a first look, for people.

use haypile_measure::compare::Difference;
use haypile_measure::figure::{self, CaseNotes, WALL, count};
use haypile_measure::result::{Machine, Sample, Samples, disturbance};
use haypile_number::Quantity;

use super::Step;
use crate::experiment::Printout;
use crate::report::table::NOTHING;

/// The cases of the table, in words.
const ROWS: [(&str, &str); 4] = [
    ("get-hit", "Hit"),
    ("get-miss", "Miss"),
    ("overwrite", "Write of a key that is there"),
    ("set-evict", "Write that evicts"),
];

/// Returns a line that describes the machine, and warns if its state disturbs measurements.
pub fn machine(machine: &Machine) -> String {
    let cpu = if machine.cpu.is_empty() { "unknown processor" } else { &machine.cpu };
    let kind = if machine.virtual_machine { ", a virtual machine" } else { "" };
    let mut text = format!(
        "{cpu}, {} processors, {}{kind}, load {:.2}\n",
        machine.cores, machine.kernel, machine.load_1m
    );
    for warning in machine.warnings().into_iter().chain(machine.load_warning()) {
        text = format!("{text}warning: {warning}\n");
    }
    text
}

/// Returns the table of the times of cache operations: a row for each kind of operation, and a
/// column for each cache.
pub fn table(samples: &[Sample], cores: u64) -> Printout {
    let mut printout = Printout::default();
    let all: Samples<'_> =
        samples.iter().filter(|sample| ROWS.iter().any(|(case, _)| *case == sample.case)).collect();
    // What stands in the way comes first.
    if let Some(warning) = disturbance(all.iter().copied(), cores) {
        printout.text(format!("warning: {warning}\n"));
    }
    let subjects = all.by_subject();
    if subjects.is_empty() {
        return printout;
    }
    let cell = |case: &str, samples: &Samples<'_>| {
        let own = samples.iter().copied().filter(|sample| sample.case == case).collect();
        WALL.of(&own).map_or_else(|| NOTHING.to_owned(), |cost| WALL.write_within(&cost))
    };
    let row = |(case, name): &(&str, &str)| {
        let cells = subjects.iter().map(|(_, samples)| cell(case, samples));
        [(*name).to_owned()].into_iter().chain(cells).collect()
    };
    let names = subjects.iter().map(|(subject, _)| subject.name.to_owned());
    let header = ["Operation".to_owned()].into_iter().chain(names);
    printout.text(
        "Wall time of an operation by one thread, and its 95 % interval: 10,000 keys (of caches of others 3,000) of 36 bytes, \
         values of 160\n",
    );
    printout.table(header, 1, 1, ROWS.iter().map(row).collect());
    for case in all.cases() {
        let notes = CaseNotes::of(&case);
        for (subject, own) in case.by_subject() {
            for note in notes.on(&own) {
                printout.text(format!("{}, {}: {note}\n", case[0].case, subject.name));
            }
        }
    }
    printout.errors(samples);
    printout
}

/// Returns a sentence with the result of a step of the overview (such as opening a file again);
/// `None` for a step that is part of the table, or has no results.
pub fn line(step: Step, samples: &[Sample]) -> Option<String> {
    let all: Samples<'_> = samples.iter().collect();
    let text = match step {
        Step::Caches | Step::Others => return None,
        Step::Threads => threads(&all)?,
        Step::Restart => restart(&all)?,
        Step::Kills => kills(&all)?,
    };
    Some(format!("{text}\n"))
}

fn threads(all: &Samples<'_>) -> Option<String> {
    let of = |threads: u64| -> Samples<'_> {
        let has = |sample: &&Sample| {
            let number = sample.parameters.get("threads").and_then(serde_json::Value::as_u64);
            sample.experiment == "micro"
                && sample.case == "get-hit"
                && number == Some(threads)
                && sample.subject.name == "memory"
        };
        all.iter().copied().filter(has).collect()
    };
    // The time of one over that of two is the rate of two over that of one.
    let (one, two) = (WALL.values(&of(1)), WALL.values(&of(2)));
    let found = Difference::of(&two, &one).ok()?.centre;
    let ends = found.interval().map(figure::write_factors);
    let ends = ends.unwrap_or_else(|| "no interval".to_owned());
    let times = Quantity::Factor.write(found.ratio());
    Some(format!("Threads: two read {times} times ({ends}) as often from memory as one."))
}

fn restart(all: &Samples<'_>) -> Option<String> {
    let opened: Samples<'_> = all.iter().copied().filter(|sample| sample.case == "open").collect();
    let hit = figure::FIRST_HIT.of(&opened)?;
    let found = figure::KEYS_FOUND.of(&opened)?;
    let file = figure::FILE.of(&opened).or_else(|| figure::DISK.of(&opened));
    let size = file.map_or_else(String::new, |file| format!(" of {}", figure::FILE.write(&file)));
    Some(format!(
        "Restart: a new process opens a file{size} and has its first hit after {}; {} keys are there.",
        figure::FIRST_HIT.write_within(&hit),
        figure::KEYS_FOUND.write(&found)
    ))
}

fn kills(all: &Samples<'_>) -> Option<String> {
    let own: Samples<'_> = all
        .iter()
        .copied()
        .filter(|sample| sample.experiment == "torture" && sample.counts.get("kills") != Some(&0))
        .collect();
    let acknowledged = own.iter().map(|sample| sample.operations).sum::<u64>();
    let sum = |name: &str| Some(Quantity::Number.write(count(&own, name)? as f64));
    Some(format!(
        "Kills: {} processes were killed while they wrote to a file: of {} acknowledged writes {} are lost, and {} \
         values are wrong.",
        sum("kills")?,
        Quantity::Number.write(acknowledged as f64),
        sum("lost")?,
        sum("wrong")?
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample(experiment: &str, case: &str, subject: &str, block: u64, wall_ns: u64) -> Sample {
        serde_json::from_value(json!({
            "schema": 1, "run": "r", "experiment": experiment, "case": case, "seed": 1,
            "position": 0, "parameters": { "threads": 1 }, "block": block, "operations": 10,
            "subject": { "name": subject, "program": "haypile", "language": "", "version": "" },
            "wall_ns": wall_ns, "cpu_ns": wall_ns, "hits": 10, "misses": 0,
        }))
        .unwrap()
    }

    #[test]
    fn a_cell_has_the_cost_with_its_interval_in_one_unit() {
        let costs = [("memory", 970), ("memory", 1010), ("memory", 990), ("file", 1_000_000)];
        let row = |(block, &(subject, wall_ns)): (u64, &(&str, u64))| {
            sample("micro", "get-hit", subject, block, wall_ns)
        };
        let samples: Vec<Sample> = (0..).zip(&costs).map(row).collect();
        let printed = format!("{:?}", table(&samples, 2));
        assert!(printed.contains("\"99.0 ns (94.1 to 104)\", \"100 µs\""), "{printed}");
        assert!(printed.contains("\"Miss\", \"-\", \"-\""), "{printed}");
    }

    #[test]
    fn threads_and_kills_are_sentences() {
        let mut samples = Vec::new();
        for block in 0..4 {
            samples.push(sample("micro", "get-hit", "memory", block, 1000 + block));
            let mut two = sample("micro", "get-hit", "memory", block, 500);
            two.parameters.insert("threads".to_owned(), json!(2));
            samples.push(two);
        }
        let text = line(Step::Threads, &samples).unwrap();
        assert!(text.starts_with("Threads: two read 2.00 times (2.00 to 2.01)"), "{text}");
        assert_eq!((line(Step::Kills, &samples), line(Step::Restart, &samples)), (None, None));
        let mut killed = sample("torture", "keep", "file", 0, 1);
        killed.counts = [("kills", 20), ("lost", 0), ("wrong", 1)]
            .map(|(name, count)| (name.to_owned(), count))
            .into_iter()
            .collect();
        let text = line(Step::Kills, &[killed]).unwrap();
        assert!(text.contains("20 processes") && text.contains("of 10 acknowledged"), "{text}");
        assert!(text.ends_with("and 1 values are wrong.\n"), "{text}");
    }
}
