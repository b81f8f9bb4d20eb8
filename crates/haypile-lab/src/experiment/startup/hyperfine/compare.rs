//! The comparison of the commands in a file of hyperfine with its first one.

use std::path::Path;

use anyhow::Context;
use haypile_measure::statistics::{Centre, Effect, Rule};
use haypile_number::{NBSP, Quantity};
use haypile_plot::drawing::text::printable;
use serde_json::json;

use super::Timed;
use crate::experiment::{Ended, Host, Printout};
use crate::report::table::{NOTHING, Table};

/// The least number of runs that have an interval, as of our own starts.
const MIN_RUNS: usize = 6;

/// Compares the commands in a result file of hyperfine with the first one, and prints the result.
///
/// # Errors
///
/// The file cannot be read, is not one of hyperfine, or has runs that failed, unless they are accepted.
pub(in super::super) fn compare(
    path: &Path,
    accepts_failure: bool,
    in_json: bool,
    host: &dyn Host,
) -> anyhow::Result<Ended> {
    let all = super::read(path)?;
    for timed in &all {
        let command = timed.command.escape_debug();
        timed.check(accepts_failure).with_context(|| format!("{}: '{command}'", path.display()))?;
    }
    let first = &all[0];
    let effect = |timed: &Timed| Effect::unpaired(&first.times, &timed.times).ok();
    let is_enough = |effect: &&Effect| effect.samples() >= MIN_RUNS;
    if in_json {
        let commands = all.iter().map(|timed| {
            let effect = effect(timed).filter(|_| !std::ptr::eq(timed, first));
            let judged = effect.as_ref().filter(is_enough);
            json!({
                "command": timed.command, "median_ms": timed.median * 1e3,
                "centre_ms": centre(timed).map(|seconds| seconds * 1e3),
                "memory_bytes": timed.memory,
                "change": effect.as_ref().map(|effect| effect.ratio() - 1.0),
                "interval": judged.and_then(Effect::interval).map(|it| [it.low, it.high]),
                "verdict": judged.map(|effect| Rule::default().judge(effect).to_string()),
            })
        });
        let commands: Vec<_> = commands.collect();
        host.print_json(&json!({ "baseline": first.command, "commands": commands }))?;
        return Ok(Ended::Well);
    }
    let row = |timed: &Timed| {
        let effect = effect(timed).filter(|_| !std::ptr::eq(timed, first));
        let judged = effect.as_ref().filter(is_enough);
        let nothing = || NOTHING.to_owned();
        vec![
            printable(&timed.command),
            Quantity::Time.write(timed.median * 1e9),
            centre(timed).map_or_else(nothing, |seconds| Quantity::Time.write(seconds * 1e9)),
            timed.times.len().to_string(),
            effect.as_ref().map_or_else(nothing, |it| change(it.ratio())),
            judged.and_then(Effect::interval).map_or_else(nothing, |it| {
                format!("{} to {}", change(1.0 + it.low), change(1.0 + it.high))
            }),
            judged.map_or_else(nothing, |it| Rule::default().judge(it).to_string()),
            timed.memory.map_or_else(nothing, |bytes| Quantity::Bytes.write(bytes)),
        ]
    };
    let interval = format!("95{NBSP}% interval");
    let names = ["Command", "Median", "Centre", "Runs", "Change", &interval, "Verdict", "Memory"];
    let caption = format!(
        "Commands of {}, compared with the first by the centre: the mean of logarithms, of which a fifth is trimmed \
         from each end",
        path.display()
    );
    let table = Table::of_numbers(caption, &names, all.iter().map(row).collect());
    let mut printout = Printout::default();
    printout.show(&table);
    printout.text(
        "\nhyperfine's runs are not paired: what changed between them is part of the change. haypile bench \
         takes turns.\n",
    );
    host.print(&printout)?;
    Ok(Ended::Well)
}

/// Returns the centre of the runs in seconds, by which commands are compared.
fn centre(timed: &Timed) -> Option<f64> {
    Centre::of(&timed.times).map(|centre| centre.value)
}

/// Returns a ratio as people say it: a change in percent, or how many times as long.
fn change(ratio: f64) -> String {
    if ratio > 10.0 {
        format!("{} times", Quantity::Factor.write(ratio))
    } else {
        format!("{:+.1}{NBSP}%", (ratio - 1.0) * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_change_is_said_in_times() {
        assert_eq!(change(209.7).replace(NBSP, " "), "210 times");
        assert_eq!(change(1.234).replace(NBSP, " "), "+23.4 %");
        assert_eq!(change(0.5).replace(NBSP, " "), "-50.0 %");
    }
}
