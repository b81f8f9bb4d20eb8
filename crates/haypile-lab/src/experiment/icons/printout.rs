//! The results for people, and their figures.

use haypile_measure::parameters;
use haypile_measure::result::{Sample, Samples};
use haypile_measure::statistics::Summary;

use crate::experiment::Printout;

use super::game::{self, game_table, is_game};
use super::way::Way;

const NOTHING: &str = "-";

/// A way in a case.
pub(super) struct WayFigures {
    pub(super) name: &'static str,
    pub(super) wall_ms: Option<Summary>,
    pub(super) again_ms: Option<Summary>,
    pub(super) cpu_ms: Option<Summary>,
    pub(super) memory_mib: Option<Summary>,
    pub(super) stats: Option<Summary>,
    pub(super) negative: Option<Summary>,
    pub(super) error: Option<String>,
}

/// A case: a theme, a number of icons, of processes, warm or cold.
pub(super) struct IconCase {
    pub(super) title: String,
    pub(super) ways: Vec<WayFigures>,
}

/// Returns the cases of samples, in their order.
pub(super) fn cases(samples: &Samples<'_>) -> Vec<IconCase> {
    let case = |samples: &Samples<'_>| {
        let of = |way: &Way| {
            let own: Samples<'_> =
                samples.iter().copied().filter(|it| it.subject.name == way.name()).collect();
            let error = own.iter().find_map(|sample| sample.error.clone());
            (!own.is_empty()).then(|| figures(way.name(), &own, error))
        };
        let mut title = parameters::describe(&samples[0].parameters);
        let resident = samples.iter().filter_map(|sample| share(sample)).reduce(f64::max);
        if let Some(share) = resident {
            let word = if share < 0.05 { "cold" } else { "not cold" };
            title = format!("{title} ({word}: at most {:.1} % in memory)", share * 100.0);
        }
        IconCase { title, ways: Way::ALL.iter().filter_map(of).collect() }
    };
    samples.cases().iter().map(case).collect()
}

fn share(sample: &Sample) -> Option<f64> {
    let of = |name: &str| sample.counts.get(name).map(|bytes| *bytes as f64);
    Some(of("cold_resident_bytes")? / of("cold_file_bytes")?.max(1.0))
}

fn figures(name: &'static str, own: &Samples<'_>, error: Option<String>) -> WayFigures {
    let of = |figure: &dyn Fn(&Sample) -> Option<f64>| {
        Summary::of(&own.values(|it| if it.error.is_none() { figure(it) } else { None }).to_vec())
    };
    let ms = |ns: u64| ns as f64 / 1e6;
    WayFigures {
        name,
        wall_ms: of(&|it| Some(ms(it.wall_ns))),
        again_ms: of(&|it| it.counts.get("again_ns").filter(|ns| **ns > 0).map(|ns| ms(*ns))),
        cpu_ms: of(&|it| Some(ms(it.cpu_ns))),
        memory_mib: of(&|it| it.memory_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20))),
        stats: of(&|it| it.counts.get("stat_calls").map(|calls| *calls as f64)),
        negative: of(&|it| Some(it.misses as f64)),
        error,
    }
}

/// The names of the columns.
pub(super) const COLUMNS: [&str; 7] =
    ["Way", "all icons ms", "again ms", "CPU ms", "memory MiB", "stat calls", "negative"];

impl WayFigures {
    /// The cells of its row.
    pub(super) fn row(&self) -> Vec<String> {
        let cell = |summary: &Option<Summary>, decimals: usize| {
            summary.as_ref().map_or(NOTHING.to_owned(), |it| format!("{:.decimals$}", it.median))
        };
        vec![
            self.name.to_owned(),
            cell(&self.wall_ms, 2),
            cell(&self.again_ms, 2),
            cell(&self.cpu_ms, 2),
            cell(&self.memory_mib, 2),
            cell(&self.stats, 0),
            cell(&self.negative, 0),
        ]
    }
}

/// Returns a table for each case.
pub(super) fn printout(samples: &[Sample]) -> Printout {
    let mut printout = Printout::default();
    let of_game = game_table(&samples.iter().collect());
    if let Some(table) = &of_game {
        printout.gap().text("A game of 100 drawings and a background\n");
        printout.table(game::COLUMNS, 1, 1, table.rows.clone());
        for error in &table.errors {
            printout.text(format!("error: {error}\n"));
        }
        printout.gap().text(
            "Medians. The first start fills the cache; a second process starts again, and changes the size of \
             its window to a new one and back.\n",
        );
    }
    let icons: Samples<'_> = samples.iter().filter(|sample| !is_game(sample)).collect();
    if icons.is_empty() {
        return printout;
    }
    for case in cases(&icons) {
        printout.gap().text(format!("{}\n", case.title));
        let good = case.ways.iter().filter(|way| way.wall_ms.is_some());
        printout.table(COLUMNS, 1, 1, good.map(WayFigures::row).collect());
        for way in &case.ways {
            if let Some(error) = &way.error {
                printout.text(format!("error: {}: {error}\n", way.name));
            }
        }
    }
    printout.gap().text(
        "Medians. All icons: from opening the cache to the last icon, of the slowest process; again: once \
         more, with the cache open. Memory: proportional set sizes that the icons add, of all processes. \
         Calls and negative answers of all processes.\n",
    );
    printout
}
