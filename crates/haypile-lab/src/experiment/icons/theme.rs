//! Themes to measure, and the icons to load from them.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use haypile_icons::theme::{IconName, base_folders, is_installed, scan};
use haypile_icons::{Pixmap, render_file};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::gtk::{self, GtkTheme};
use super::orders::checksum;
use super::way::Way;

/// The name of the icon theme that this program generates.
pub(super) const GENERATED: &str = "generated";

/// Names in the generated theme.
const GENERATED_ICONS: u64 = 1_200;

/// An icon theme, and the folders that contain it.
pub(super) struct Theme {
    pub(super) name: String,
    pub(super) base: Vec<PathBuf>,
    /// The folders that contain the icon theme and the themes that it may inherit.
    pub(super) folders: Vec<PathBuf>,
    /// The ways of loading the theme's icons that can be measured on this machine.
    pub(super) ways: Vec<Way>,
    /// The reason why GTK's icon cache cannot be measured; `None` if it can.
    pub(super) without_gtk: Option<String>,
}

/// The names of the icons to load, and the checksums of their rendered pictures, with which loaded
/// ones are compared.
pub(super) struct Wanted {
    pub(super) names: Vec<String>,
    pub(super) found: u64,
    pub(super) checksum: u64,
    /// The checksum of the expected pictures as PNG files store them: colours are not multiplied by
    /// alpha.
    pub(super) png_checksum: u64,
}

impl Theme {
    /// Finds the icon theme of this name; `None` if it is not installed.
    pub(super) fn find(name: &str, scratch: &Path, seed: u64) -> anyhow::Result<Option<Self>> {
        if name == GENERATED {
            let base = scratch.join("icons");
            generate(&base.join(name), seed)?;
            gtk::write_cache(&base.join(name))?;
            let folders = vec![base.clone()];
            return Ok(Some(Self::with_ways(name, vec![base], folders)));
        }
        let base = base_folders();
        if !is_installed(name, &base) {
            return Ok(None);
        }
        let folders: Vec<PathBuf> = base.iter().map(|folder| folder.join(name)).collect();
        let folders = folders.into_iter().filter(|folder| folder.exists()).collect();
        Ok(Some(Self::with_ways(name, base, folders)))
    }

    fn with_ways(name: &str, base: Vec<PathBuf>, folders: Vec<PathBuf>) -> Self {
        let without_gtk = GtkTheme::open(name, &base).err().map(|error| format!("{error:#}"));
        let is_there = |way: &Way| *way != Way::Gtk || without_gtk.is_none();
        let ways = Way::ALL.into_iter().filter(is_there).collect();
        Self { name: name.to_owned(), base, folders, ways, without_gtk }
    }

    /// Draws names of icons at random, of which nine tenths are in the theme, and renders their
    /// pictures to compare loaded ones with.
    pub(super) fn wanted(&self, number: u32, size: u32, seed: u64) -> anyhow::Result<Wanted> {
        let (index, _) = scan(&self.name, &self.base);
        let mut names: Vec<&str> = index.names().collect();
        shuffle(&mut names, seed);
        let missing = number / 10;
        let mut pictures: Vec<(String, Pixmap)> = Vec::new();
        for name in names {
            if pictures.len() >= (number - missing) as usize {
                break;
            }
            let name_of = IconName::new(name).context("an index has names of icons")?;
            let path = index.find(name_of, (size, 1), true);
            // Themes have broken files as well.
            if let Some(Ok(picture)) = path.map(|path| render_file(&path, (size, size))) {
                pictures.push((name.to_owned(), picture));
            }
        }
        if pictures.is_empty() {
            bail!(
                "the theme '{}' has no icons that can be rendered; name another theme",
                self.name
            );
        }
        let found = pictures.len() as u64;
        let of_all = checksum(pictures.iter().map(|(_, picture)| picture.pixels()));
        let after_png = |(_, picture): &(String, Pixmap)| -> anyhow::Result<Pixmap> {
            Ok(Pixmap::from_png(&picture.to_png()?)?)
        };
        let pngs = pictures.iter().map(after_png).collect::<anyhow::Result<Vec<_>>>()?;
        let mut names: Vec<String> = pictures.into_iter().map(|(name, _)| name).collect();
        // In between, and without a dash: no less specific icon serves.
        for at in 0..missing as usize {
            names.insert((at * 10).min(names.len()), format!("nosuchicon{at}"));
        }
        let png_checksum = checksum(pngs.iter().map(Pixmap::pixels));
        Ok(Wanted { names, found, checksum: of_all, png_checksum })
    }
}

fn shuffle(names: &mut [&str], seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for last in (1..names.len()).rev() {
        let drawn = usize::try_from(random.next_u64() % (last as u64 + 1)).unwrap_or(0);
        names.swap(last, drawn);
    }
}

/// Writes a theme of simple drawings, in folders like those of real themes.
fn generate(place: &Path, seed: u64) -> anyhow::Result<()> {
    let sizes = [16, 22, 24, 32, 48, 64];
    let contexts = ["actions", "apps", "devices", "mimetypes", "places", "status"];
    let folders: Vec<(u32, String)> = sizes
        .iter()
        .flat_map(|size| contexts.iter().map(move |context| (*size, format!("{context}/{size}"))))
        .collect();
    let list: Vec<&str> = folders.iter().map(|(_, folder)| folder.as_str()).collect();
    let mut text = format!("[Icon Theme]\nName=Generated\nDirectories={}\n", list.join(","));
    for (size, folder) in &folders {
        fs::create_dir_all(place.join(folder))?;
        write!(text, "[{folder}]\nSize={size}\nType=Fixed\n")?;
    }
    fs::write(place.join("index.theme"), text)?;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for number in 0..GENERATED_ICONS {
        let context = contexts[usize::try_from(number)? % contexts.len()];
        for size in [16, 32] {
            let path = place.join(format!("{context}/{size}/icon{number}.svg"));
            fs::write(path, drawing(size, 0, &mut random)?)?;
        }
    }
    Ok(())
}

/// Returns a random SVG picture of at least `least` shapes, in a square of `size` pixels.
pub(super) fn drawing(size: u32, least: u32, random: &mut ChaCha8Rng) -> anyhow::Result<String> {
    let mut text = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {size} {size}' width='{size}' height='{size}'>"
    );
    let mut below = |limit: u32| u32::try_from(random.next_u64() % u64::from(limit)).unwrap_or(0);
    for _ in 0..(6 + below(20)).max(least) {
        let colour = below(1 << 24);
        let (x, y, radius) = (below(size), below(size), 1 + below(size / 3));
        write!(
            text,
            "<path d='M{x} {y} q {radius} -{radius} {size} {radius} t {y} {x} z' fill='#{colour:06x}' \
             fill-opacity='0.7'/>"
        )?;
    }
    Ok(text + "</svg>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_theme_has_the_same_icons_for_the_same_seed() {
        let of = |seed| {
            let scratch = tempfile::tempdir().unwrap();
            let theme = Theme::find(GENERATED, scratch.path(), seed).unwrap().unwrap();
            theme.wanted(20, 16, 7).unwrap()
        };
        let (one, same, other) = (of(1), of(1), of(2));
        assert_eq!((one.names.len(), one.found), (20, 18));
        assert_eq!((one.checksum, &one.names), (same.checksum, &same.names));
        assert_ne!(one.checksum, other.checksum);
        let scratch = tempfile::tempdir().unwrap();
        assert!(Theme::find("no such theme at all", scratch.path(), 1).unwrap().is_none());
    }
}
