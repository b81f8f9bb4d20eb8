//! Summary of the trace of a start for its row: sums by folder, and the files that only this condition opens.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use haypile_measure::result::{CallCounts, FolderCalls, StartCalls};
use haypile_startup::{CallTrace, FileUse};

use crate::report::number::first;

/// The most folders, and the most names of files, that a row keeps.
const MOST_FOLDERS: usize = 300;
const MOST_NAMES: usize = 40;

/// The scratch folder in rows.
const SCRATCH: &str = "{scratch}";

/// The most files of an own cache that are named.
const MOST_OWN: usize = 3;

/// Converts the trace of a start to the system calls that a result row keeps, compared with those
/// of another condition. The scratch folder, whose name differs in each run, is `{scratch}` there.
pub(super) fn calls(trace: &CallTrace, other: Option<&CallTrace>, scratch: &Path) -> StartCalls {
    let is_only = |path: &PathBuf| other.is_some_and(|other| !other.files.contains_key(path));
    let mut only: Vec<(&PathBuf, &FileUse)> =
        trace.files.iter().filter(|(path, _)| is_only(path)).collect();
    only.sort_by_key(|(path, file)| (std::cmp::Reverse(file.bytes), *path));
    let shown = |path: &Path| shown(path, scratch);
    let is_own = |path: &&PathBuf| other.is_some_and(|it| !it.programs.contains_key(*path));
    StartCalls {
        calls: trace.calls,
        read_bytes: trace.read_bytes,
        folders: rolled_up(&trace.folders, scratch),
        only_files: only.len() as u64,
        only: only.iter().take(MOST_NAMES).map(|(path, _)| shown(path)).collect(),
        only_programs: trace.programs.keys().filter(is_own).map(|path| shown(path)).collect(),
        own_cache: Vec::new(),
        is_cut: trace.is_cut,
    }
}

/// Returns a path in words.
fn shown(path: &Path, scratch: &Path) -> String {
    match path.strip_prefix(scratch) {
        Ok(rest) if rest.as_os_str().is_empty() => SCRATCH.to_owned(),
        Ok(rest) => Path::new(SCRATCH).join(rest).to_string_lossy().into_owned(),
        Err(_) => path.to_string_lossy().into_owned(),
    }
}

/// Returns the folders with the most calls; those of others count for the nearest of these above them.
fn rolled_up(folders: &BTreeMap<PathBuf, CallCounts>, scratch: &Path) -> Vec<FolderCalls> {
    let root = Path::new("/");
    let mut most: Vec<(&Path, u64)> =
        folders.iter().map(|(path, calls)| (path.as_path(), calls.all())).collect();
    most.sort_by_key(|(path, calls)| (std::cmp::Reverse(*calls), *path));
    let kept: BTreeSet<&Path> =
        most.iter().take(MOST_FOLDERS - 1).map(|(path, _)| *path).chain([root]).collect();
    let mut sums: BTreeMap<&Path, CallCounts> = BTreeMap::new();
    for (path, calls) in folders {
        // Where the scratch folder lies says nothing of the program.
        let is_above = scratch != path && scratch.starts_with(path);
        let path = if is_above { root } else { path };
        let place = path.ancestors().find(|path| kept.contains(path)).unwrap_or(root);
        sums.entry(place).or_default().add(*calls);
    }
    let row = |(path, calls)| FolderCalls { path: shown(path, scratch), calls };
    sums.into_iter().map(row).collect()
}

/// Returns sentences about files which show that a program started without its cache has another
/// cache of its own.
pub(super) fn own_cache(
    (off, with): (&CallTrace, Option<&CallTrace>),
    cache: &[PathBuf],
    (written_between, scratch): (Option<(i64, i64)>, &Path),
) -> Vec<String> {
    let read = || off.files.iter().filter(|(_, file)| file.bytes > 0);
    let remedy = "then it is not without a cache; --off points it elsewhere, --prepare removes it";
    let of = |is_it: &dyn Fn(&PathBuf, &FileUse) -> bool| {
        let found = read().filter(|(path, file)| is_it(path, file));
        let found: Vec<String> = found.map(|(path, _)| shown(path, scratch)).collect();
        (!found.is_empty()).then(|| first(&found, MOST_OWN))
    };
    let is_only = |path: &PathBuf| with.is_some_and(|with| !with.files.contains_key(path));
    let places: Vec<PathBuf> = cache.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let of_cache = of(&|path, _| places.iter().any(|cache| path.starts_with(cache)));
    let written = written_between.and_then(|(from, to)| {
        of(&|path, file| is_only(path) && (from..=to).contains(&file.changed_ns))
    });
    let mut texts = Vec::new();
    texts.extend(of_cache.map(|names| format!("off opens the cache: {names}; {remedy}")));
    texts.extend(
        written.map(|names| {
            format!("off opens what an earlier start of off wrote: {names}; {remedy}")
        }),
    );
    if texts.is_empty() {
        let found = of(&|path, _| is_only(path) && is_where_caches_are(path));
        texts.extend(found.map(|names| {
            format!("off opens files that with does not, where caches are: {names}; if they are one of its own, {remedy}")
        }));
    }
    texts
}

/// Whether a folder on the way to a file is called a cache.
fn is_where_caches_are(path: &Path) -> bool {
    let folders = path.parent().into_iter().flat_map(Path::components);
    folders.into_iter().any(|part| {
        let name = part.as_os_str().to_string_lossy().to_lowercase();
        name.contains("cache")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(files: &[(&str, i64)]) -> CallTrace {
        let file = |(path, changed_ns): &(&str, i64)| {
            (PathBuf::from(path), FileUse { bytes: 10, changed_ns: *changed_ns, is_written: false })
        };
        CallTrace { files: files.iter().map(file).collect(), ..CallTrace::default() }
    }

    #[test]
    fn an_own_cache_is_known_by_its_writer_and_suspected_by_its_place() {
        let with = trace(&[("/usr/lib/x", 1), ("/given/registry", 50)]);
        let of = |files: &[(&str, i64)]| {
            own_cache(
                (&trace(files), Some(&with)),
                &[PathBuf::from("/tmp")],
                (Some((100, 200)), Path::new("/scratch")),
            )
        };
        assert_eq!(of(&[("/usr/lib/x", 150), ("/src/a", 7)]), [""; 0], "both open it");
        assert_eq!(of(&[("/scratch/conf", 99), ("/scratch/late", 201)]), [""; 0]);
        let written = of(&[("/scratch/none.bin", 150), ("/home/u/.cache/y", 7)]);
        assert!(
            written.len() == 1 && written[0].contains("start of off wrote: {scratch}/none.bin")
        );
        let suspected = of(&[("/home/u/.cache/gstreamer-1.0/registry", 7)]);
        assert!(suspected[0].contains("where caches are: /home/u/.cache/gstreamer-1.0/registry"));
        let itself = of(&[("/tmp/c", 7)]);
        assert!(itself[0].contains("off opens the cache: /tmp/c"), "{itself:?}");
    }

    #[test]
    fn folders_with_few_calls_count_for_those_above_and_no_call_is_lost() {
        let mut folders = BTreeMap::new();
        for number in 0..1_000_u64 {
            let calls = CallCounts { stat: 1 + number % 7, ..CallCounts::default() };
            folders.insert(PathBuf::from(format!("/a/{}/{number}", number % 10)), calls);
        }
        let sum: u64 = folders.values().map(|calls| calls.stat).sum();
        let rolled = rolled_up(&folders, Path::new("/x"));
        assert!(rolled.len() <= MOST_FOLDERS);
        assert_eq!(rolled.iter().map(|folder| folder.calls.stat).sum::<u64>(), sum);
        let one = CallCounts { stat: 1, ..CallCounts::default() };
        let places = ["/home/u", "/home/u/tmp/s", "/home/u/tmp/s/a"].map(PathBuf::from);
        let folders = places.into_iter().map(|path| (path, one)).collect();
        let rolled = rolled_up(&folders, Path::new("/home/u/tmp/s"));
        let paths: Vec<&str> = rolled.iter().map(|folder| folder.path.as_str()).collect();
        assert_eq!(paths, ["/", "{scratch}", "{scratch}/a"], "the place of the scratch folder");
    }
}
