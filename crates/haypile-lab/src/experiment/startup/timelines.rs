//! Timelines of starts: with and without the cache side by side, warm and cold.

use anyhow::bail;
use haypile_measure::result::{Sample, Samples};
use haypile_number::Quantity;
use haypile_sim::plot::drawing::canvas;

use super::condition::Condition;
use super::difference::{StartCase, cases};
use super::figures::READY;
use crate::report::chart::{Chart, Course, Form, Picture, Timelines, slug};

/// Returns a picture for each command that was watched under two conditions: a row of two starts, and one of cold ones.
pub(super) fn figures<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Vec<Picture> {
    let samples: Samples<'a> = samples.into_iter().collect();
    let cases = cases(samples.iter().copied());
    let watched: Samples<'a> =
        samples.iter().copied().filter(|sample| sample.timeline.is_some()).collect();
    watched
        .grouped(|sample| sample.case.as_str())
        .iter()
        .map(|(name, watched)| of_command(name, watched, &cases))
        .collect()
}

fn of_command(name: &str, watched: &Samples<'_>, cases: &[StartCase<'_>]) -> Picture {
    let is_pair = watched.iter().any(|sample| sample.subject.name == Condition::First.name());
    let caches = watched.grouped(|sample| {
        let cache = sample.parameters.get("page_cache").and_then(|cache| cache.as_str());
        cache.unwrap_or_default().to_owned()
    });
    let mut courses = Vec::new();
    for (cache, own) in &caches {
        let case = cases.iter().find(|case| case.name == name && case.page_cache == *cache);
        courses.extend(row(own, case, cache));
    }
    let sides =
        if is_pair { "A (left), B (right)" } else { "without the cache (left), with it (right)" };
    let is_measured = courses.iter().any(|course| course.note.is_some());
    let caption = if is_measured {
        "Processes from their first to their last sight; the dashed line is when it was ready. Each start is the nearest \
         to the median of the timed ones, of up to three that were watched after them."
    } else {
        "Processes from their first to their last sight; the dashed line is when it was ready. Watched starts are not \
         measured ones: the cache's files are dropped from memory before, to see whether it reads them."
    };
    let described = courses.iter().map(|course| {
        let (ms, count) = (course.timeline.ready_ns / 1_000_000, course.timeline.processes.len());
        format!("{}: ready after {ms} ms, {count} processes seen", course.name)
    });
    Picture {
        slug: slug(&format!("timeline {name}")),
        title: format!("{name}: {sides}"),
        caption: caption.to_owned(),
        description: described.collect::<Vec<_>>().join("; "),
        chart: Chart::Timelines(Timelines { courses }),
    }
}

/// Returns the starts of a pair of conditions, next to each other.
fn row(own: &Samples<'_>, case: Option<&StartCase<'_>>, cache: &str) -> Vec<Course> {
    let course = |condition: &Condition| {
        let sample = own.iter().find(|sample| sample.subject.name == condition.name())?;
        let name = if cache.is_empty() {
            condition.name().to_owned()
        } else {
            format!("{condition}, {cache}")
        };
        // Before starts were drawn as they are measured, those that were watched for evidence were drawn.
        let is_measured = sample.counts.contains_key("machine_window_ns")
            && sample.timeline.as_ref().is_some_and(|timeline| timeline.processors > 0);
        let note = case.filter(|_| is_measured).and_then(|case| note(case, *condition));
        Some(Course { name, note, timeline: sample.timeline.clone()? })
    };
    // What fills the cache shows little more, and takes the room.
    let pairs = [
        [Condition::Off, Condition::With],
        [Condition::Fill, Condition::With],
        [Condition::First, Condition::Second],
    ];
    let of_pair = |pair: &[Condition; 2]| -> Vec<_> { pair.iter().filter_map(course).collect() };
    let mut all = pairs.iter().map(of_pair).filter(|courses| courses.len() == 2);
    all.next().unwrap_or_else(|| of_pair(&pairs[0]))
}

/// Returns what the table says of a condition: when it is ready and, with the cache, what that saves.
fn note(case: &StartCase<'_>, condition: Condition) -> Option<String> {
    let ready = case.estimate(condition, &READY)?;
    let median =
        format!("median of {}: ready {}", case.samples(condition).len(), READY.write(&ready));
    let other = [Condition::Off, Condition::Fill].into_iter();
    let found = other
        .filter(|_| condition == Condition::With)
        .find_map(|other| case.difference(other, &READY));
    let Some(found) = found else { return Some(median) };
    let saved = Quantity::Time.write_signed(found.later.median);
    let share = found.saved_by_cache().map(|share| format!(", {}", Quantity::Share.write(share)));
    Some(format!("{median}; saved {saved}{}", share.unwrap_or_default()))
}

/// Returns the pictures of all commands, one below the other.
///
/// # Errors
///
/// No start could be watched, or a picture cannot be drawn.
pub(super) fn svg(samples: &[Sample]) -> anyhow::Result<String> {
    let pictures = figures(samples);
    if pictures.is_empty() {
        bail!("no start was watched, so that there is no timeline");
    }
    let drawn = pictures.iter().map(|figure| figure.svg(Form::Alone));
    Ok(canvas::stacked(&drawn.collect::<Result<Vec<_>, _>>()?))
}
