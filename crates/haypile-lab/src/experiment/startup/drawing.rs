//! Starts that are watched after the measurement, for a picture of a typical start.

use haypile_measure::result::Sample;

use super::condition::Condition;
use super::figures::READY;
use super::measure::{Measuring, Watch};
use super::row::watched;
use crate::experiment::cold::Cold;
use crate::experiment::session::attempt;

/// The most starts that are watched for a picture.
const TRIES: usize = 3;
/// A start that is as near as this to the median is near enough.
const NEAR: f64 = 0.05;

impl Measuring<'_, '_> {
    /// Records the processes of further starts over time, under each condition, warm and cold, and
    /// keeps the start whose time is nearest to the median of the timed ones.
    ///
    /// # Errors
    ///
    /// The row cannot be written, or the user has stopped it.
    pub(super) fn draw(
        &mut self,
        usable: &[Condition],
        caches: &[Option<Cold>],
    ) -> anyhow::Result<()> {
        for cold in caches {
            for condition in usable.iter().copied().filter(|condition| !condition.is_control()) {
                let Some(median_ns) = self.median_ns(condition, *cold) else { continue };
                let far = |sample: &Sample| (sample.wall_ns as f64 - median_ns).abs();
                let mut best: Option<Sample> = None;
                for _ in 0..TRIES {
                    // One that fails now has no picture; the timed ones have their results.
                    let Ok(measured) = attempt(self.start(condition, *cold, &Watch::Polled))?
                    else {
                        break;
                    };
                    let mut sample = watched(self.sample(condition, *cold, &measured));
                    sample.timeline.clone_from(&measured.report.timeline);
                    if best.as_ref().is_none_or(|best| far(&sample) < far(best)) {
                        best = Some(sample);
                    }
                    if best.as_ref().is_some_and(|best| far(best) <= NEAR * median_ns) {
                        break;
                    }
                }
                if let Some(best) = best {
                    self.session.keep(best)?;
                }
            }
        }
        Ok(())
    }

    /// The median time of the timed starts of a condition, in nanoseconds.
    fn median_ns(&self, condition: Condition, cold: Option<Cold>) -> Option<f64> {
        let parameters = self.parameters(cold);
        let timed = self.session.samples().iter().filter(|sample| {
            (&*sample.case, &*sample.subject.name) == (&*self.plan.name, condition.name())
                && sample.parameters == parameters
        });
        READY.of(&timed.collect()).map(|estimate| estimate.value)
    }
}
