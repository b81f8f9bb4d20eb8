//! Timelines of starts: with and without the cache side by side, warm and cold.

use anyhow::bail;
use haypile_measure::result::{Sample, Samples};
use haypile_number::Quantity;
use haypile_plot::drawing::canvas;

use super::condition::Condition;
use super::difference::{StartCase, cases};
use super::figures::READY;
use crate::report::chart::{Chart, Course, Form, Picture, Timelines, slug};

/// Returns a picture for each command of its processes over time: warm starts with and without the
/// cache side by side, and cold ones below.
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
    let other = Condition::LACKING.into_iter();
    let found = other
        .filter(|_| condition == Condition::With)
        .find_map(|other| case.difference(other, &READY));
    let Some(found) = found else { return Some(median) };
    let saved = Quantity::Time.write_signed(found.later.median);
    let share = found.saved_by_cache().map(|share| format!(", {}", Quantity::Share.write(share)));
    Some(format!("{median}; saved {saved}{}", share.unwrap_or_default()))
}

/// Returns the pictures of all commands' processes over time as SVG, one below the other.
///
/// # Errors
///
/// No start could be watched, or a picture cannot be drawn.
pub(super) fn svg(samples: &[Sample]) -> anyhow::Result<String> {
    let pictures = figures(samples);
    if pictures.is_empty() {
        bail!(
            "the timeline cannot be drawn, because no start of the command that was to be watched succeeded; run the \
             command by itself to see why it fails, and measure again"
        );
    }
    let drawn = pictures.iter().map(|figure| figure.svg(Form::Alone));
    Ok(canvas::stacked(&drawn.collect::<Result<Vec<_>, _>>()?))
}

#[cfg(test)]
mod tests {
    use haypile_measure::result::{Tick, Timeline};
    use serde_json::json;

    use super::*;

    fn sample(case: &str, (condition, cache): (&str, &str), block: u64, wall_ms: u64) -> Sample {
        serde_json::from_value(json!({
            "schema": 1, "run": "r", "experiment": "startup", "case": case, "seed": 1, "position": 0,
            "parameters": { "page_cache": cache, "ready": "exit" },
            "subject": { "name": condition, "program": "haypile", "language": "", "version": "" },
            "block": block, "operations": 1, "wall_ns": wall_ms * 1_000_000, "cpu_ns": 5_000_000, "hits": 0,
            "misses": 0, "counts": { "machine_window_ns": 1 },
        }))
        .unwrap()
    }

    #[test]
    fn a_picture_says_what_the_rows_say_of_each_command_warm_and_cold() {
        let mut samples = Vec::new();
        let ready = [
            ("with", "warm", 145),
            ("off", "warm", 413),
            ("with", "cold", 264),
            ("off", "cold", 583),
        ];
        for case in ["one", "two"] {
            for (condition, cache, ms) in ready {
                samples.extend((0..7).map(|block| sample(case, (condition, cache), block, ms)));
                let mut drawn = sample(case, (condition, cache), 0, ms + 1);
                drawn.parameters.insert("watched".to_owned(), json!(true));
                drawn.timeline = Some(Timeline {
                    ready_ns: drawn.wall_ns,
                    processors: 2,
                    ticks: vec![Tick::default()],
                    ..Timeline::default()
                });
                samples.push(drawn);
            }
        }
        let pictures = figures(&samples);
        assert_eq!(pictures.len(), 2, "one of each command");
        for picture in &pictures {
            let svg = picture.svg(Form::Alone).unwrap().replace('\u{a0}', " ");
            for text in [
                "off, warm",
                "with, warm",
                "off, cold",
                "with, cold",
                "median of 7: ready 413 ms",
                "median of 7: ready 145 ms; saved +268 ms, 64.9 %",
                "median of 7: ready 583 ms",
                "median of 7: ready 264 ms; saved +319 ms, 54.7 %",
            ] {
                assert!(svg.contains(text), "{text}: {svg}");
            }
        }
        let both = svg(&samples).unwrap();
        assert!(both.contains("one: without the cache") && both.contains("two: without the cache"));
        roxmltree::Document::parse(&both).unwrap();
    }
}
