//! The row that begins a run.

use std::collections::hash_map::RandomState;
use std::env;
use std::hash::BuildHasher;

use jiff::Timestamp;

use super::SCHEMA;
use super::machine::{Machine, Program};
use super::row::Run;

impl Run {
    /// Creates the results row of a run of an experiment that begins now on this machine, with the
    /// experiment's own question. `command` is the command line, and `seed` what everything random
    /// is drawn from.
    pub fn begin(experiment: &str, command: String, seed: u64) -> Self {
        let now = Timestamp::now();
        // The hasher's keys are the one source of randomness that the standard library has; two
        // runs that begin in the same second have to differ, no more.
        let random = RandomState::new().hash_one(now.as_nanosecond()) & 0xff_ffff;
        Self {
            schema: SCHEMA,
            run: format!("{}-{random:06x}", now.strftime("%Y%m%dT%H%M%SZ")),
            experiment: experiment.to_owned(),
            asked: None,
            command,
            seed,
            machine: Machine::here(),
            program: Program::here(),
            started: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        }
    }

    /// Returns warnings about the run's machine and program before the run begins, one text each.
    pub fn warnings(&self) -> Vec<String> {
        [self.machine.warnings(), self.program.warnings()].concat()
    }
}

/// Returns the command line of this program, quoted for a shell.
pub fn command_line() -> String {
    let mut arguments = env::args_os().map(|word| word.to_string_lossy().into_owned());
    // The program's own path does not matter.
    let program = arguments.next().map(|_| "haypile".to_owned());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:=%+@".contains(&byte);
    let quoted = arguments.map(|word| {
        let plain = !word.is_empty() && word.bytes().all(is_plain);
        if plain { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    });
    program.into_iter().chain(quoted).collect::<Vec<_>>().join(" ")
}
