//! Icons found by GTK's cache of a theme, `icon-theme.cache`: a table of names, each with the theme's
//! folders that have it. Its format is described in GTK's sources (`docs/iconcache.txt`).
//!
//! GTK asks this table once for each folder; here it is asked once for each name, which is faster. As GTK
//! does, a process trusts a cache that is not older than the theme's own folder, and asks once.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use haypile_icons::theme::{IconName, Inheritance, ThemeFile, distance};
use memmap2::{Mmap, MmapOptions};

/// The file's name, in the folder of a theme.
const CACHE_FILE: &str = "icon-theme.cache";
/// GTK's program that writes it.
const UPDATER: &str = "gtk-update-icon-cache";

/// Flags of an image in the cache: it has a file of this kind.
const HAS_SVG: u16 = 2;
const HAS_PNG: u16 = 4;
/// An offset that leads nowhere.
const NOWHERE: u32 = u32::MAX;

/// An icon theme and the themes that it inherits, read through GTK's icon caches.
#[derive(Debug)]
pub(super) struct GtkTheme {
    themes: Vec<Inherited>,
    base: Vec<PathBuf>,
    /// Number of system calls that asked for the status of files and folders while icons were
    /// looked up.
    pub(super) stats: u64,
}

#[derive(Debug)]
struct Inherited {
    file: ThemeFile,
    places: Vec<Place>,
}

/// A theme in one of the base folders.
#[derive(Debug)]
struct Place {
    folder: PathBuf,
    cache: GtkCache,
    /// The number of each of the theme's folders in the cache.
    numbers: HashMap<String, u16>,
}

impl GtkTheme {
    /// Opens GTK's icon caches of a theme, and of the themes that it inherits.
    ///
    /// # Errors
    ///
    /// One of them has no cache, or an old one: GTK would scan it.
    pub(super) fn open(theme: &str, base: &[PathBuf]) -> anyhow::Result<Self> {
        let mut own = Self { themes: Vec::new(), base: base.to_vec(), stats: 0 };
        let mut order = Inheritance::of(theme);
        while let Some(name) = order.next_theme() {
            let folders = base.iter().map(|folder| folder.join(&name));
            let folders: Vec<PathBuf> = folders.filter(|folder| own.is_there(folder)).collect();
            let text = folders.iter().find_map(|folder| fs::read(folder.join("index.theme")).ok());
            let Some(text) = text else { continue };
            let file = ThemeFile::parse(&String::from_utf8_lossy(&text));
            order.inherit(file.inherits.clone());
            let places = folders.into_iter().map(|folder| own.place(folder));
            let places = places.collect::<anyhow::Result<_>>()?;
            own.themes.push(Inherited { file, places });
        }
        Ok(own)
    }

    fn is_there(&mut self, path: &Path) -> bool {
        self.stats += 1;
        path.exists()
    }

    fn place(&mut self, folder: PathBuf) -> anyhow::Result<Place> {
        self.stats += 2;
        let path = folder.join(CACHE_FILE);
        let changed = |path: &Path| fs::metadata(path).and_then(|it| it.modified());
        let cached = changed(&path).with_context(|| format!("no file {}", path.display()))?;
        ensure!(cached >= changed(&folder)?, "{} is older than its folder", path.display());
        let cache = GtkCache::open(&path).with_context(|| path.display().to_string())?;
        let numbers = cache.folders().context("its list of folders is damaged")?;
        Ok(Place { folder, cache, numbers })
    }

    /// Finds the best file for an icon's name and size, by the rules of `haypile_icons`.
    pub(super) fn find(&mut self, name: IconName<'_>, size: (u32, u32)) -> Option<PathBuf> {
        let names = || name.from_specific();
        let themed = |theme: &Inherited| names().find_map(|name| theme.find(name, size));
        if let Some(path) = self.themes.iter().find_map(themed) {
            return Some(path);
        }
        for name in names() {
            for folder in self.base.clone() {
                for extension in ["png", "svg"] {
                    let path = folder.join(format!("{name}.{extension}"));
                    if self.is_there(&path) {
                        return Some(path);
                    }
                }
            }
        }
        None
    }
}

impl Inherited {
    fn find(&self, name: &str, size: (u32, u32)) -> Option<PathBuf> {
        let images: Vec<Vec<(u16, u16)>> =
            self.places.iter().map(|place| place.cache.images(name).unwrap_or_default()).collect();
        if images.iter().all(Vec::is_empty) {
            return None;
        }
        let mut best: Option<(u32, PathBuf)> = None;
        for folder in &self.file.folders {
            let far = distance(size, (folder.size, folder.scale, folder.kind));
            if best.as_ref().is_some_and(|(other, _)| far >= *other) {
                continue;
            }
            let found = self.places.iter().zip(&images).find_map(|(place, images)| {
                let number = *place.numbers.get(&folder.path)?;
                let (_, flags) = images.iter().find(|(folder, _)| *folder == number)?;
                let extension = if flags & HAS_PNG != 0 {
                    "png"
                } else if flags & HAS_SVG != 0 {
                    "svg"
                } else {
                    return None;
                };
                Some(place.folder.join(&folder.path).join(format!("{name}.{extension}")))
            });
            if let Some(path) = found {
                best = Some((far, path));
            }
            if best.as_ref().is_some_and(|(far, _)| *far == 0) {
                break;
            }
        }
        best.map(|(_, path)| path)
    }
}

/// The file. All numbers have their highest byte first; whatever leads out of it is nothing.
#[derive(Debug)]
struct GtkCache(Mmap);

impl GtkCache {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let file = File::open(path)?;
        #[expect(unsafe_code, reason = "GTK maps this file as well: that is what is measured")]
        // SAFETY: GTK's program replaces the file as a whole and changes none in place.
        let map = unsafe { MmapOptions::new().map(&file)? };
        let cache = Self(map);
        let is_known = (cache.short(0), cache.short(2)) == (Some(1), Some(0));
        ensure!(is_known, "it is not a cache of icons of version 1.0");
        Ok(cache)
    }

    fn short(&self, at: usize) -> Option<u16> {
        Some(u16::from_be_bytes(self.0.get(at..at.checked_add(2)?)?.try_into().ok()?))
    }

    fn number(&self, at: usize) -> Option<u32> {
        Some(u32::from_be_bytes(self.0.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }

    fn offset(&self, at: usize) -> Option<usize> {
        self.number(at).filter(|&offset| offset != NOWHERE).map(|offset| offset as usize)
    }

    fn text(&self, at: usize) -> Option<&[u8]> {
        self.0.get(at..)?.split(|byte| *byte == 0).next()
    }

    /// The folders of the theme, with their numbers.
    fn folders(&self) -> Option<HashMap<String, u16>> {
        let list = self.offset(8)?;
        let count = u16::try_from(self.number(list)?).ok()?;
        let folder = |number: u16| {
            let path = self.text(self.offset(list + 4 + 4 * usize::from(number))?)?;
            Some((String::from_utf8_lossy(path).into_owned(), number))
        };
        (0..count).map(folder).collect()
    }

    /// The folders that have an icon of this name, and which files.
    fn images(&self, name: &str) -> Option<Vec<(u16, u16)>> {
        let table = self.offset(4)?;
        let buckets = self.number(table)?;
        let bucket = hash(name.as_bytes()).checked_rem(buckets)? as usize;
        let mut icon = self.offset(table + 4 + 4 * bucket);
        // A chain that is longer than the file has icons is a circle.
        for _ in 0..self.0.len() / 12 {
            let at = icon?;
            if self.text(self.offset(at + 4)?)? == name.as_bytes() {
                let list = self.offset(at + 8)?;
                let count = self.number(list)? as usize;
                let image = |number: usize| {
                    let at = list + 4 + 8 * number;
                    Some((self.short(at)?, self.short(at + 2)?))
                };
                return (0..count.min(self.0.len() / 8)).map(image).collect();
            }
            icon = self.offset(at);
        }
        None
    }
}

/// GTK's hash of a name: its bytes are signed.
fn hash(name: &[u8]) -> u32 {
    let signed = |byte: &u8| i32::from(byte.cast_signed()).cast_unsigned();
    let mut bytes = name.iter().map(signed);
    let first = bytes.next().unwrap_or(0);
    bytes.fold(first, |hash, byte| (hash << 5).wrapping_sub(hash).wrapping_add(byte))
}

/// Writes GTK's icon cache for a generated theme with GTK's program; returns whether that program
/// is installed.
///
/// # Errors
///
/// The program fails.
pub(super) fn write_cache(folder: &Path) -> anyhow::Result<bool> {
    let mut command = Command::new(UPDATER);
    command.args(["--quiet", "--force"]).arg(folder).stdin(Stdio::null());
    match command.output() {
        Ok(output) if output.status.success() => Ok(true),
        Ok(output) => {
            anyhow::bail!("{UPDATER}: {}", String::from_utf8_lossy(&output.stderr).trim())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).context(UPDATER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache with two folders; the names `ab` (folder 1: png and svg) and `é` (folder 0: svg).
    fn bytes() -> Vec<u8> {
        let numbers = [
            // Version; the table of names; the list of folders.
            [0x0001_0000, 12, 20].as_slice(),
            // One bucket, and its first icon.
            &[1, 32],
            // Two folders.
            &[2, 56, 61],
            // Two icons: the next of the bucket, the name, the images.
            &[44, 66, 72],
            &[NOWHERE, 69, 84],
        ];
        let mut bytes: Vec<u8> =
            numbers.iter().flat_map(|part| part.iter()).flat_map(|it| it.to_be_bytes()).collect();
        bytes.extend(b"16/a\x0032/b\x00ab\x00\xC3\xA9\x00");
        bytes
    }

    #[test]
    fn the_cache_says_which_folders_have_a_name() {
        let mut bytes = bytes();
        assert_eq!(bytes.len(), 72);
        // ab: one image in folder 1, flags 6. é: one in folder 0, flags 2.
        bytes.extend([0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0]);
        bytes.extend([0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(CACHE_FILE);
        fs::write(&path, &bytes).unwrap();
        let cache = GtkCache::open(&path).unwrap();
        let folders = cache.folders().unwrap();
        assert_eq!((folders["16/a"], folders["32/b"], folders.len()), (0, 1, 2));
        assert_eq!(cache.images("ab"), Some(vec![(1, 6)]));
        assert_eq!(cache.images("é"), Some(vec![(0, 2)]));
        assert_eq!(cache.images("a"), None);
        drop(cache);
        for end in 0..bytes.len() {
            fs::write(&path, &bytes[..end]).unwrap();
            if let Ok(cache) = GtkCache::open(&path) {
                let _ = (cache.folders(), cache.images("ab"), cache.images("é"));
            }
        }
        // A chain that leads to itself ends.
        bytes[32..36].copy_from_slice(&32u32.to_be_bytes());
        fs::write(&path, &bytes).unwrap();
        assert_eq!(GtkCache::open(&path).unwrap().images("é"), None);
    }

    #[test]
    fn names_have_gtks_hash() {
        // 31 * 'a' + 'b'; a byte above 127 is negative.
        assert_eq!(hash(b"ab"), 31 * 97 + 98);
        assert_eq!(hash(b"\xC3"), (-61i32).cast_unsigned());
    }

    #[test]
    fn a_theme_without_a_cache_is_not_measured() {
        let folder = tempfile::tempdir().unwrap();
        let theme = folder.path().join("mine");
        fs::create_dir(&theme).unwrap();
        fs::write(theme.join("index.theme"), "[Icon Theme]\n").unwrap();
        let error = GtkTheme::open("mine", &[folder.path().to_owned()]).unwrap_err();
        assert!(format!("{error:#}").contains("icon-theme.cache"), "{error:#}");
    }
}
