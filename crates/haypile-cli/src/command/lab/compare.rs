//! `haypile lab compare`

use std::process::ExitCode;

use haypile_measure::compare::{
    Comparison, Outcome, Pairing, Question, Row, Selector, Side, compare, read,
};
use haypile_measure::parameters;
use haypile_measure::result::Identity;
use haypile_measure::statistics::{Interval, Rule, Verdict};
use serde_json::json;

use crate::args::lab::Compare;
use crate::output::note;
use crate::output::table::table;
use crate::{NEGATIVE, output};

/// Largest change that is printed as a percentage: 12 x is easier to read than +1100.0 %.
const MOST_PERCENT: f64 = 9.99;

/// Executes `haypile lab compare`: prints the comparison of results. The exit status is 1 if a row
/// exceeds --fail-above.
pub(crate) fn run(arguments: &Compare) -> anyhow::Result<ExitCode> {
    let old = read(&arguments.old)?;
    let new = arguments.new.as_deref().map(read).transpose()?;
    // The warnings of one file appear once.
    let warnings = old.warnings.iter().chain(new.iter().flat_map(|new| &new.warnings));
    let warnings: Vec<String> = warnings.cloned().collect();
    let new_samples = new.as_ref().map_or(&old.samples, |new| &new.samples);
    let subjects = arguments.subjects.as_ref();
    let question = Question {
        metric: arguments.metric,
        rule: Rule::with_noise_floor(arguments.noise_floor)?,
        subjects: subjects
            .map(|list| Selector::pair(list, &old.samples, new_samples))
            .transpose()?,
    };
    let mut comparison = compare(&old.samples, new_samples, &question)?;
    comparison.warnings.splice(0..0, warnings);
    let beyond =
        arguments.fail_above.map(|part| comparison.beyond(part, arguments.gate.into()).count());
    if arguments.json {
        print_json(&comparison, arguments, beyond)?;
    } else {
        output::text(&text(&comparison, arguments, beyond))?;
        for warning in &comparison.warnings {
            note!("warning: {warning}");
        }
    }
    let is_beyond = beyond.is_some_and(|beyond| beyond > 0 || !comparison.missing.is_empty());
    Ok(if is_beyond { ExitCode::from(NEGATIVE) } else { ExitCode::SUCCESS })
}

fn print_json(
    comparison: &Comparison,
    arguments: &Compare,
    beyond: Option<usize>,
) -> anyhow::Result<()> {
    let mut value = comparison.to_json();
    value["old"] = json!(arguments.old.display().to_string());
    value["new"] = json!(new_name(arguments));
    value["fail_above"] = json!(arguments.fail_above);
    value["beyond"] = json!(beyond);
    output::json(&value)
}

fn new_name(arguments: &Compare) -> String {
    arguments.new.as_ref().unwrap_or(&arguments.old).display().to_string()
}

fn text(comparison: &Comparison, arguments: &Compare, beyond: Option<usize>) -> String {
    let (same, varying) = parameters::part(comparison.rows.iter().map(|row| &row.parameters));
    let metric = comparison.metric;
    let mut lines = vec![
        format!("old: {}", arguments.old.display()),
        format!("new: {}", new_name(arguments)),
        format!("{metric}: {}", metric.figure().what),
    ];
    if !same.is_empty() {
        lines.push(format!("everywhere: {}", parameters::describe(&same)));
    }
    lines.push(String::new());
    lines.push(rows(comparison, &varying));
    lines.extend(notes(comparison, &varying));
    lines.push(tally(comparison));
    if let (Some(part), Some(beyond)) = (arguments.fail_above, beyond) {
        lines.push(format!("{beyond} beyond {} %", part * 100.0));
        if !comparison.missing.is_empty() {
            let missing = comparison.missing.len();
            lines.push(format!("{missing} missing in new, which may be slower; measure them too"));
        }
    }
    let is_unpaired = |row: &Row| match &row.outcome {
        Outcome::Judged { difference, .. } => difference.pairing == Pairing::Unpaired,
        _ => false,
    };
    if comparison.rows.iter().any(is_unpaired) {
        lines.push(
            "unpaired: old and new come from different runs; everything else that changed between \
            them is part of the change"
                .to_owned(),
        );
    }
    lines.join("\n") + "\n"
}

fn rows(comparison: &Comparison, varying: &[String]) -> String {
    let experiment = comparison.rows.first().map(|row| &row.experiment);
    let is_one = comparison.rows.iter().all(|row| Some(&row.experiment) == experiment);
    let program = comparison.rows.first().map(|row| &row.old.program);
    let has_programs = comparison.rows.iter().any(|row| Some(&row.old.program) != program);
    let rows: Vec<Vec<String>> = comparison
        .rows
        .iter()
        .map(|row| {
            let case =
                if is_one { row.case.clone() } else { format!("{} {}", row.experiment, row.case) };
            let mut cells = vec![case];
            let value = |name| row.parameters.get(name).map(parameters::text);
            cells.extend(varying.iter().map(|name| value(name).unwrap_or_default()));
            cells.push(subject(row, has_programs));
            let figure = comparison.metric.figure();
            let value = |side: &Side| {
                let estimate = side.estimate.as_ref();
                let text = estimate.map_or_else(|| "-".to_owned(), |it| figure.write(it));
                haypile_number::with_plain_spaces(&text)
            };
            cells.extend([value(&row.old), value(&row.new)]);
            cells.extend(judgement(&row.outcome, comparison.rule));
            cells
        })
        .collect();
    let mut header = vec!["Case".to_owned()];
    header.extend(varying.iter().cloned());
    let last = ["Subject", "Old", "New", "Change", "99 % interval", "Mean", "Blocks", "Verdict"];
    header.extend(last.map(str::to_owned));
    let text = varying.len() + 2;
    table(&header, text, text, &rows)
}

/// Returns the name of the row's subject, or both names if old and new differ, with the program if
/// there are several.
fn subject(row: &Row, has_programs: bool) -> String {
    let (old, new) = (&row.old, &row.new);
    if old.subject != new.subject {
        format!("{}, {}", old.subject, new.subject)
    } else if old.program != new.program {
        format!("{}, {}{}", old.identity(), Identity::AT, new.program)
    } else if has_programs {
        old.identity().to_string()
    } else {
        old.subject.clone()
    }
}

fn judgement(outcome: &Outcome, rule: Rule) -> [String; 5] {
    let nothing = || "-".to_owned();
    let Outcome::Judged { difference, verdict } = outcome else {
        return [nothing(), nothing(), nothing(), nothing(), outcome.to_string()];
    };
    let blocks = match difference.pairing {
        Pairing::Paired { blocks } => blocks.to_string(),
        Pairing::Unpaired => difference.pairing.to_string(),
    };
    let ends = |ends: Interval| format!("{} to {}", percent(ends.low), percent(ends.high));
    let interval = difference.centre.deciding_interval().map_or_else(nothing, ends);
    let verdict = haypile_number::with_plain_spaces(&difference.write(rule, *verdict));
    let (change, mean) = (difference.centre.change(), difference.mean.change());
    [percent(change), interval, percent(mean), blocks, verdict]
}

/// Returns what the centres of a row's sides do not show.
fn notes(comparison: &Comparison, varying: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for row in &comparison.rows {
        let value = |name: &String| {
            Some(format!(" {name}={}", parameters::text(row.parameters.get(name)?)))
        };
        let values: String = varying.iter().filter_map(value).collect();
        for (name, side) in [("old", &row.old), ("new", &row.new)] {
            let note = |note| format!("{name} {}{values}, {}: {note}", row.case, side.subject);
            let own = side.notes.iter().map(note);
            lines.extend(own.map(|line| haypile_number::with_plain_spaces(&line)));
        }
    }
    lines
}

/// Returns a change for people: `+3.1 %`, or `x 12.0` for a large one.
fn percent(change: f64) -> String {
    if change > MOST_PERCENT {
        format!("x {:.1}", change + 1.0)
    } else {
        // Adding zero turns a rounded -0.0 into 0.0.
        let percent = (change * 1000.0).round() / 10.0 + 0.0;
        format!("{percent:+.1} %")
    }
}

/// Returns the number of rows with each verdict, and the conditions of a difference.
fn tally(comparison: &Comparison) -> String {
    let count =
        |name: &str| comparison.rows.iter().filter(|row| row.outcome.name() == name).count();
    let mut parts = Vec::new();
    let names = [
        Verdict::Slower,
        Verdict::Faster,
        Verdict::SlowerOnAverage,
        Verdict::FasterOnAverage,
        Verdict::NoDifference,
        Verdict::TooFew,
        Verdict::TooShort,
        Verdict::Unconfirmed,
    ];
    let names = names.map(|verdict| (verdict.name(), verdict.to_string()));
    let others = ["failed", "not-measured"].map(|name| (name, name.replace('-', " ")));
    for (name, text) in names.into_iter().chain(others) {
        match count(name) {
            0 => {}
            count => parts.push(format!("{count} {text}")),
        }
    }
    format!(
        "{} (a difference has p < {} and is beyond {} %; a verdict needs {} blocks of {} ms)",
        parts.join(", "),
        Rule::SIGNIFICANCE,
        comparison.rule.noise_floor() * 100.0,
        Rule::MIN_BLOCKS,
        Rule::MIN_BLOCK_NS / 1_000_000
    )
}
