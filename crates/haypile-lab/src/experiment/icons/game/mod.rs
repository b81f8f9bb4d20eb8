//! A game whose elements are drawings: does a cache of pixmaps help when it starts, and when its window is
//! resized? A reader of the KDE icon cache's results asked the latter.

mod player;
mod table;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use haypile_icons::{Pixmap, cache_url_at};
use haypile_measure::measure::{Failure, Turns};
use haypile_measure::result::Sample;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::json;

pub(super) use player::play;
pub(super) use table::{answer, game_table, is_game};

use super::measure::IconRun;
use super::orders::{DrawnWindow, GameOrders, LoaderOrders, Window, checksum};
use super::theme::drawing;
use crate::experiment::parameters;
use crate::experiment::session::{Session, attempt};

/// The value of the parameter `set` in samples that draw a game instead of icons.
pub(super) const GAME: &str = "game";
/// Names of the subjects: everything is drawn each time, or kept in a cache of pixmaps.
const DRAWN: &str = "drawn";
const CACHED: &str = "pixmap-cache";

const ELEMENTS: usize = 100;
/// Paths in the drawing of the background.
const BACKGROUND_PATHS: u32 = 400;
const SMALL: Window = Window { element_px: 48, background_px: (800, 600) };
const LARGE: Window = Window { element_px: 64, background_px: (1024, 768) };
/// The steps of a game, in their order: a name, the size, and whether the cache has it by then.
const STEPS: [(&str, Window, bool); 4] = [
    ("first-start", SMALL, false),
    ("restart", SMALL, true),
    ("resize", LARGE, false),
    ("resize-back", SMALL, true),
];
/// The longest wait for files to become old enough to be kept.
const AGEING: Duration = Duration::from_secs(10);

impl IconRun<'_> {
    /// Measures the drawing of a game's windows with and without a cache of pictures.
    ///
    /// # Errors
    ///
    /// Results cannot be written, nothing can be drawn, or the user has stopped it.
    pub(super) fn game(&self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let files = self.drawings()?;
        let of = |(_, window, _): (&str, Window, bool)| {
            let pictures = player::draw(&files, window, None)?;
            anyhow::Ok(checksum(pictures.iter().map(Pixmap::pixels)))
        };
        let expected = STEPS.into_iter().map(of).collect::<anyhow::Result<Vec<u64>>>()?;
        self.age(&files)?;
        let mut turns = Turns::new(self.options.run.seed, 0, 2);
        for block in 0..self.options.blocks {
            for (position, turn) in turns.next_block().into_iter().enumerate() {
                let subject = [DRAWN, CACHED][turn];
                let steps = attempt(self.play_all(&files, subject))?;
                for (at, (case, _, is_cached)) in STEPS.into_iter().enumerate() {
                    let parameters =
                        parameters([("set", json!(GAME)), ("elements", json!(ELEMENTS))]);
                    let mut sample =
                        Sample { case: case.to_owned(), ..self.blank(subject, parameters) };
                    sample.block = block;
                    sample.position = position as u64;
                    sample.operations = files.len() as u64;
                    match &steps {
                        Ok(steps) => {
                            let is_cached = is_cached && subject == CACHED;
                            fill(&mut sample, &steps[at], expected[at], is_cached);
                        }
                        Err(error) => sample.error = Some(error.clone()),
                    }
                    session.keep(sample)?;
                }
                self.host.advance(1);
            }
        }
        Ok(())
    }

    /// Writes the drawings of the game.
    fn drawings(&self) -> anyhow::Result<Vec<PathBuf>> {
        let folder = self.scratch.join("game");
        fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        let mut random = ChaCha8Rng::seed_from_u64(self.options.run.seed);
        let mut files = Vec::new();
        for number in 0..=ELEMENTS {
            let is_background = number == ELEMENTS;
            let (size, paths) = if is_background { (1024, BACKGROUND_PATHS) } else { (64, 0) };
            let path = folder.join(format!("element{number:03}.svg"));
            fs::write(&path, drawing(size, paths, &mut random)?)?;
            files.push(path);
        }
        Ok(files)
    }

    /// Plays until the cache keeps the drawings: what was just written is too young for it.
    fn age(&self, files: &[PathBuf]) -> anyhow::Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < AGEING {
            let steps = attempt(self.play_all(files, CACHED))?.map_err(anyhow::Error::msg)?;
            if steps[1].rendered == 0 {
                return Ok(());
            }
        }
        bail!(
            "the cache did not store a drawn picture; check whether the file system's clock is \
             ahead of the system's"
        )
    }

    /// The first start in one process; the restart and the resizes in another.
    fn play_all(&self, files: &[PathBuf], subject: &str) -> Result<Vec<DrawnWindow>, Failure> {
        let path = self.scratch.join("game.haypile");
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(Failure::Failed(format!("{}: {error}", path.display())));
        }
        let url = cache_url_at(&path).map_err(|error| Failure::Failed(error.to_string()))?;
        let cache = (subject == CACHED).then(|| url.to_string());
        let mut steps = Vec::new();
        for own in [&STEPS[..1], &STEPS[1..]] {
            let windows: Vec<Window> = own.iter().map(|(_, window, _)| *window).collect();
            let orders = GameOrders { files: files.to_vec(), windows, cache: cache.clone() };
            let told = self.tell::<Vec<DrawnWindow>>(&LoaderOrders::Game(orders), 1, None)?;
            steps.extend(told.reports.into_iter().flatten());
        }
        if steps.len() != STEPS.len() {
            return Err(Failure::Failed(format!("it drew {} windows", steps.len())));
        }
        Ok(steps)
    }
}

/// Takes over what was measured, and an error if the wrong things were drawn.
fn fill(sample: &mut Sample, drawn: &DrawnWindow, expected: u64, is_cached: bool) {
    sample.wall_ns = drawn.wall_ns;
    sample.cpu_ns = drawn.cpu_ns;
    sample.hits = sample.operations.saturating_sub(drawn.rendered);
    sample.misses = drawn.rendered;
    let rendered = if is_cached { 0 } else { sample.operations };
    sample.error = if drawn.checksum != expected {
        Some("the pictures are not those of the drawings".to_owned())
    } else if drawn.rendered != rendered {
        Some(format!("it rendered {} drawings, and not {rendered}", drawn.rendered))
    } else {
        None
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_player_that_lies_is_caught() {
        let error = |drawn: DrawnWindow, is_cached| {
            let mut sample: Sample = serde_json::from_value(json!({
                "schema": 1, "run": "r", "experiment": "icons", "case": "restart", "parameters": {},
                "seed": 1, "block": 0, "position": 0,
                "subject": {"name": CACHED, "version": "", "language": "", "program": ""},
                "operations": 101, "wall_ns": 0, "cpu_ns": 0, "hits": 0, "misses": 0,
            }))
            .unwrap();
            fill(&mut sample, &drawn, 7, is_cached);
            sample.error
        };
        let honest = DrawnWindow { wall_ns: 1, cpu_ns: 1, rendered: 101, checksum: 7 };
        assert_eq!(error(honest, false), None);
        assert_eq!(error(DrawnWindow { rendered: 0, ..honest }, true), None);
        assert!(error(honest, true).unwrap().contains("rendered 101"));
        assert!(
            error(DrawnWindow { rendered: 0, ..honest }, false).unwrap().contains("rendered 0")
        );
        assert!(error(DrawnWindow { checksum: 8, ..honest }, false).unwrap().contains("pictures"));
    }
}
