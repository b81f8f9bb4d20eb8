//! The answer of a comparison of two commands, in a sentence.

use haypile_number::{NBSP, Quantity};

use super::super::condition::Condition;
use super::super::difference::{Difference, StartCase, StartVerdict};
use super::super::figures::{CPU, MEMORY, READY};
use super::super::tables::range;
use crate::report::number::list;

/// A mean that is further from the median than this part of it is said too: a few starts differ much.
const FAR_MEAN: f64 = 0.25;

/// Returns a sentence that names the faster of two commands, and by how much it is faster; `None`
/// if one of them was not measured.
pub(in super::super) fn sentence(case: &StartCase<'_>) -> Option<String> {
    let found = |figure| case.difference(Condition::Second, figure);
    let time = found(&READY)?;
    let mut text = said(&time);
    let others = [(&CPU, " processor time"), (&MEMORY, " memory")];
    let others = others.into_iter().filter_map(|(figure, name)| {
        let found = found(figure)?;
        (found.verdict == StartVerdict::Significant).then(|| more_or_less(&found, name, "as much"))
    });
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        text.push_str("; B uses ");
        text.push_str(&others.join(", and "));
    }
    let failed = [Condition::First, Condition::FirstAgain, Condition::Second].into_iter();
    let failed = failed.filter_map(|condition| {
        let samples = case.samples(condition);
        let errors = samples.iter().filter(|sample| sample.error.is_some()).count();
        (errors > 0).then(|| format!("{condition} failed in {errors} of {} starts", samples.len()))
    });
    let failed: Vec<String> = failed.collect();
    let blocks = time.later.count;
    if !failed.is_empty() {
        text = format!("{text}; that is of {blocks} blocks, for {}", list(&failed));
    }
    Some(format!("{text}."))
}

/// Says how long B takes.
fn said(time: &Difference) -> String {
    let difference = Quantity::Time.write_signed(time.later.median);
    let within = time.interval().map_or_else(String::new, |ends| {
        format!(", 95{NBSP}% interval {}", range(Quantity::Time, ends))
    });
    let distance = (time.mean - time.later.median).abs();
    let mean = if distance > (FAR_MEAN * time.later.median.abs()).max(100_000.0) {
        format!(", but {} in the mean", Quantity::Time.write_signed(time.mean))
    } else {
        String::new()
    };
    let found = format!("B - A is {difference}{within}{mean}");
    match time.verdict {
        StartVerdict::Significant => {
            format!("B takes {}{within}{mean}", more_or_less(time, " than A", "as long"))
        }
        StartVerdict::NotSignificant => {
            format!("No difference of time is shown between A and B: {found}")
        }
        StartVerdict::Small => format!(
            "B takes as long as A: {found}, which is below the least size that counts (1{NBSP}% and 0.1{NBSP}ms)"
        ),
        StartVerdict::OpenSize => {
            let more = if time.later.median < 0.0 { "less" } else { "more" };
            format!("B takes {more} time than A, and how much is open: {found}")
        }
        StartVerdict::WithinControl => format!(
            "No difference of time is shown between A and B: {found}, and A differs as much from itself"
        ),
        StartVerdict::TooFew => {
            format!("{found}; with fewer than 6 blocks nothing says how certain that is")
        }
        StartVerdict::Disturbed => format!(
            "Nothing can be said of the time, for in most blocks a start waited for a processor ({found}): \
             measure on a quiet machine"
        ),
    }
}

/// Says how much more or less of something B uses than A: `of` is what it uses, `multiple` what stands after a factor.
fn more_or_less(found: &Difference, of: &str, multiple: &str) -> String {
    let size = found.figure.quantity.write(found.later.median.abs());
    let word = if found.later.median < 0.0 { "less" } else { "more" };
    let change = found.change.map_or_else(String::new, |change| {
        // A percentage of several hundred says less than a factor.
        if change >= 1.0 {
            format!(" ({} times {multiple})", Quantity::Factor.write(1.0 + change))
        } else {
            format!(" ({:+.1}{NBSP}%)", change * 100.0)
        }
    });
    format!("{size} {word}{of}{change}")
}

#[cfg(test)]
mod tests {
    use haypile_measure::result::{Load, Sample};
    use serde_json::json;

    use super::super::super::difference::cases;
    use super::*;

    /// Eight blocks in which A takes 100 ms, with 50 ms of processor time and 10 MiB, and B more of each.
    fn answer(
        ms: i64,
        control_ms: i64,
        cpu_ms: i64,
        mib: i64,
        change: impl Fn(&mut Sample),
    ) -> String {
        let mut samples = Vec::new();
        for block in 0..8_i64 {
            // Every block has its own level, and no two differences are equal.
            let level = 10 * block;
            let jitter = block % 3;
            let control =
                1_000 * jitter + if control_ms > 0 { control_ms * 1_000_000 } else { -1_000 };
            let all = [
                (Condition::First, 0, 0, 0),
                (Condition::FirstAgain, control, 0, 0),
                (Condition::Second, ms * 1_000_000 + 1_000 * jitter, cpu_ms, mib),
            ];
            for (condition, wall_ns, cpu_ms, mib) in all {
                let mut sample: Sample = serde_json::from_value(json!({
                    "schema": 1, "run": "r", "experiment": "bench", "case": "x", "seed": 1,
                    "position": 0, "parameters": { "a": "old", "b": "new", "ready": "exit" },
                    "subject": {
                        "name": condition.name(), "program": "haypile", "language": "", "version": ""
                    },
                    "block": block, "operations": 1, "hits": 0, "misses": 0,
                    "wall_ns": (100 + level) * 1_000_000 + wall_ns,
                    "cpu_ns": (50 + cpu_ms) * 1_000_000, "memory_bytes": (10 + mib) << 20,
                }))
                .unwrap();
                change(&mut sample);
                samples.push(sample);
            }
        }
        let cases = cases(&samples);
        sentence(&cases[0]).unwrap().replace(NBSP, " ")
    }

    #[test]
    fn each_verdict_has_its_sentence() {
        let same = |_: &mut Sample| ();
        assert_eq!(
            answer(-30, 0, -10, 5, same),
            "B takes 30.0 ms less than A (-22.2 %), 95 % interval -30.0 ms to -30.0 ms; B uses 10.0 ms \
             less processor time (-20.0 %), and 5 MiB more memory (+50.0 %)."
        );
        let longer = answer(270, 0, 0, 0, same);
        assert!(
            longer.starts_with("B takes 270 ms more than A (3.00 times as long), 95 %"),
            "{longer}"
        );
        let none = answer(0, 0, 0, 0, same);
        assert!(
            none.starts_with("No difference of time is shown between A and B: B - A is"),
            "{none}"
        );
        let small = answer(1, 0, 0, 0, same);
        assert!(small.contains("below the least size that counts (1 % and 0.1 ms)."), "{small}");
        let control = answer(5, 6, 0, 0, same);
        assert!(control.ends_with("and A differs as much from itself."), "{control}");
        let disturbed = answer(50, 0, 0, 0, |sample| {
            sample.load = Some(Load { seen_ns: 1, waited_ns: Some(20_000_000), ..Load::default() });
        });
        assert!(disturbed.starts_with("Nothing can be said of the time"), "{disturbed}");
        // More than half of the differences are small, and the others large.
        let open = answer(0, 0, 0, 0, |sample| {
            if sample.subject.name == "B" {
                sample.wall_ns += if sample.block < 5 { 300_000 } else { 50_000_000 };
            }
        });
        assert!(
            open.starts_with("B takes more time than A, and how much is open: B - A is +30"),
            "{open}"
        );
        assert!(open.ends_with(", but +18.9 ms in the mean."), "{open}");
        let few = answer(50, 0, 0, 0, |sample| {
            if sample.block > 4 {
                sample.error = Some("late".to_owned());
            }
        });
        let end = "with fewer than 6 blocks nothing says how certain that is; that is of 5 blocks, for A failed in 3 \
                   of 8 starts, A again failed in 3 of 8 starts and B failed in 3 of 8 starts.";
        assert!(few.ends_with(end), "{few}");
    }
}
