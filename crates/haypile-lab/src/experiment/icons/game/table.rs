//! The times of a game, for people.

use haypile_measure::result::{Sample, Samples};
use haypile_measure::statistics::Summary;

use super::{CACHED, DRAWN, GAME, STEPS};

/// The names of the columns.
pub(in super::super) const COLUMNS: [&str; 4] = ["Step", "drawn ms", "with cache ms", "times"];

/// The table of a game, and what went wrong.
#[derive(Debug, Default)]
pub(in super::super) struct GameTable {
    pub(in super::super) rows: Vec<Vec<String>>,
    pub(in super::super) errors: Vec<String>,
}

/// Whether a sample is of a game.
pub(in super::super) fn is_game(sample: &Sample) -> bool {
    sample.parameters.get("set").is_some_and(|set| set == GAME)
}

fn median_ms(samples: &Samples<'_>, case: &str, subject: &str) -> Option<f64> {
    let own: Samples<'_> = samples
        .iter()
        .copied()
        .filter(|it| is_game(it) && it.case == case && it.subject.name == subject)
        .collect();
    let ms = own.values(|it| it.error.is_none().then_some(it.wall_ns as f64 / 1e6));
    Some(Summary::of(&ms.to_vec())?.median)
}

/// Returns the table of the game, with a row for each step; `None` if there was no game.
pub(in super::super) fn game_table(samples: &Samples<'_>) -> Option<GameTable> {
    let mut table = GameTable::default();
    for (case, ..) in STEPS {
        let of = |subject| median_ms(samples, case, subject);
        let (drawn, cached) = (of(DRAWN), of(CACHED));
        if drawn.is_none() && cached.is_none() {
            continue;
        }
        let cell = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| format!("{ms:.2}"));
        let times = drawn.zip(cached).map(|(drawn, cached)| drawn / cached.max(f64::MIN_POSITIVE));
        let times = times.map_or("-".to_owned(), |times| format!("{times:.2}"));
        table.rows.push(vec![case.to_owned(), cell(drawn), cell(cached), times]);
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

/// Answers a reader's question: does the cache help when a window is resized?
pub(in super::super) fn answer(samples: &Samples<'_>) -> Option<String> {
    let factor = |case| {
        let (drawn, cached) = (median_ms(samples, case, DRAWN)?, median_ms(samples, case, CACHED)?);
        Some(drawn / cached.max(f64::MIN_POSITIVE))
    };
    Some(format!(
        "A game of drawings: with the cache of pixmaps a restart is {:.1} times as fast, a size that the \
         window has for the first time {:.2} times, one that it had before {:.1} times",
        factor("restart")?,
        factor("resize")?,
        factor("resize-back")?
    ))
}
