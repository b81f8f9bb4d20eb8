//! The times of a game, for people.

use haypile_measure::figure::{Estimate, PART_WALL};
use haypile_measure::result::{Sample, Samples};
use haypile_number::Quantity;

use crate::experiment::on_caches::table::written;
use crate::report::table::Table;

use super::{CACHED, DRAWN, GAME, STEPS};

/// The names of the columns.
const COLUMNS: [&str; 4] = ["Step", "Drawn", "With cache", "Times"];

/// The rows of the table on drawing a game, and the errors of its samples.
#[derive(Debug, Default)]
pub(in super::super) struct GameTable {
    rows: Vec<Vec<String>>,
    pub(in super::super) errors: Vec<String>,
}

impl GameTable {
    pub(in super::super) fn table(&self) -> Table {
        let caption = "A game of 100 drawings and a background".to_owned();
        Table::of_numbers(caption, &COLUMNS, self.rows.clone())
    }
}

/// Whether a sample is about drawing a game instead of loading icons.
pub(in super::super) fn is_game(sample: &Sample) -> bool {
    sample.parameters.get("set").is_some_and(|set| set == GAME)
}

/// The wall time of a step.
fn wall(samples: &Samples<'_>, case: &str, subject: &str) -> Option<Estimate> {
    let is_own = |it: &&Sample| is_game(it) && it.case == case && it.subject.name == subject;
    PART_WALL.of(&samples.iter().copied().filter(is_own).collect())
}

/// Returns the table on drawing a game, with a row for each step such as a resize; `None` if no
/// game was drawn.
pub(in super::super) fn game_table(samples: &Samples<'_>) -> Option<GameTable> {
    let mut table = GameTable::default();
    for (case, ..) in STEPS {
        let of = |subject| wall(samples, case, subject);
        let (drawn, cached) = (of(DRAWN), of(CACHED));
        if drawn.is_none() && cached.is_none() {
            continue;
        }
        let times = drawn.zip(cached).map(|(drawn, cached)| drawn.value / cached.value);
        let times = times.map_or_else(|| "-".to_owned(), |times| Quantity::Factor.write(times));
        let [drawn, cached] = [drawn, cached].map(|it| written(&PART_WALL, it));
        table.rows.push(vec![case.to_owned(), drawn, cached, times]);
    }
    for sample in samples.iter().filter(|sample| is_game(sample)) {
        let error = sample
            .error
            .as_ref()
            .map(|it| format!("{}, {}: {it}", sample.case, sample.subject.name));
        table.errors.extend(error.filter(|it| !table.errors.contains(it)));
    }
    (!table.rows.is_empty() || !table.errors.is_empty()).then_some(table)
}

/// Returns a sentence on how many times as fast a game draws its window with the cache, after a
/// restart and after resizes.
pub(in super::super) fn answer(samples: &Samples<'_>) -> Option<String> {
    let factor = |case| {
        let (drawn, cached) = (wall(samples, case, DRAWN)?, wall(samples, case, CACHED)?);
        Some(Quantity::Factor.write(drawn.value / cached.value))
    };
    Some(format!(
        "A game of drawings: with the cache of pixmaps a restart is {} times as fast, a size that the \
         window has for the first time {} times, one that it had before {} times",
        factor("restart")?,
        factor("resize")?,
        factor("resize-back")?
    ))
}
