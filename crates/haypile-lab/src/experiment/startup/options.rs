//! Options of `haypile lab startup`.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use super::exports::ExportOptions;
use super::plan::Schedule;
use crate::experiment::cold::Cold;
use crate::experiment::session::RunOptions;
use crate::experiment::value::{count, seconds};

/// Command-line options of the experiment `startup`.
#[derive(Clone, Debug, Args)]
#[command(about = "Start a command with and without its cache: what does the cache save?")]
#[command(after_help = "\
The command is started under three conditions: 'with' its cache, primed; 'fill', with the cache
emptied by --clear; 'off', without it. --with and --off set the variables that make the difference;
--with-command and --off-command are for caches that flags switch. 'again' is 'with' a second time, which shows how large a difference is noise. All variables of the
environment but PATH, HOME and the like are removed first. Before it measures, it starts the command
twice under each condition, once watched and once under ptrace: for the files that --cold drops from
memory, for what would spoil the measurement, and for what makes the difference (--explain). After it
has measured, it watches up to three starts of each for the timeline, and keeps the nearest to the median.

--cold drops files; their folders, names and inodes stay in memory, as no user but root can drop these.
For a cache that saves walks over folders, such as one of icons or fonts, only --cold=drop is cold.

Commands are run by sh; '{scratch}' in commands, variables and paths is a new folder, in which they
run, and HAYPILE_CONDITION is the condition. Its path has only letters, digits and /._-+@=, so that it
needs no quotes; another --directory is an error. --verify runs after each start with the cache, reads
its output, and has to succeed if the cache was used.

Signals of --ready: exit (with status 0), port:8080, port:HOST:8080, http://HOST/PATH (a status from
200 to 399), file:PATH, line:REGEX (a line of its output), command:COMMAND (succeeds), window or
window:REGEX (a new window is mapped on the X server of DISPLAY; its title or class). A relative PATH is
in the folder in which it runs. A command is run again and again, and rests three times as long as it
runs; the note below the table says how exact that is.

Without a command, it measures the caches of --preset that are installed here.

Exit status: 0 done, 1 a condition has no result, 2 wrong arguments or failure.

Examples:
  haypile lab startup --quick
  haypile lab startup --with PYTHONPYCACHEPREFIX={scratch}/pyc --clear 'rm -rf {scratch}/pyc' \\
      --off PYTHONPYCACHEPREFIX={scratch}/empty --off PYTHONDONTWRITEBYTECODE=1 \\
      --cache {scratch}/pyc -- python3 -c 'import asyncio'
  haypile lab startup --preset ccache --blocks 10 --timeline ccache.svg
  haypile lab startup --off MYAPP_CACHE=none --ready port:8080 --settle 2 --cold -- ./server
  haypile lab startup --with-command 'java -XX:SharedArchiveFile=app.jsa -jar app.jar' \\
      --off-command 'java -Xshare:off -jar app.jar' --explain
  xvfb-run haypile lab startup --off APP_CACHE=none --ready window -- mousepad")]
#[command(mut_arg("experiment", |arg| arg.conflicts_with("preset")))]
#[command(mut_arg("directory", |arg| arg.help(
    "Directory for the scratch folder [default: the system's directory for temporary files]"
)))]
#[command(mut_arg("timeout", |arg| arg.default_value("60").help("Seconds after which a start is an error")))]
pub struct StartupOptions {
    /// Program to start, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Measure the caches in these built-in experiment files instead [default: all whose programs
    /// are here]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "command")]
    pub preset: Vec<Preset>,
    /// Name under which results keep the measurement of this program [default: the program's name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Environment variable of the conditions with the cache, NAME=VALUE; repeat the option for
    /// others
    #[arg(long = "with", value_name = "NAME=VALUE")]
    pub with_cache: Vec<Variable>,
    /// Environment variable of the condition without the cache, NAME=VALUE
    #[arg(long = "off", value_name = "NAME=VALUE")]
    pub without_cache: Vec<Variable>,
    /// Command with the cache, in quotes, instead of COMMAND: for a cache that is switched by flags
    #[arg(long, value_name = "COMMAND")]
    pub with_command: Option<String>,
    /// Command without the cache, in quotes, instead of COMMAND
    #[arg(long, value_name = "COMMAND")]
    pub off_command: Option<String>,
    /// Environment variable of all conditions, NAME=VALUE; NAME alone passes on the value that it
    /// has
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// Keep all environment variables of this program
    #[arg(long)]
    pub keep_env: bool,
    /// Command to run once, before all starts of the program
    #[arg(long, value_name = "COMMAND")]
    pub setup: Option<String>,
    /// Command to run before each start of the program, untimed
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Option<String>,
    /// Command to run after each start of the program
    #[arg(long, value_name = "COMMAND")]
    pub conclude: Option<String>,
    /// Command that fills the cache [default: an untimed start with the cache]
    #[arg(long, value_name = "COMMAND")]
    pub prime: Option<String>,
    /// Command that empties the cache; adds starts with an empty cache (condition 'fill')
    #[arg(long, value_name = "COMMAND")]
    pub clear: Option<String>,
    /// Command whose exit status 0 confirms that the last start used the cache
    #[arg(long, value_name = "COMMAND")]
    pub verify: Option<String>,
    /// File or folder of the cache, which shows whether starts read and write the cache; repeat the
    /// option for others
    #[arg(long, value_name = "PATH")]
    pub cache: Vec<String>,
    /// Signal by which the started program counts as ready, one of those below
    #[arg(long, value_name = "SIGNAL", default_value = "exit")]
    pub ready: String,
    /// Seconds without work after which a program that keeps running counts as settled
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub settle: Option<Duration>,
    /// Seconds between asking a program to end and killing it, for one that writes its cache when
    /// it ends
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "1")]
    pub grace: Duration,
    /// Print how starts with and without the cache differ in system calls, files and programs
    #[arg(long)]
    pub explain: bool,
    /// Also measure starts with files dropped from memory: those that a start was seen to use,
    /// --cold-path and --cache; or (drop, as root) everything in the page cache, with folders and
    /// inodes
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "fadvise")]
    pub cold: Option<Cold>,
    /// Further file or folder that --cold drops
    #[arg(long, value_name = "PATH")]
    pub cold_path: Vec<String>,
    /// Cache in a file; in each start, the time from the first to the last operation on it is
    /// measured too
    #[arg(long, value_name = "file:PATH")]
    pub span: Option<String>,
    /// Program, path or $VARIABLE that the measurement needs, and a hint on how to get it
    #[arg(long, value_name = "PROGRAM=HINT")]
    pub requires: Vec<String>,
    /// Number of blocks: each block starts the program once under each condition, such as without
    /// the cache; fewer than 6 give no intervals
    #[arg(long, short, value_name = "N", default_value = "20", value_parser = count)]
    pub blocks: u64,
    /// Largest number of processes of a start at the same time; more are an error
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_processes: u32,
    /// Options for files that are written in addition to the results.
    #[command(flatten)]
    pub exports: ExportOptions,
    /// Options that all experiments share.
    #[command(flatten)]
    pub run: RunOptions,
}

impl StartupOptions {
    /// Returns the number of starts of the command under each condition, and the time limit of a
    /// start.
    pub(super) fn schedule(&self) -> Schedule {
        Schedule {
            blocks: self.blocks,
            warmup: 1,
            cold: self.cold,
            settle: self.settle,
            grace: self.grace,
            traces: true,
            draws: draws(&self.exports, &self.run),
            max_processes: self.max_processes,
            seed: self.run.seed,
            timeout: self.run.timeout,
        }
    }
}

/// Whether the user asked for pictures of the starts' processes over time.
pub(super) fn draws(exports: &ExportOptions, run: &RunOptions) -> bool {
    exports.timeline.is_some() || run.out.is_some() || run.json
}

/// A built-in experiment file of the experiment `startup`, for one well-known cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// Python's bytecode.
    Python,
    /// A compiler cache.
    Ccache,
    /// The machine's fonts.
    Fontconfig,
    /// The shared cache of icons, for one program.
    Icons,
    /// The same for four programs at once.
    IconsBare,
    /// The same for eight.
    IconsFull,
    /// GTK's index of an icon theme, on an X server.
    Gtk,
    /// The registry of plugins of media programs.
    Gstreamer,
    /// Node.js's compiled modules.
    Node,
    /// An archive of a Java program's classes.
    Appcds,
    /// Firefox's start-up cache.
    Firefox,
}

impl Preset {
    /// Returns the text of this built-in experiment file of `startup`.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Python => include_str!("presets/python.toml"),
            Self::Ccache => include_str!("presets/ccache.toml"),
            Self::Fontconfig => include_str!("presets/fontconfig.toml"),
            Self::Icons => include_str!("presets/icons.toml"),
            Self::IconsBare => include_str!("presets/icons-bare.toml"),
            Self::IconsFull => include_str!("presets/icons-full.toml"),
            Self::Gtk => include_str!("presets/gtk.toml"),
            Self::Gstreamer => include_str!("presets/gstreamer.toml"),
            Self::Node => include_str!("presets/node.toml"),
            Self::Appcds => include_str!("presets/appcds.toml"),
            Self::Firefox => include_str!("presets/firefox.toml"),
        }
    }

    /// Returns the name of this built-in experiment file of `startup` on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Ccache => "ccache",
            Self::Fontconfig => "fontconfig",
            Self::Icons => "icons",
            Self::IconsBare => "icons-bare",
            Self::IconsFull => "icons-full",
            Self::Gtk => "gtk",
            Self::Gstreamer => "gstreamer",
            Self::Node => "node",
            Self::Appcds => "appcds",
            Self::Firefox => "firefox",
        }
    }
}

/// An environment variable of started commands, with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The name of the environment variable.
    pub name: String,
    /// The value of the environment variable.
    pub value: String,
}

impl FromStr for Variable {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (name, value) = text
            .split_once('=')
            .context("write an environment variable as NAME=VALUE, such as LANG=C")?;
        if name.is_empty() || text.contains('\0') {
            bail!("write an environment variable as NAME=VALUE, such as LANG=C");
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_python_reads_no_bytecode_of_the_library_without_its_cache() {
        let command = StartupOptions::augment_args(clap::Command::new("startup"));
        let help = command.get_after_help().unwrap().to_string();
        // As the preset does: without a folder of its own, 'off' reads the library's __pycache__.
        assert!(help.contains("--off PYTHONPYCACHEPREFIX={scratch}/empty"), "{help}");
        assert!(Preset::Python.text().contains("PYTHONPYCACHEPREFIX={scratch}/empty"));
    }
}
