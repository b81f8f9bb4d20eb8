//! Arguments of `haypile icons`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum IconsCommand {
    /// Render icons into the cache, so that no program has to
    Warm(Warm),
    /// Find an icon: print its file, or write it as a PNG
    Lookup(Lookup),
    /// Show what the index of a theme holds, and whether it is current
    Stat(IconsStat),
}

/// The icon theme, the folders from which its icons are read, and the cache in which they are kept.
#[derive(Debug, Args)]
pub(crate) struct IconPlace {
    /// Icon theme to take icons from, by the name of its folder
    #[arg(long, value_name = "THEME", default_value = "hicolor")]
    pub(crate) theme: String,
    /// Folder with themes; repeat the option for others [default: those of the freedesktop
    /// specification: ~/.icons, icons below the XDG data folders, /usr/share/pixmaps]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) base: Vec<PathBuf>,
    /// Cache of the icons, by its URL or short form [default: the user's own file]
    #[arg(long, value_name = "CACHE")]
    pub(crate) cache: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 done; 1 some icons were not found or are broken; 2 wrong arguments.

Examples:
  haypile icons warm --theme breeze --size 16,22,32 --all
  haypile icons warm --theme Adwaita folder document-open")]
pub(crate) struct Warm {
    /// Names of the icons to render into the cache
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub(crate) names: Vec<String>,
    /// Render every icon of the theme and of those that it inherits
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// Sizes in which the icons are rendered, in pixels at scale 1
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "16,22,32,48", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) size: Vec<u32>,
    /// Scale of the screen, such as 2 for a high-resolution display
    #[arg(long, value_name = "SCALE", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(crate) scale: u32,
    #[command(flatten)]
    pub(crate) place: IconPlace,
    /// Print the numbers of rendered and cached icons, and the missing ones, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 found; 1 there is no such icon; 2 wrong arguments, or a file that is not a picture.

Example:
  haypile icons lookup folder-open --theme breeze --size 32 --output folder.png")]
pub(crate) struct Lookup {
    /// Name of the icon, without folder and extension; if there is no input-mouse-usb, input-mouse
    /// is found
    pub(crate) name: String,
    /// Size of the icon, in pixels at scale 1
    #[arg(long, value_name = "SIZE", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) size: u32,
    /// Scale of the screen, such as 2 for a high-resolution display
    #[arg(long, value_name = "SCALE", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(crate) scale: u32,
    /// Do not fall back to a less specific icon, such as input-mouse for input-mouse-usb
    #[arg(long)]
    pub(crate) exact: bool,
    /// PNG file to write the found icon to
    #[arg(long, short, value_name = "FILE.png")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: IconPlace,
    /// Print the path and the size of the found icon as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  haypile icons stat --theme breeze")]
pub(crate) struct IconsStat {
    #[command(flatten)]
    pub(crate) place: IconPlace,
    /// Print the size and the state of the theme's index as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
