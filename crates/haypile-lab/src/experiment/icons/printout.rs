//! The results of `icons` for people, and their figures.

use haypile_measure::figure::{self, Estimate, Figure};
use haypile_measure::result::{Sample, Samples};
use haypile_plot::drawing::text::printable;

use crate::experiment::Printout;
use crate::experiment::on_caches::table::written;
use crate::report::case::in_words;
use crate::report::table::Table;

use super::game::{game_table, is_game};
use super::way::Way;

/// The measured figures (wall time, processor time, memory) of one way of loading icons (such as
/// from a cache) in one case of the experiment `icons`.
pub(super) struct WayFigures {
    pub(super) name: &'static str,
    /// The figures of the columns, in their order.
    figures: [Option<Estimate>; FIGURES.len()],
    pub(super) error: Option<String>,
}

/// A case of the experiment `icons`: a theme, a number of icons and of processes, with files in
/// memory or not.
pub(super) struct IconCase {
    pub(super) title: String,
    pub(super) ways: Vec<WayFigures>,
}

/// Groups the samples of the experiment `icons` by case, in the order of the samples.
pub(super) fn cases(samples: &Samples<'_>) -> Vec<IconCase> {
    let case = |samples: &Samples<'_>| {
        let of = |way: &Way| {
            let own: Samples<'_> =
                samples.iter().copied().filter(|it| it.subject.name == way.name()).collect();
            let error = own.iter().find_map(|sample| sample.error.clone());
            let figures = FIGURES.map(|figure| figure.of(&own));
            (!own.is_empty()).then(|| WayFigures { name: way.name(), figures, error })
        };
        let parameters = &samples[0].parameters;
        let resident = samples.iter().filter_map(|sample| share(sample)).reduce(f64::max);
        let all = ["icons", "size_px", "theme", "processes", "cache"].map(str::to_owned);
        let cold = match resident {
            None => in_words(parameters, &["page_cache".to_owned()]),
            Some(share) => {
                let word = if share < 0.05 { "cold" } else { "not cold" };
                format!("{word} (at most {:.1} % in memory)", share * 100.0)
            }
        };
        let title = format!("{}, {cold}", in_words(parameters, &all));
        IconCase { title, ways: Way::ALL.iter().filter_map(of).collect() }
    };
    samples.cases().iter().map(case).collect()
}

fn share(sample: &Sample) -> Option<f64> {
    let of = |name: &str| sample.counts.get(name).map(|bytes| *bytes as f64);
    Some(of("cold_resident_bytes")? / of("cold_file_bytes")?.max(1.0))
}

/// The figures of a way, the time until all icons are there first.
const FIGURES: [&Figure; 6] = [
    &figure::PART_WALL,
    &figure::AGAIN,
    &figure::PART_CPU,
    &figure::MEMORY,
    &figure::STAT_CALLS,
    &figure::MISSES,
];

/// The names of the columns.
const COLUMNS: [&str; 7] = ["Way", "All icons", "Again", "CPU", "Memory", "Stat calls", "Negative"];

impl WayFigures {
    /// Returns the wall time that this way of loading icons takes until all icons of the case are
    /// loaded.
    pub(super) fn wall(&self) -> Option<Estimate> {
        self.figures[0]
    }

    /// The cells of its row.
    fn row(&self) -> Vec<String> {
        let cells = FIGURES.iter().zip(self.figures).map(|(figure, value)| written(figure, value));
        [self.name.to_owned()].into_iter().chain(cells).collect()
    }
}

impl IconCase {
    /// Returns the table of a case of the experiment `icons`, with a row for each way of loading
    /// icons.
    pub(super) fn table(&self) -> Table {
        let good = self.ways.iter().filter(|way| way.wall().is_some());
        let rows = good.map(WayFigures::row).collect();
        Table::of_numbers(printable(&self.title), &COLUMNS, rows)
    }
}

/// Returns a table for each case of the experiment `icons`, with a row for each way of loading
/// icons.
pub(super) fn printout(samples: &[Sample]) -> Printout {
    let mut printout = Printout::default();
    let of_game = game_table(&samples.iter().collect());
    if let Some(table) = &of_game {
        printout.show(&table.table());
        for error in &table.errors {
            printout.text(format!("error: {error}\n"));
        }
        printout.gap().text(
            "The first start fills the cache; a second process starts again, and changes the size of \
             its window to a new one and back.\n",
        );
    }
    let icons: Samples<'_> = samples.iter().filter(|sample| !is_game(sample)).collect();
    if icons.is_empty() {
        return printout;
    }
    for case in cases(&icons) {
        printout.show(&case.table());
        for way in &case.ways {
            if let Some(error) = &way.error {
                printout.text(format!("error: {}: {error}\n", way.name));
            }
        }
    }
    printout.gap().text(
        "All icons: from opening the cache to the last icon, of the slowest process; again: once \
         more, with the cache open. Memory: proportional set sizes that the icons add, of all processes, \
         without the program's code. Calls and negative answers of all processes.\n",
    );
    printout
}
