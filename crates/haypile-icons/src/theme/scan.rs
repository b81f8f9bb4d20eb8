//! Scanning the icons of a theme and of the themes that it inherits.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::file::{FolderKind, ThemeFile, ThemeFolder};
use super::index::{Builder, Extension, ThemeIndex};
use super::inherit::Inheritance;
use crate::regular::open_regular;
use crate::stamp::{PathKind, Stamp, now_ns};

/// The largest `index.theme`, in bytes.
const MAX_THEME_FILE_BYTES: u64 = 4 << 20;
/// The most files of one index.
const MAX_FILES: usize = 1_000_000;

/// Counts of the system calls that a scan of a theme made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanCounts {
    /// The number of files and folders whose status was read.
    pub stats: u64,
    /// The number of folders that were listed.
    pub listed: u64,
}

/// Scans the files of an icon theme, of the themes that it inherits, and `hicolor`, in these base folders, and builds
/// their index; icons without a theme, directly in the base folders, come last.
pub fn scan(theme: &str, base: &[PathBuf]) -> (ThemeIndex, ScanCounts) {
    let mut scan = Scan {
        builder: Builder::new(theme, base, now_ns()),
        counts: ScanCounts::default(),
        files: 0,
        seen: HashMap::new(),
    };
    let mut themes = Inheritance::of(theme);
    let mut rank = 0;
    while let Some(name) = themes.next_theme() {
        let parents = scan.theme(&name, rank, base);
        themes.inherit(parents);
        rank += 1;
    }
    for folder in base {
        // The pixmaps of a base folder have no size: any is right.
        let any = FolderKind::Scalable { min: 1, max: u32::from(u16::MAX) };
        let whole = ThemeFolder { path: String::new(), size: 48, scale: 1, kind: any };
        if scan.watch_below(folder, Path::new("")) == Some(PathKind::Folder) {
            scan.folder(folder, &whole, rank, false);
        }
    }
    (scan.builder.finish(), scan.counts)
}

struct Scan {
    builder: Builder,
    counts: ScanCounts,
    files: usize,
    /// Paths whose status is known, and whether they are watched.
    seen: HashMap<PathBuf, (Option<Stamp>, Option<PathKind>, bool)>,
}

impl Scan {
    /// Adds the folders of a theme, and returns the themes that it inherits.
    fn theme(&mut self, name: &str, rank: u16, base: &[PathBuf]) -> Vec<String> {
        let places: Vec<PathBuf> = base.iter().map(|folder| folder.join(name)).collect();
        let mut theme: Option<ThemeFile> = None;
        for place in &places {
            let description = place.join("index.theme");
            let kind = self.watch_below(place, Path::new("index.theme"));
            // The first description counts; a later one may become the first, and is watched.
            if theme.is_none() && kind.is_some() {
                theme = read_theme(&description);
            }
        }
        let Some(theme) = theme else { return Vec::new() };
        for folder in &theme.folders {
            for place in &places {
                let kind = self.watch_below(place, Path::new(&folder.path));
                if kind == Some(PathKind::Folder) {
                    self.folder(&place.join(&folder.path), folder, rank, true);
                }
            }
        }
        theme.inherits
    }

    /// Adds the icons in a folder.
    fn folder(&mut self, path: &Path, folder: &ThemeFolder, rank: u16, is_themed: bool) {
        let Ok(entries) = fs::read_dir(path) else { return };
        self.counts.listed += 1;
        let mut names: BTreeMap<String, Vec<Extension>> = BTreeMap::new();
        for entry in entries.flatten() {
            let Some(file) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let Some((name, extension)) = Extension::split(&file) else { continue };
            // A link without a target is not an icon: it is asked for, and for base folders also its kind.
            let is_link = entry.file_type().map_or(true, |kind| kind.is_symlink());
            if is_link || !is_themed {
                self.counts.stats += 1;
                let found = Stamp::of(&entry.path());
                if found.is_none() && is_link {
                    // Its target may appear somewhere else, where no folder tells.
                    self.builder.watch(&entry.path(), None);
                }
                if !matches!(found, Some((_, PathKind::File))) {
                    continue;
                }
            }
            if self.files >= MAX_FILES {
                return;
            }
            self.files += 1;
            names.entry(name.to_owned()).or_default().push(extension);
        }
        self.builder.folder(path, folder, rank, names);
    }

    /// Adds a path to those that are checked when the index is used, and returns its kind. Of a path that
    /// is not there, the first folder that is missing is checked: nothing below can come before it. That
    /// spares thousands of checks: hicolor names some 600 folders, in each base folder.
    ///
    /// The stamp is taken before the folder is listed: what changes in the meantime changes the stamp.
    fn watch_below(&mut self, place: &Path, path: &Path) -> Option<PathKind> {
        let mut whole = place.to_owned();
        for part in path {
            if self.status(&whole).is_none() {
                break;
            }
            whole.push(part);
        }
        let kind = self.status(&whole);
        let (stamp, _, is_watched) = self.seen.get_mut(&whole).expect("its status was just read");
        if !std::mem::replace(is_watched, true) {
            self.builder.watch(&whole, *stamp);
        }
        kind
    }

    /// Returns the kind of a path, asked for once.
    fn status(&mut self, path: &Path) -> Option<PathKind> {
        if let Some((_, kind, _)) = self.seen.get(path) {
            return *kind;
        }
        self.counts.stats += 1;
        let found = Stamp::of(path);
        let (stamp, kind) = (found.map(|(stamp, _)| stamp), found.map(|(_, kind)| kind));
        self.seen.insert(path.to_owned(), (stamp, kind, false));
        kind
    }
}

pub(super) fn read_theme(path: &Path) -> Option<ThemeFile> {
    let file = open_regular(path).ok()??;
    let mut bytes = Vec::new();
    file.take(MAX_THEME_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(ThemeFile::parse(&String::from_utf8_lossy(&bytes)))
}
