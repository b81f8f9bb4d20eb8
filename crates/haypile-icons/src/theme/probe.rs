//! An icon without an index: every candidate is asked for, as the specification's pseudo code does.

use std::path::{Path, PathBuf};

use super::choose::{IconName, distance};
use super::file::ThemeFile;
use super::inherit::Inheritance;
use super::scan::read_theme;
use crate::stamp::{PathKind, Stamp};

/// Counts of the system calls that a search for an icon made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbeCounts {
    /// The number of system calls for the status of a path.
    pub stats: u64,
    /// The number of paths whose status was asked for and that did not exist.
    pub negative: u64,
}

/// Finds an icon by asking for the status of each candidate file, folder by folder. The result is
/// that of [`super::ThemeIndex::find`], except for themes in several base folders with different
/// descriptions.
pub fn probe(
    theme: &str,
    base: &[PathBuf],
    name: IconName<'_>,
    size: (u32, u32),
    counts: &mut ProbeCounts,
) -> Option<PathBuf> {
    let mut themes = Inheritance::of(theme);
    while let Some(own) = themes.next_theme() {
        let mut description = base.iter().map(|folder| folder.join(&own).join("index.theme"));
        let Some(file) = description.find_map(|path| read_theme(&path)) else { continue };
        for name in name.from_specific() {
            if let Some(found) = in_theme(&own, &file, base, name, size, counts) {
                return Some(found);
            }
        }
        themes.inherit(file.inherits);
    }
    let unthemed =
        name.from_specific().flat_map(|name| base.iter().map(move |folder| (folder, name)));
    let mut candidates = unthemed.flat_map(|(folder, name)| {
        ["png", "svg"].map(|extension| folder.join(format!("{name}.{extension}")))
    });
    candidates.find(|path| is_file(path, counts))
}

fn in_theme(
    theme: &str,
    file: &ThemeFile,
    base: &[PathBuf],
    name: &str,
    size: (u32, u32),
    counts: &mut ProbeCounts,
) -> Option<PathBuf> {
    let mut best: Option<(u32, PathBuf)> = None;
    for folder in &file.folders {
        let far = distance(size, (folder.size, folder.scale, folder.kind));
        if best.as_ref().is_some_and(|(other, _)| far >= *other) {
            continue;
        }
        for place in base {
            let place = place.join(theme).join(&folder.path);
            let found = ["png", "svg"]
                .map(|extension| place.join(format!("{name}.{extension}")))
                .into_iter()
                .find(|path| is_file(path, counts));
            if let Some(path) = found {
                best = Some((far, path));
                break;
            }
        }
        if best.as_ref().is_some_and(|(far, _)| *far == 0) {
            break;
        }
    }
    best.map(|(_, path)| path)
}

fn is_file(path: &Path, counts: &mut ProbeCounts) -> bool {
    counts.stats += 1;
    let is_file = matches!(Stamp::of(path), Some((_, PathKind::File)));
    counts.negative += u64::from(!is_file);
    is_file
}
