//! The index of a theme in bytes, as it is stored and searched in place.
//!
//! ```text
//! head | watched paths | folders | names (sorted) | files | texts
//! ```
//!
//! All numbers are little-endian. Nothing is trusted: a place outside of the bytes is an icon that is
//! not there, and a wrong head means that there is none.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haypile::OwnedPinned;

use super::choose::{IconName, distance};
use super::file::{FolderKind, ThemeFolder};
use crate::stamp::{STAMP_BYTES, Stamp, step};

/// Begins an index; the digits are the version of the format.
const MAGIC: [u8; 8] = *b"hpicon02";
/// Magic, when it was scanned, its base, four counts, bytes of texts, whether it is racy, the hash of all of that.
const HEAD_BYTES: usize = ID_AT + 8;
/// The place of the hash of all other bytes.
const ID_AT: usize = 8 + 8 + 8 + 5 * 4 + 4;
/// Place and length of the path, whether it is there, the stamp.
const WATCHED_BYTES: usize = 12 + STAMP_BYTES + 4;
/// Place and length of the path, size, scale, kind, two numbers of the kind, rank.
const FOLDER_BYTES: usize = 8 + 6 * 4;
/// Place and length of the name, first file, number of files.
const NAME_BYTES: usize = 16;
/// The folder, the extension.
const FILE_BYTES: usize = 8;

/// A file extension of icons: PNG, SVG and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Extension {
    Png,
    Svg,
}

impl Extension {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Svg => "svg",
        }
    }

    /// Splits a file name into an icon's name and its extension; `None` if the file is not an icon.
    pub(super) fn split(file: &str) -> Option<(&str, Self)> {
        let (name, extension) = file.rsplit_once('.')?;
        let extension = match extension {
            "png" => Self::Png,
            "svg" => Self::Svg,
            _ => return None,
        };
        IconName::new(name).map(|_| (name, extension))
    }
}

/// An index of an icon theme: the files of each icon, and the paths and stamps that show whether the index is up to
/// date.
#[derive(Clone)]
pub struct ThemeIndex(Bytes);

#[derive(Clone)]
enum Bytes {
    Own(Arc<Vec<u8>>),
    Cached(Arc<OwnedPinned>),
}

/// A builder of the index of an icon theme.
pub(super) struct Builder {
    scanned_ns: i64,
    base_hash: u64,
    watched: Vec<u8>,
    folders: Vec<u8>,
    folder_count: u32,
    names: BTreeMap<String, Vec<(u32, Extension)>>,
    texts: Vec<u8>,
    is_racy: bool,
}

/// Returns a hash that identifies a theme and the folders in which it is searched.
pub(crate) fn base_hash(theme: &str, base: &[PathBuf]) -> u64 {
    let mut bytes = theme.as_bytes().to_vec();
    for folder in base {
        bytes.push(0);
        bytes.extend(folder.as_os_str().as_bytes());
    }
    xxhash_rust::xxh3::xxh3_64(&bytes)
}

impl Builder {
    pub(super) fn new(theme: &str, base: &[PathBuf], scanned_ns: i64) -> Self {
        Self {
            scanned_ns,
            base_hash: base_hash(theme, base),
            watched: Vec::new(),
            folders: Vec::new(),
            folder_count: 0,
            names: BTreeMap::new(),
            texts: Vec::new(),
            is_racy: false,
        }
    }

    /// Adds a path to the index that must be unchanged for the index to be up to date.
    pub(super) fn watch(&mut self, path: &Path, stamp: Option<Stamp>) {
        self.is_racy |= stamp.is_some_and(|stamp| stamp.is_racy(self.scanned_ns, step(path)));
        let (at, bytes) = self.text(path.as_os_str().as_bytes());
        // For the system's calls, which want a zero at the end.
        self.texts.push(0);
        self.watched.extend(at.to_le_bytes());
        self.watched.extend(bytes.to_le_bytes());
        self.watched.extend(u32::from(stamp.is_some()).to_le_bytes());
        self.watched.extend(stamp.unwrap_or_default().to_bytes());
        self.watched.extend([0; 4]);
    }

    /// Adds a folder of the theme, with its icons, to the index.
    pub(super) fn folder(
        &mut self,
        path: &Path,
        folder: &ThemeFolder,
        rank: u16,
        names: BTreeMap<String, Vec<Extension>>,
    ) {
        if names.is_empty() {
            return;
        }
        let (at, bytes) = self.text(path.as_os_str().as_bytes());
        let (kind, first, second) = match folder.kind {
            FolderKind::Fixed => (0, 0, 0),
            FolderKind::Scalable { min, max } => (1, min, max),
            FolderKind::Threshold(threshold) => (2, threshold, 0),
        };
        // The kind and the rank share a number.
        let kind_and_rank = kind << 16 | u32::from(rank);
        for number in [at, bytes, folder.size, folder.scale, kind_and_rank, first, second, 0] {
            self.folders.extend(number.to_le_bytes());
        }
        for (name, mut extensions) in names {
            // Folders are listed in any order; the specification asks for PNG first.
            extensions.sort_unstable();
            let files = self.names.entry(name).or_default();
            files.extend(extensions.into_iter().map(|extension| (self.folder_count, extension)));
        }
        self.folder_count += 1;
    }

    fn text(&mut self, text: &[u8]) -> (u32, u32) {
        let at = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.extend(text);
        (at, u32::try_from(text.len()).unwrap_or(u32::MAX))
    }

    pub(super) fn finish(mut self) -> ThemeIndex {
        let names = std::mem::take(&mut self.names);
        let (mut name_bytes, mut file_bytes) = (Vec::new(), Vec::new());
        let (mut name_count, mut file_count) = (0_u32, 0_u32);
        for (name, files) in names {
            let (at, bytes) = self.text(name.as_bytes());
            let count = u32::try_from(files.len()).unwrap_or(u32::MAX);
            for number in [at, bytes, file_count, count] {
                name_bytes.extend(number.to_le_bytes());
            }
            for (folder, extension) in files {
                file_bytes.extend(folder.to_le_bytes());
                file_bytes.extend(u32::from(extension == Extension::Svg).to_le_bytes());
            }
            name_count += 1;
            file_count += count;
        }
        let watched_count = u32::try_from(self.watched.len() / WATCHED_BYTES).unwrap_or(u32::MAX);
        let texts = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::new();
        bytes.extend(MAGIC);
        bytes.extend(self.scanned_ns.to_le_bytes());
        bytes.extend(self.base_hash.to_le_bytes());
        for count in [watched_count, self.folder_count, name_count, file_count, texts] {
            bytes.extend(count.to_le_bytes());
        }
        bytes.extend(u32::from(self.is_racy).to_le_bytes());
        bytes.extend([0; HEAD_BYTES - ID_AT]);
        for part in [&self.watched, &self.folders, &name_bytes, &file_bytes, &self.texts] {
            bytes.extend(part);
        }
        let id = xxhash_rust::xxh3::xxh3_64(&bytes);
        bytes[ID_AT..HEAD_BYTES].copy_from_slice(&id.to_le_bytes());
        ThemeIndex(Bytes::Own(Arc::new(bytes)))
    }
}

impl ThemeIndex {
    /// Decodes a value from the cache as a theme's index, if it has this version and belongs to these folders.
    pub(crate) fn from_stored(value: OwnedPinned, hash: u64) -> Option<Self> {
        let index = Self(Bytes::Cached(Arc::new(value)));
        index.view().is_some_and(|view| view.base_hash() == Some(hash)).then_some(index)
    }

    #[cfg(test)]
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let index = Self(Bytes::Own(Arc::new(bytes)));
        index.view().is_some().then_some(index)
    }

    /// Returns the theme's index as bytes, as it is stored in the cache.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Own(bytes) => bytes,
            Bytes::Cached(bytes) => bytes,
        }
    }

    /// Returns the number of distinct icon names in the theme.
    pub fn len(&self) -> usize {
        self.view().map_or(0, |view| view.names)
    }

    /// Whether the theme has no icons.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of paths that are checked to find out whether the theme's index is up to date.
    pub fn watched(&self) -> usize {
        self.view().map_or(0, |view| view.watched)
    }

    /// Returns a number that identifies the contents of the index: one with other icons, folders or stamps has another
    /// number.
    pub(crate) fn id(&self) -> u64 {
        let id = self.as_bytes().get(ID_AT..HEAD_BYTES).and_then(|id| id.try_into().ok());
        id.map_or(0, u64::from_le_bytes)
    }

    /// Whether a folder was changed so shortly before the scan that a later change may not be
    /// noticed: the index must not be stored.
    pub fn is_racy(&self) -> bool {
        number(self.as_bytes(), 44) != Some(0)
    }

    /// Whether all folders and `index.theme` files of the theme are unchanged since the scan. It makes one system call
    /// for each.
    pub fn is_current(&self) -> bool {
        let Some(view) = self.view() else { return false };
        (0..view.watched)
            .all(|at| view.watched(at).is_some_and(|(path, stamp)| Stamp::of_c_path(path) == stamp))
    }

    /// Returns the file of the icon that serves a name, size and scale best: in the first theme that has the name (or a
    /// less specific one if `is_generic`), in the folder nearest to the size.
    pub fn find(
        &self,
        name: IconName<'_>,
        (size, scale): (u32, u32),
        is_generic: bool,
    ) -> Option<PathBuf> {
        let view = self.view()?;
        let names = name.from_specific().take(if is_generic { usize::MAX } else { 1 });
        // Rank of the theme, then how specific the name is, then the distance.
        let mut best: Option<((u32, usize, u32), Found<'_>)> = None;
        for (specific, name) in names.enumerate() {
            for (folder, extension) in view.files(name) {
                let Some(found) = view.folder(folder) else { continue };
                let far = distance((size, scale), (found.size, found.scale, found.kind));
                let place = (found.rank, specific, far);
                if best.as_ref().is_none_or(|(other, _)| place < *other) {
                    best = Some((place, Found { path: found.path, name, extension }));
                }
            }
        }
        let (_, Found { path, name, extension }) = best?;
        let mut file = Vec::with_capacity(path.len() + name.len() + 8);
        for part in [path, b"/", name.as_bytes(), b".", extension.text().as_bytes()] {
            file.extend(part);
        }
        Some(PathBuf::from(OsString::from_vec(file)))
    }

    /// Returns the names of all icons in the theme, in byte order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let view = self.view();
        let count = view.as_ref().map_or(0, |view| view.names);
        (0..count).filter_map(move |at| std::str::from_utf8(view.as_ref()?.name(at)?.0).ok())
    }

    fn view(&self) -> Option<View<'_>> {
        View::of(self.as_bytes())
    }
}

impl fmt::Debug for ThemeIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThemeIndex")
            .field("names", &self.len())
            .field("watched", &self.watched())
            .finish_non_exhaustive()
    }
}

/// The bytes of an index, and where their parts lie.
struct View<'a> {
    bytes: &'a [u8],
    watched: usize,
    folders: usize,
    names: usize,
    files: usize,
    folders_at: usize,
    names_at: usize,
    files_at: usize,
    texts_at: usize,
}

impl<'a> View<'a> {
    /// `None` if the parts are not the whole.
    fn of(bytes: &'a [u8]) -> Option<Self> {
        if !bytes.starts_with(&MAGIC) {
            return None;
        }
        let count = |at: usize| usize::try_from(number(bytes, 24 + 4 * at)?).ok();
        let (watched, folders, names, files) = (count(0)?, count(1)?, count(2)?, count(3)?);
        let after =
            |from: usize, count: usize, each: usize| from.checked_add(count.checked_mul(each)?);
        let folders_at = after(HEAD_BYTES, watched, WATCHED_BYTES)?;
        let names_at = after(folders_at, folders, FOLDER_BYTES)?;
        let files_at = after(names_at, names, NAME_BYTES)?;
        let texts_at = after(files_at, files, FILE_BYTES)?;
        let is_whole = after(texts_at, count(4)?, 1)? == bytes.len();
        let view = Self {
            bytes,
            watched,
            folders,
            names,
            files,
            folders_at,
            names_at,
            files_at,
            texts_at,
        };
        is_whole.then_some(view)
    }

    fn base_hash(&self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes.get(16..24)?.try_into().ok()?))
    }

    /// Returns a path, and the stamp that it had if it was there.
    fn watched(&self, at: usize) -> Option<(&'a CStr, Option<Stamp>)> {
        let record = self.record(HEAD_BYTES, WATCHED_BYTES, at)?;
        let path = self.text(number(record, 0)?, number(record, 4)?.checked_add(1)?)?;
        let is_there = number(record, 8)? != 0;
        let stamp = Stamp::from_bytes(record.get(12..12 + STAMP_BYTES)?.try_into().ok()?);
        Some((CStr::from_bytes_with_nul(path).ok()?, is_there.then_some(stamp)))
    }

    /// Returns the files of a name.
    fn files(&self, name: &str) -> impl Iterator<Item = (usize, Extension)> {
        let (mut low, mut high) = (0, self.names);
        let mut range = 0..0;
        while low < high {
            let middle = low.midpoint(high);
            let Some((own, first, count)) = self.name(middle) else { break };
            match own.cmp(name.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    range = first..first.saturating_add(count).min(self.files);
                    break;
                }
            }
        }
        range.filter_map(move |at| {
            let record = self.record(self.files_at, FILE_BYTES, at)?;
            let is_svg = number(record, 4)? != 0;
            let extension = if is_svg { Extension::Svg } else { Extension::Png };
            Some((usize::try_from(number(record, 0)?).ok()?, extension))
        })
    }

    /// Returns a name, its first file, and the number of its files.
    fn name(&self, at: usize) -> Option<(&'a [u8], usize, usize)> {
        let record = self.record(self.names_at, NAME_BYTES, at)?;
        let text = self.text(number(record, 0)?, number(record, 4)?)?;
        let whole = |at: usize| usize::try_from(number(record, at)?).ok();
        Some((text, whole(8)?, whole(12)?))
    }

    fn folder(&self, at: usize) -> Option<Folder<'a>> {
        if at >= self.folders {
            return None;
        }
        let record = self.record(self.folders_at, FOLDER_BYTES, at)?;
        let kind_and_rank = number(record, 16)?;
        let (first, second) = (number(record, 20)?, number(record, 24)?);
        let kind = match kind_and_rank >> 16 {
            0 => FolderKind::Fixed,
            1 => FolderKind::Scalable { min: first, max: second },
            2 => FolderKind::Threshold(first),
            _ => return None,
        };
        Some(Folder {
            path: self.text(number(record, 0)?, number(record, 4)?)?,
            size: number(record, 8)?,
            scale: number(record, 12)?,
            kind,
            rank: kind_and_rank & 0xFFFF,
        })
    }

    fn record(&self, begin: usize, bytes: usize, at: usize) -> Option<&'a [u8]> {
        let from = begin.checked_add(at.checked_mul(bytes)?)?;
        self.bytes.get(from..from.checked_add(bytes)?)
    }

    fn text(&self, at: u32, bytes: u32) -> Option<&'a [u8]> {
        let from = self.texts_at.checked_add(usize::try_from(at).ok()?)?;
        self.bytes.get(from..from.checked_add(usize::try_from(bytes).ok()?)?)
    }
}

struct Folder<'a> {
    path: &'a [u8],
    size: u32,
    scale: u32,
    kind: FolderKind,
    rank: u32,
}

struct Found<'a> {
    path: &'a [u8],
    name: &'a str,
    extension: Extension,
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::super::scan;
    use super::*;

    fn theme(folder: &Path, name: &str, text: &str, files: &[&str]) {
        let place = folder.join(name);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("index.theme"), text).unwrap();
        for file in files {
            let path = place.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
    }

    /// Two themes that inherit each other, hicolor, and an icon without a theme.
    fn tree() -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let base = [folder.path().join("one"), folder.path().join("two")];
        let sizes = "Directories=16/apps,32/apps,scalable\n[16/apps]\nSize=16\nType=Fixed\n\
                     [32/apps]\nSize=32\nType=Fixed\n[scalable]\nSize=64\nMinSize=48\nMaxSize=256\n\
                     Type=Scalable\n";
        let head = |parents: &str| format!("[Icon Theme]\nInherits={parents}\n{sizes}");
        let own =
            ["16/apps/edit.png", "32/apps/edit.png", "scalable/edit.svg", "16/apps/edit-copy.svg"];
        theme(&base[0], "mine", &head("parent,missing"), &own);
        theme(&base[1], "mine", "", &["32/apps/late.png"]);
        theme(
            &base[1],
            "parent",
            &head("mine"),
            &["16/apps/edit-copy-all.png", "16/apps/only.png"],
        );
        theme(&base[1], "hicolor", &head(""), &["16/apps/last.png", "16/apps/only.png"]);
        fs::write(base[0].join("bare.png"), "x").unwrap();
        fs::create_dir(base[0].join("folder.png")).unwrap();
        std::os::unix::fs::symlink("nowhere", base[0].join("mine/16/apps/gone.png")).unwrap();
        std::os::unix::fs::symlink("edit.png", base[0].join("mine/16/apps/alias.png")).unwrap();
        (folder, base.to_vec())
    }

    fn found(index: &ThemeIndex, name: &str, size: (u32, u32)) -> Option<String> {
        let path = index.find(IconName::new(name)?, size, true)?;
        let parts: Vec<_> = path.iter().rev().take(4).collect();
        Some(parts.into_iter().rev().map(|it| it.to_string_lossy()).collect::<Vec<_>>().join("/"))
    }

    #[test]
    fn icons_are_chosen_by_theme_then_name_then_size() {
        let (_folder, base) = tree();
        let (index, counts) = scan("mine", &base);
        let of = |name, size, scale| found(&index, name, (size, scale));
        assert_eq!(of("edit", 16, 1).unwrap(), "mine/16/apps/edit.png");
        assert_eq!(of("edit", 20, 1).unwrap(), "mine/16/apps/edit.png");
        assert_eq!(of("edit", 100, 1).unwrap(), "one/mine/scalable/edit.svg");
        assert_eq!(of("edit", 32, 2).unwrap(), "one/mine/scalable/edit.svg");
        assert_eq!(of("late", 16, 1).unwrap(), "mine/32/apps/late.png");
        // The theme's own less specific icon is before the exact one of the theme that it inherits.
        assert_eq!(of("edit-copy-all", 16, 1).unwrap(), "mine/16/apps/edit-copy.svg");
        assert_eq!(of("only", 16, 1).unwrap(), "parent/16/apps/only.png");
        assert_eq!(of("last", 512, 1).unwrap(), "hicolor/16/apps/last.png");
        assert!(of("bare", 24, 1).unwrap().ends_with("one/bare.png"));
        assert_eq!(of("alias", 16, 1).unwrap(), "mine/16/apps/alias.png");
        assert_eq!(
            [of("gone", 16, 1), of("folder", 16, 1), of("nothing", 16, 1)],
            [None, None, None]
        );
        let exact = index.find(IconName::new("edit-copy-all").unwrap(), (16, 1), false).unwrap();
        assert!(exact.ends_with("parent/16/apps/edit-copy-all.png"));
        assert_eq!(index.names().count(), index.len());
        assert!(counts.listed > 4 && counts.stats >= index.watched() as u64);
        // A theme that is not there has the icons of hicolor and those without a theme.
        let (other, _) = scan("no such theme", &base);
        assert_eq!(found(&other, "last", (16, 1)).unwrap(), "hicolor/16/apps/last.png");
        assert_eq!(found(&other, "edit", (16, 1)), None);
    }

    /// Sets the times of a path back, so that no change is a race.
    fn age(path: &Path) {
        let past = fs::File::open(path).unwrap();
        let time = std::time::SystemTime::now() - Duration::from_secs(1000);
        past.set_modified(time).unwrap();
    }

    #[test]
    fn an_index_is_current_until_anything_in_its_folders_changes() {
        type Change = fn(&Path);
        let changes: [(&str, Change); 7] = [
            ("a file added below", |base| {
                fs::write(base.join("mine/32/apps/new.png"), "x").unwrap();
            }),
            ("a file removed", |base| fs::remove_file(base.join("mine/16/apps/edit.png")).unwrap()),
            ("a file replaced", |base| {
                let new = base.join("new");
                fs::write(&new, "other").unwrap();
                fs::rename(new, base.join("mine/16/apps/edit.png")).unwrap();
            }),
            ("the description changed", |base| {
                fs::write(base.join("mine/index.theme"), "[Icon Theme]\n").unwrap();
            }),
            ("a folder that was missing", |base| {
                fs::create_dir_all(base.join("mine/scalable")).unwrap();
                fs::create_dir_all(base.join("parent")).unwrap();
                fs::write(base.join("parent/index.theme"), "").unwrap();
            }),
            ("an icon without a theme", |base| fs::write(base.join("new.svg"), "x").unwrap()),
            ("a whole theme gone", |base| fs::remove_dir_all(base.join("mine")).unwrap()),
        ];
        for (what, change) in changes {
            let (_folder, base) = tree();
            // Otherwise the change could fall into the same step of the clock as the tree's making.
            for path in
                ["one", "one/mine", "one/mine/16/apps", "one/mine/32/apps", "one/mine/index.theme"]
            {
                age(&base[0].parent().unwrap().join(path));
            }
            let (index, _) = scan("mine", &base);
            assert!(index.is_current(), "{what}");
            change(&base[0]);
            assert!(!index.is_current(), "{what}");
        }
    }

    #[test]
    fn what_was_changed_just_before_the_scan_is_racy() {
        let (_folder, base) = tree();
        // However long the making of the tree took.
        let later = std::time::SystemTime::now() + Duration::from_hours(1);
        fs::File::open(base[0].join("mine")).unwrap().set_modified(later).unwrap();
        assert!(scan("mine", &base).0.is_racy());
        assert!(!scan("x", &[PathBuf::from("/no/such/folder")]).0.is_racy());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

        #[test]
        fn damaged_bytes_answer_without_a_panic(
            flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            cut in any::<prop::sample::Index>(), is_cut in any::<bool>(),
        ) {
            let (_folder, base) = tree();
            let (index, _) = scan("mine", &base);
            let mut bytes = index.as_bytes().to_vec();
            for (at, flip) in flips {
                let at = at.index(bytes.len());
                bytes[at] ^= flip;
            }
            if is_cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            if let Some(damaged) = ThemeIndex::from_bytes(bytes) {
                let _ = damaged.is_current();
                for name in ["edit", "edit-copy-all", "last"] {
                    let _ = found(&damaged, name, (16, 1));
                }
                let _ = damaged.names().count();
            }
        }
    }
}
