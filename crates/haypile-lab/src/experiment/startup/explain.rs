//! The cause of a difference: the system calls that one condition makes and the other does not.

use std::collections::BTreeSet;
use std::path::Path;

use haypile_measure::result::{CallCounts, FolderCalls, StartCalls};
use haypile_number::Quantity;
use haypile_plot::drawing::text::printable;
use serde_json::{Value, json};

use super::condition::Condition;
use super::difference::StartCase;
use super::tables::title;
use crate::report::table::Table;

/// A folder holds a difference if so large a part of it is below.
const PART: f64 = 0.8;
/// The least difference in calls that is told, and as a part of the larger count.
const LEAST_CALLS: u64 = 10;
const LEAST_PART: f64 = 0.05;
/// The number of differences that are told without being asked for.
const TOLD: usize = 3;

/// The numbers of system calls of one kind that a start makes with and without the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallDifference {
    pub(super) kind: &'static str,
    /// The condition that is compared with the full cache: without the cache, or with an empty one.
    pub(super) condition: Condition,
    /// The number of system calls of this kind in the start without the cache, and in the start
    /// with it.
    pub(super) calls: [u64; 2],
    /// The deepest folder below whose path most of the difference in system calls lies.
    pub(super) below: String,
    /// The numbers of system calls below the deepest folder, without the cache and with it.
    pub(super) calls_below: [u64; 2],
}

impl CallDifference {
    fn size(&self) -> u64 {
        self.calls[0].abs_diff(self.calls[1])
    }

    fn is_told(&self) -> bool {
        let larger = self.calls[0].max(self.calls[1]) as f64;
        self.size() >= LEAST_CALLS && self.size() as f64 >= LEAST_PART * larger
    }
}

/// Returns the traced starts that are compared: without the cache, or filling it, and with it.
fn pair<'a>(case: &StartCase<'a>) -> Option<(Condition, &'a StartCalls, &'a StartCalls)> {
    let with = case.calls(Condition::With)?;
    let of = |condition| Some((condition, case.calls(condition)?, with));
    Condition::LACKING.into_iter().find_map(of)
}

/// Returns the number of system calls of these kinds that a start makes without the cache, and with
/// it; `None` if no start was traced.
pub(super) fn sum_of(case: &StartCase<'_>, kinds: &[&str]) -> Option<[u64; 2]> {
    let (_, other, with) = pair(case)?;
    Some([other, with].map(|it| kinds.iter().map(|kind| it.calls.of(kind)).sum()))
}

/// Returns, for each kind of system call, how many a start makes without the cache and with it, the
/// largest difference first.
pub(super) fn differences(case: &StartCase<'_>) -> Vec<CallDifference> {
    let Some((condition, other, with)) = pair(case) else { return Vec::new() };
    let of_kind = |kind| {
        let (below, calls_below) = deepest(kind, [other, with]);
        let calls = [other.calls.of(kind), with.calls.of(kind)];
        CallDifference { kind, condition, calls, below, calls_below }
    };
    let mut all: Vec<CallDifference> = CallCounts::KINDS.map(of_kind).into();
    all.sort_by_key(|difference| std::cmp::Reverse(difference.size()));
    all
}

/// Goes down from the root as long as one folder has most of the difference below it. Returns that folder, and the
/// calls below.
fn deepest(kind: &str, both: [&StartCalls; 2]) -> (String, [u64; 2]) {
    // `{scratch}` is a folder of the root here.
    let root = Path::new("/");
    let folders = both.map(|calls| {
        let of = |folder: &FolderCalls| (root.join(&folder.path), folder.calls.of(kind));
        calls.folders.iter().map(of).collect::<Vec<_>>()
    });
    let below = |path: &Path| {
        [0, 1].map(|at| {
            let inside = folders[at].iter().filter(|(folder, _)| folder.starts_with(path));
            inside.map(|(_, calls)| calls).sum::<u64>()
        })
    };
    let difference = |[other, with]: [u64; 2]| other as f64 - with as f64;
    let mut place = root;
    let whole = difference(below(place));
    loop {
        let all = folders.iter().flatten();
        let children: BTreeSet<&Path> =
            all.filter_map(|(folder, _)| child_towards(place, folder)).collect();
        let holds = |child: &&&Path| difference(below(child)) / whole >= PART;
        match children.iter().find(holds) {
            Some(child) => place = child,
            None => break,
        }
    }
    let name = place.to_string_lossy();
    let name = name.strip_prefix('/').filter(|it| it.starts_with('{')).unwrap_or(&name);
    (name.to_owned(), below(place))
}

/// Returns the folder directly below a place, on the way to a path.
fn child_towards<'a>(place: &Path, path: &'a Path) -> Option<&'a Path> {
    path.ancestors().find(|ancestor| ancestor.parent() == Some(place))
}

/// Returns sentences on the largest differences in system calls between starts with and without the
/// cache; none if they make the same calls.
pub(super) fn sentences(case: &StartCase<'_>) -> Vec<String> {
    let told = differences(case).into_iter().filter(CallDifference::is_told).take(TOLD);
    let mut texts: Vec<String> = told
        .map(|it| {
            let [other, with] = it.calls.map(|count| Quantity::Number.write(count as f64));
            let place = match it.below.as_str() {
                "/" => "in several folders".to_owned(),
                below => format!("most of the difference is below {}", printable(below)),
            };
            format!("Why: {} calls {} {other} times, with {with}: {place}.", it.condition, it.kind)
        })
        .collect();
    if let Some((condition, other, _)) = pair(case)
        && !other.only_programs.is_empty()
    {
        let programs = list(&other.only_programs, 4);
        texts.push(format!("Why: {condition} runs programs that with does not: {programs}."));
    }
    texts
}

/// Returns warnings that the program, started without the measured cache, seems to have another
/// cache of its own.
pub(super) fn own_cache(case: &StartCase<'_>) -> Vec<String> {
    let off = case.calls(Condition::Off);
    let texts = off.into_iter().flat_map(|calls| &calls.own_cache);
    texts.map(|text| format!("Warning: {}.", printable(text))).collect()
}

/// Returns a table of the system calls of a start with the cache and one without it; `None` if no
/// start was traced.
pub(super) fn table(case: &StartCase<'_>) -> Option<Table> {
    let (condition, other, with) = pair(case)?;
    let count = |count: u64| Quantity::Number.write(count as f64);
    let row = |it: CallDifference| {
        let [other, with] = it.calls.map(count);
        let [below_other, below_with] = it.calls_below.map(count);
        vec![it.kind.to_owned(), other, with, printable(&it.below), below_other, below_with]
    };
    let mut rows: Vec<Vec<String>> = differences(case).into_iter().map(row).collect();
    let [other, with] = [other, with].map(|it| Quantity::Bytes.write(it.read_bytes as f64));
    let nothing = String::new;
    rows.push(vec!["bytes read".to_owned(), other, with, nothing(), nothing(), nothing()]);
    let condition = condition.to_string();
    let (there_other, there_with) = (format!("there: {condition}"), "there: with".to_owned());
    let names = ["Call", &condition, "with", "Most of it below", &there_other, &there_with];
    let caption = format!("{}: calls of one traced start of each", title(case));
    Some(Table::of_numbers(caption, &names, rows).with_text_in(&[3]))
}

/// Returns sentences on the files that only the start with or without the cache opens, and the
/// programs that only one of them runs.
pub(super) fn only(case: &StartCase<'_>) -> Vec<String> {
    let Some((condition, other, with)) = pair(case) else { return Vec::new() };
    let mut texts = Vec::new();
    for (name, calls) in [(condition, other), (Condition::With, with)] {
        if calls.only_files > 0 {
            let files = Quantity::Number.write(calls.only_files as f64);
            let names = list(&calls.only, 5);
            texts.push(format!("Only {name} opens {files} files, by size: {names}."));
        }
        if !calls.only_programs.is_empty() {
            texts.push(format!("Only {name} runs {}.", list(&calls.only_programs, 10)));
        }
        if calls.is_cut {
            texts.push(format!("The trace of {name} has more files or folders than it keeps."));
        }
    }
    texts
}

fn list(names: &[String], most: usize) -> String {
    let shown: Vec<String> = names.iter().take(most).map(|name| printable(name)).collect();
    let more = if names.len() > most { ", ..." } else { "" };
    shown.join(", ") + more
}

/// Returns the differences in system calls between starts with and without the cache as JSON; null
/// if no start was traced.
pub(super) fn in_json(case: &StartCase<'_>) -> Value {
    let Some((condition, other, with)) = pair(case) else { return Value::Null };
    let calls = differences(case).into_iter().map(|it| {
        json!({
            "call": it.kind, "other": it.calls[0], "with": it.calls[1], "below": it.below,
            "below_other": it.calls_below[0], "below_with": it.calls_below[1],
        })
    });
    let only = |calls: &StartCalls| {
        json!({
            "files": calls.only_files, "first": calls.only, "programs": calls.only_programs,
        })
    };
    json!({
        "other": condition.name(), "calls": calls.collect::<Vec<_>>(),
        "read_bytes": { "other": other.read_bytes, "with": with.read_bytes },
        "only_other": only(other), "only_with": only(with), "own_cache": other.own_cache,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(folders: &[(&str, u64)]) -> StartCalls {
        let folder = |(path, getdents): &(&str, u64)| FolderCalls {
            path: (*path).to_owned(),
            calls: CallCounts { getdents: *getdents, ..CallCounts::default() },
        };
        let folders: Vec<FolderCalls> = folders.iter().map(folder).collect();
        let mut sum = CallCounts::default();
        for folder in &folders {
            sum.add(folder.calls);
        }
        StartCalls { calls: sum, folders, ..StartCalls::default() }
    }

    #[test]
    fn a_difference_is_placed_in_the_deepest_folder_that_has_most_of_it() {
        let off = calls(&[
            ("/usr/share/icons/Papirus/16x16/apps", 1_000),
            ("/usr/share/icons/Papirus/24x24/apps", 1_000),
            ("/usr/lib", 30),
            ("/etc", 100),
        ]);
        let with = calls(&[("/usr/share/icons/Papirus", 20), ("/etc", 100)]);
        let (below, counts) = deepest("getdents", [&off, &with]);
        assert_eq!((below.as_str(), counts), ("/usr/share/icons/Papirus", [2_000, 20]));
        // Less than with the cache is a difference as well.
        let (below, counts) = deepest("getdents", [&with, &off]);
        assert_eq!((below.as_str(), counts), ("/usr/share/icons/Papirus", [20, 2_000]));
        assert_eq!(deepest("getdents", [&with, &with]).0, "/", "there is none");
        let scratch = calls(&[("{scratch}/off/icons", 700)]);
        assert_eq!(deepest("getdents", [&scratch, &with]).0, "{scratch}/off/icons");
    }
}
