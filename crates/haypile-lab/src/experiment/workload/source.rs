//! The figures of the source: RelStorage's local client tests, on its author's machine in 2016.

use haypile_number::Quantity;

use super::Workload;
use crate::report::table::{NOTHING, Table};

/// Operations of three executions, by which the source's totals are divided: sets, and keys read of `read`.
const SETS: f64 = 436_440.0;
const READS: f64 = 480_000.0;

/// A version that the source measured.
struct Version {
    name: &'static str,
    language: &'static str,
    /// Seconds of three executions: `epop`, `mix`, `pop`, `read`.
    seconds: [f64; 4],
    /// The hit ratio of a workload such as the proof.
    proof: f64,
}

const WORKLOADS: [Workload; 4] = [Workload::Epop, Workload::Mix, Workload::Pop, Workload::Read];

const VERSIONS: [Version; 4] = [
    Version {
        name: "source: RelStorage, LRU",
        language: "Python 3.4",
        seconds: [2.900_205_8, 4.471_249_9, 3.749_171_0, 0.604_157_5],
        proof: 0.0,
    },
    Version {
        name: "source: RelStorage, SLRU",
        language: "Python 3.4",
        seconds: [2.419_962_2, 2.588_607_6, 2.174_462_1, 0.601_211_2],
        proof: 1.0,
    },
    Version {
        name: "source: RelStorage, SLRU",
        language: "PyPy",
        seconds: [0.688_376_0, 0.453_514_7, 0.397_752_5, 0.110_461_3],
        proof: 1.0,
    },
    Version {
        name: "source: RelStorage, SLRU",
        language: "Python 2.7",
        seconds: [2.291_914_9, 2.801_305_3, 1.978_716_7, 0.489_647_9],
        proof: 1.0,
    },
];

/// Returns the rows of RelStorage's published results: name, language, and a cell for each of these
/// workloads.
pub(super) fn rows(workloads: &[&str]) -> Vec<Vec<String>> {
    let row = |version: &Version| {
        let cell = |name: &&str| {
            if *name == Workload::Proof.name() {
                return Quantity::HitRatio.write(version.proof);
            }
            let at = WORKLOADS.iter().position(|workload| workload.name() == *name);
            at.map_or_else(|| NOTHING.to_owned(), |at| per_operation(version, at))
        };
        [version.name, version.language]
            .into_iter()
            .map(str::to_owned)
            .chain(workloads.iter().map(cell))
            .collect()
    };
    VERSIONS.iter().map(row).collect()
}

fn per_operation(version: &Version, at: usize) -> String {
    let operations = if WORKLOADS[at] == Workload::Read { READS } else { SETS };
    Quantity::Time.write(version.seconds[at] * 1e9 / operations)
}

/// Returns the table of RelStorage's published results, for the report.
pub(super) fn table() -> Table {
    let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name()).collect();
    let names = [&names[..], &[Workload::Proof.name()]].concat();
    let columns = [&["Source", "Language"][..], &names].concat();
    let caption = "The source, on its author’s machine in 2016: time per operation, and the hit ratio of the proof";
    Table::of_numbers(caption.to_owned(), &columns, rows(&names)).with_text_in(&[1])
}

#[cfg(test)]
mod tests {
    use haypile_number::NBSP;

    use super::*;

    #[test]
    fn times_are_those_that_the_source_states_over_its_operations() {
        let rows = rows(&["epop", "mix", "pop", "read", "proof", "other"]);
        let slru: Vec<String> = rows[1].iter().map(|cell| cell.replace(NBSP, " ")).collect();
        let expected = ["5.54 µs", "5.93 µs", "4.98 µs", "1.25 µs", "1.000", NOTHING];
        assert_eq!(slru[2..], expected);
    }
}
