//! Timelines of the starts that were watched: with and without the cache side by side.

use anyhow::bail;
use haypile_measure::result::{Sample, Samples};

use super::condition::Condition;
use crate::report::chart::{Chart, Form, Picture, Timelines, slug};

/// Returns a figure for each command that was watched under two conditions.
pub(super) fn figures<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Vec<Picture> {
    let watched: Samples<'a> =
        samples.into_iter().filter(|sample| sample.timeline.is_some()).collect();
    let figure = |(case, samples): &(&'a str, Samples<'a>)| {
        let panel = |condition: &Condition| {
            let own = samples.iter().find(|sample| sample.subject.name == condition.name())?;
            let name = format!("{} ({})", condition.name(), own.case);
            Some((name, own.timeline.clone()?))
        };
        // What fills the cache shows little more, and takes the room.
        let conditions = [Condition::Off, Condition::With];
        let mut panels: Vec<_> = conditions.iter().filter_map(panel).collect();
        if panels.len() < 2 {
            panels = [Condition::Fill, Condition::With].iter().filter_map(panel).collect();
        }
        let title = format!("{case}: without the cache (left), with it (right)");
        let caption = "Processes from their first to their last sight; the dashed line is when it was ready. \
                       Watched starts are not measured ones: before that with the cache, the cache's files \
                       are dropped from memory, to see whether it reads them."
            .to_owned();
        let description = panels
            .iter()
            .map(|(name, timeline)| {
                let (ms, count) = (timeline.ready_ns / 1_000_000, timeline.processes.len());
                format!("{name}: ready after {ms} ms, {count} processes seen")
            })
            .collect::<Vec<_>>()
            .join("; ");
        let chart = Chart::Timelines(Timelines { panels });
        Picture { slug: slug(&format!("timeline {case}")), title, caption, description, chart }
    };
    watched.grouped(|sample| sample.case.as_str()).iter().map(figure).collect()
}

/// Returns the picture of the first command.
///
/// # Errors
///
/// No start could be watched, or the picture cannot be drawn.
pub(super) fn svg(samples: &[Sample]) -> anyhow::Result<String> {
    match figures(samples).first() {
        Some(figure) => Ok(figure.svg(Form::Alone)?),
        None => bail!("no start was watched, so that there is no timeline"),
    }
}
