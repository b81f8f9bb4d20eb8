//! Options of `haypile lab icons`.

use clap::{Args, ValueEnum};

use crate::experiment::session::RunOptions;
use crate::experiment::value::count;

/// The pictures that are measured: icons of a theme, or the drawings of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IconSet {
    /// Icons of a theme
    Icons,
    /// 100 drawings and a background
    Game,
}

/// Command-line options of the experiment `icons`.
#[derive(Clone, Debug, Args)]
#[command(
    about = "Get icons without a cache, with an index, with pixmaps, with both: time, memory, calls"
)]
#[command(after_help = "\
Ways of getting icons: 'probe' asks for every candidate file and renders; 'scan' lists the theme's
folders and renders; 'gtk' finds files by GTK's icon-theme.cache and renders; 'index' has the index
cached and renders; 'pixmaps' scans, and has the pictures cached; 'both' is haypile's cache of icons,
whose files each process checks; 'shared' is the same, just after another process has checked them, as
programs find it that start within a second; 'copied' is 'both' with a private copy of each picture;
'png' has the index, and pictures as PNG in the cache.

A theme that is not installed is left out, and a line says how to get it; 'generated' is a theme of
this program's own. --cold drops the theme and the cache from memory before each measurement. --full
fills the cache with other values, so that the icons lie spread over the whole file, and starts three
programs that are not measured.

Examples:
  haypile lab icons --quick
  haypile lab icons --theme breeze --icons 300 --processes 1,8 --cold --out icons.jsonl
  haypile lab icons --theme breeze --icons 300 --processes 8 --full
  haypile lab icons --set game")]
pub struct IconsOptions {
    /// Pictures to measure: icons of a theme, or the drawings of a game that starts, starts again
    /// and is resized twice
    #[arg(long, value_name = "SET", value_enum, default_value = "icons")]
    pub set: IconSet,
    /// Icon themes whose icons are loaded, by the names of their folders, or generated
    #[arg(long, value_name = "THEMES", value_delimiter = ',', default_value = "breeze,Adwaita")]
    pub theme: Vec<String>,
    /// Numbers of icons that a measured process loads
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "10,100,300,1000", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub icons: Vec<u32>,
    /// Width and height of each icon, in pixels
    #[arg(long, value_name = "SIZE", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub size: u32,
    /// Numbers of processes that load the same icons at the same time
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,8", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub processes: Vec<u32>,
    /// Also measure with the files of themes and caches dropped from memory
    #[arg(long)]
    pub cold: bool,
    /// Measure with an icon cache that is full, in which the icons lie far from each other
    #[arg(long)]
    pub full: bool,
    /// Number of blocks: each block measures every way of loading once, in random order
    #[arg(long, short, value_name = "N", default_value = "7", value_parser = count)]
    pub blocks: u64,
    /// Options that all experiments share.
    #[command(flatten)]
    pub run: RunOptions,
}
