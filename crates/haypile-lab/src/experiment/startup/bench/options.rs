//! Options of `haypile bench`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use haypile_measure::result::Parameters;
use haypile_startup::Accepted;
use serde_json::json;

use super::super::exports::ExportOptions;
use super::super::options::{Variable, draws};
use super::super::plan::{Schedule, words};
use crate::experiment::session::RunOptions;
use crate::experiment::value::{count, seconds};

/// Between asking a command to end and killing it.
const GRACE: Duration = Duration::from_secs(1);

/// Command-line options of the experiment `bench`.
#[derive(Clone, Debug, Args)]
#[command(about = "Compare two commands: which is faster, and by how much?")]
#[command(
    override_usage = "haypile bench [OPTIONS] <A> <B>\n       haypile bench --import-hyperfine <FILE.json>"
)]
#[command(after_help = "\
In each block, both commands are started and A once more, in random order: a change of the machine
reaches both, and the difference of A from itself shows how large a difference is noise. The
answer is the last line. All variables of the environment stay, and the commands run in the working
directory; '{scratch}' in commands and variables is a new folder. The time runs until the command exits,
or gives the signal of --ready (haypile lab startup --help lists them). Processor time and memory are
those of all its processes.

Without --shell, a command is a program and its arguments, in which quotes may hold blanks. The commands
around a start are always run by sh; in them, HAYPILE_CONDITION is A or B. --setup and --cleanup see A's.

Exit status: 0 done, 1 a command has no result, 2 wrong arguments or failure.

Examples:
  haypile bench 'gzip -k -c big.log' 'zstd -c big.log'
  haypile bench --shell 'sort big.log | uniq -c' 'sort big.log > {scratch}/x; uniq -c {scratch}/x'
  haypile bench './old --serve' './new --serve' --ready port:8080 --prepare 'rm -rf cache'
  haypile bench 'python3 app.py' 'python3 app.py' --env-b PYTHONDONTWRITEBYTECODE=1
  haypile bench --import-hyperfine times.json")]
#[command(mut_arg("directory", |arg| arg.help(
    "Directory for the scratch folder [default: the system's directory for temporary files]"
)))]
#[command(mut_arg("timeout", |arg| arg.default_value("600").help("Seconds after which a start is an error")))]
pub struct BenchOptions {
    /// The two commands to compare, A and B, each in quotes
    #[arg(value_names = ["A", "B"], num_args = 2)]
    pub commands: Vec<String>,
    /// Name under which results keep the comparison of the two commands
    #[arg(long, value_name = "NAME", default_value = "two commands")]
    pub name: String,
    /// Run both commands with sh, which understands pipes and redirections
    #[arg(long, short = 'S')]
    pub shell: bool,
    /// Environment variable of both commands, NAME=VALUE; NAME alone passes on the value that it
    /// has
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// Environment variable of A, NAME=VALUE; repeat the option for others
    #[arg(long, value_name = "NAME=VALUE")]
    pub env_a: Vec<Variable>,
    /// Environment variable of B, NAME=VALUE; repeat the option for others
    #[arg(long, value_name = "NAME=VALUE")]
    pub env_b: Vec<Variable>,
    /// File that each start reads as its standard input [default: an empty input]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Command to run once, before all starts of A and B
    #[arg(long, value_name = "COMMAND")]
    pub setup: Option<String>,
    /// Command to run before each start of A or B, untimed
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Option<String>,
    /// Command to run after each start of A or B
    #[arg(long, value_name = "COMMAND")]
    pub conclude: Option<String>,
    /// Command to run once, after all starts of A and B
    #[arg(long, value_name = "COMMAND")]
    pub cleanup: Option<String>,
    /// Signal by which a started command counts as ready, one of those below
    #[arg(long, value_name = "SIGNAL", default_value = "exit")]
    pub ready: String,
    /// Seconds without work after which a program that keeps running counts as settled
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub settle: Option<Duration>,
    /// Accept these exit statuses, or all statuses without a list; an end by a signal is still an
    /// error
    #[arg(long, value_name = "CODES", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u8))]
    pub ignore_failure: Option<Vec<u8>>,
    /// Number of untimed starts of A and of B before the first timed one
    #[arg(long, short, value_name = "N", default_value = "1", value_parser = count)]
    pub warmup: u64,
    /// Number of blocks: each block starts A twice and B once; fewer than 6 give no intervals
    #[arg(long, short, value_name = "N", default_value = "20", value_parser = count)]
    pub blocks: u64,
    /// Largest number of processes of a command at the same time; more are an error
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_processes: u32,
    /// Measure nothing: compare the commands in this result file of hyperfine, each with the first
    #[arg(long, value_name = "FILE.json", conflicts_with_all = [
        "commands", "shell", "env", "env_a", "env_b", "input", "setup", "prepare", "conclude", "cleanup", "ready",
        "settle", "warmup", "blocks", "timeline", "export_markdown", "export_hyperfine", "out", "findings",
    ])]
    pub import_hyperfine: Option<PathBuf>,
    /// Options for files that are written in addition to the results.
    #[command(flatten)]
    pub exports: ExportOptions,
    /// Options that all experiments share.
    #[command(flatten)]
    pub run: RunOptions,
}

impl BenchOptions {
    /// Returns the two commands to compare, as the user wrote them.
    ///
    /// # Errors
    ///
    /// There are not two.
    pub(in super::super) fn pair(&self) -> anyhow::Result<[&str; 2]> {
        match &self.commands[..] {
            [first, second] => Ok([first, second]),
            _ => bail!(
                "write two commands, each in quotes: haypile bench 'gzip -c big.log' 'zstd -c big.log'"
            ),
        }
    }

    /// Returns the two compared commands as a user would write them in a shell, with their
    /// environment variables.
    pub(in super::super) fn written(&self, commands: [&str; 2]) -> [String; 2] {
        let assigned = |variable: &Variable| {
            let value = shlex::try_quote(&variable.value).unwrap_or_else(|_| "...".into());
            format!("{}={value}", variable.name)
        };
        let one = |own: &[Variable], command: &str| {
            let own = self.env.iter().cloned().chain(own.iter().map(assigned));
            own.chain([command.to_owned()]).collect::<Vec<_>>().join(" ")
        };
        [one(&self.env_a, commands[0]), one(&self.env_b, commands[1])]
    }

    /// Returns the settings for starting the compared commands (shell, input, command before a
    /// start) that the user changed, as parameters of the case.
    pub(in super::super) fn settings(&self) -> Parameters {
        let input = self.input.as_ref().map(|input| input.display().to_string());
        let settings = [
            ("shell", self.shell.then_some(json!(true))),
            ("input", input.map(|input| json!(input))),
            ("prepare", self.prepare.as_ref().map(|command| json!(command))),
        ];
        let set = settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        set.collect()
    }

    /// Splits a command into words: the program and its arguments.
    ///
    /// # Errors
    ///
    /// There is no program, or a quote has no end.
    pub(in super::super) fn words(&self, command: &str) -> anyhow::Result<Vec<String>> {
        if command.trim().is_empty() {
            bail!("one of the two commands to compare is empty; write a program and its arguments");
        }
        if self.shell {
            return Ok(["sh", "-c", command].map(str::to_owned).to_vec());
        }
        let words = words(command)?;
        if let Some(word) =
            words.iter().find(|word| ["|", ">", "<", "&&", ";"].contains(&word.as_str()))
        {
            bail!("'{command}' has '{word}', which a shell understands: add --shell, or quote it");
        }
        Ok(words)
    }

    /// Returns the exit statuses of the compared commands that do not count as a failure.
    pub(in super::super) fn accepted(&self) -> Accepted {
        match self.ignore_failure.as_deref() {
            None => Accepted::Success,
            Some([]) => Accepted::Any,
            Some(codes) => Accepted::Codes(codes.iter().map(|code| i32::from(*code)).collect()),
        }
    }

    /// Returns the number of starts of each compared command, and the time limit of a start.
    pub(in super::super) fn schedule(&self) -> Schedule {
        Schedule {
            blocks: self.blocks,
            warmup: self.warmup,
            cold: None,
            settle: self.settle,
            grace: GRACE,
            traces: false,
            draws: draws(&self.exports, &self.run),
            max_processes: self.max_processes,
            seed: self.run.seed,
            timeout: self.run.timeout,
        }
    }
}
