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
        let pairs = [
            [Condition::Off, Condition::With],
            [Condition::Fill, Condition::With],
            [Condition::First, Condition::Second],
        ];
        let of_pair = |pair: &[Condition; 2]| -> Vec<_> { pair.iter().filter_map(panel).collect() };
        let mut all = pairs.iter().map(of_pair).filter(|panels| panels.len() == 2);
        let panels = all.next().unwrap_or_else(|| of_pair(&pairs[0]));
        let is_pair = samples.iter().any(|sample| sample.subject.name == Condition::First.name());
        let sides = if is_pair {
            "A (left), B (right)"
        } else {
            "without the cache (left), with it (right)"
        };
        let title = format!("{case}: {sides}");
        let mut caption =
            "Processes from their first to their last sight; the dashed line is when it was \
                           ready. Watched starts are not measured ones"
                .to_owned();
        caption.push_str(if is_pair {
            "."
        } else {
            ": before that with the cache, the cache's files are dropped from memory, to see whether it \
             reads them."
        });
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
