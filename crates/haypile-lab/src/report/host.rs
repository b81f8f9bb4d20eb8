//! The machines and programs of runs.

use haypile_sim::plot::drawing::text::{one_line, printable};

use super::number::{bounded, bytes, count};
use crate::result::{Machine, Program, Run};

/// Most machines and command lines that an experiment shows.
const MAX_HOSTS: usize = 6;
const MAX_COMMANDS: usize = 20;
/// Longest command line that is shown, in characters.
const MAX_COMMAND_CHARS: usize = 4_000;

/// A machine with a program, and what was run there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// Facts about the machine: a name and a value each.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// Reasons to doubt the results.
    pub(crate) warnings: Vec<String>,
    /// The command lines of the runs.
    pub(crate) commands: Vec<String>,
}

/// The machines of these runs, and what is not shown of them.
pub(crate) fn hosts(runs: &[&Run]) -> (Vec<Host>, Vec<String>) {
    let mut groups: Vec<Vec<&Run>> = Vec::new();
    for &run in runs {
        let same = |group: &&mut Vec<&Run>| {
            is_same(&group[0].machine, &run.machine) && group[0].program == run.program
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    let mut left_out = Vec::new();
    let beyond = groups.len().saturating_sub(MAX_HOSTS);
    if beyond > 0 {
        left_out.push(format!(
            "{} of machine and program are not shown.",
            count(beyond, "further pair")
        ));
        groups.truncate(MAX_HOSTS);
    }
    let hosts = groups.iter().map(|group| host(group, &mut left_out)).collect();
    (hosts, left_out)
}

/// Whether two runs were made on one machine: everything but its load.
fn is_same(one: &Machine, other: &Machine) -> bool {
    Machine { load_1m: 0.0, ..one.clone() } == Machine { load_1m: 0.0, ..other.clone() }
}

fn host(runs: &[&Run], left_out: &mut Vec<String>) -> Host {
    let (machine, program) = (&runs[0].machine, &runs[0].program);
    let loads = || runs.iter().map(|run| run.machine.load_1m);
    let (low, high) = (loads().fold(f64::MAX, f64::min), loads().fold(0.0, f64::max));
    let load = if low < high { format!("{low:.2} to {high:.2}") } else { format!("{high:.2}") };
    let first = runs.iter().map(|run| &run.started).min();
    let last = runs.iter().map(|run| &run.started).max();
    let when = match (first, last) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(first), _) => first.clone(),
        (None, _) => String::new(),
    };
    let mut facts = vec![
        ("Processor", text(&machine.cpu)),
        ("Cores", machine.cores.to_string()),
        ("Memory", bytes(machine.memory_bytes)),
        ("Kernel", text(&machine.kernel)),
        ("Virtual", yes(Some(machine.virtual_machine))),
        ("Frequency", text(machine.governor.as_deref().unwrap_or("not told"))),
        ("Turbo", yes(machine.turbo)),
        ("Load before", load),
        ("Started", text(&when)),
    ];
    facts.extend(built(program));
    // But for the load the machine is the same in all runs.
    let busiest = runs.iter().max_by(|a, b| a.machine.load_1m.total_cmp(&b.machine.load_1m));
    let mut warnings: Vec<String> = busiest
        .map(|run| {
            let machine = &run.machine;
            machine.load_warning().into_iter().chain(machine.warnings()).collect()
        })
        .unwrap_or_default();
    if program.debug {
        warnings
            .push("the program was built without optimisation: its times mean nothing".to_owned());
    }
    let mut commands: Vec<String> = Vec::new();
    for run in runs {
        let command = bounded(&one_line(&run.command), MAX_COMMAND_CHARS);
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    let beyond = commands.len().saturating_sub(MAX_COMMANDS);
    if beyond > 0 {
        commands.truncate(MAX_COMMANDS);
        left_out.push(format!("{} is not shown.", count(beyond, "further command line")));
    }
    Host { facts, warnings, commands }
}

fn built(program: &Program) -> [(&'static str, String); 3] {
    let commit =
        program.commit.as_deref().map(|commit| commit.chars().take(12).collect::<String>());
    let version = match commit {
        Some(commit) => format!("{} (commit {commit})", program.version),
        None => program.version.clone(),
    };
    [
        ("Haypile", text(&version)),
        ("Compiler", text(program.rustc.as_deref().unwrap_or("not told"))),
        ("Allocator", text(&program.allocator)),
    ]
}

fn text(text: &str) -> String {
    match printable(text) {
        empty if empty.is_empty() => "not told".to_owned(),
        text => text,
    }
}

fn yes(answer: Option<bool>) -> String {
    match answer {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not told",
    }
    .to_owned()
}
