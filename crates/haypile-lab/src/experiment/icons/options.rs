//! Options of `haypile lab icons`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::experiment::value::{count, seconds};

/// Pictures that are got or drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IconSet {
    /// Icons of a theme
    Icons,
    /// 100 drawings and a background
    Game,
}

/// Options of the experiment.
#[derive(Clone, Debug, Args)]
#[command(
    about = "Get icons without a cache, with an index, with pixmaps, with both: time, memory, calls"
)]
#[command(after_help = "\
Ways of getting icons: 'probe' asks for every candidate file and renders; 'scan' lists the theme's
folders and renders; 'gtk' finds files by GTK's icon-theme.cache and renders; 'index' has the index
cached and renders; 'pixmaps' scans, and has the pictures cached; 'both' is haypile's cache of icons;
'copied' is the same, with a private copy of each picture; 'png' has the index, and pictures as PNG in
the cache.

A theme that is not installed is left out, and a line says how to get it; 'generated' is a theme of
this program's own. --cold drops the theme and the cache from memory before each measurement.

Examples:
  haypile lab icons --quick
  haypile lab icons --theme breeze --icons 300 --processes 1,8 --cold --out icons.jsonl
  haypile lab icons --set game")]
pub struct IconsOptions {
    /// Icons of a theme, or the drawings of a game that starts, starts again and is resized twice
    #[arg(long, value_name = "SET", value_enum, default_value = "icons")]
    pub set: IconSet,
    /// Icon themes, by the names of their folders, or generated
    #[arg(long, value_name = "THEMES", value_delimiter = ',', default_value = "breeze,Adwaita")]
    pub theme: Vec<String>,
    /// Numbers of icons
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "10,100,300,1000", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub icons: Vec<u32>,
    /// Size of the icons, in pixels
    #[arg(long, value_name = "SIZE", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub size: u32,
    /// Numbers of processes that get the icons at the same time
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,8", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub processes: Vec<u32>,
    /// Also measure with files dropped from memory
    #[arg(long)]
    pub cold: bool,
    /// Number of blocks: in each, every way once, in random order
    #[arg(long, short, value_name = "N", default_value = "7", value_parser = count)]
    pub blocks: u64,
    /// File with the question and the options, like those that haypile lab experiments prints
    /// [default: the experiment's own]
    #[arg(long, value_name = "FILE.toml")]
    pub experiment: Option<PathBuf>,
    /// Use the experiment file's options for a brief run
    #[arg(long)]
    pub quick: bool,
    /// Seed of the names, the order within blocks, and the generated theme
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Directory for the cache [default: the system's directory for temporary files]
    #[arg(long, short, value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,
    /// Seconds after which a process is an error
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    pub timeout: Duration,
    /// Append each result to this file at once, as a line of JSON
    #[arg(long, short, value_name = "FILE.jsonl")]
    pub out: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}
