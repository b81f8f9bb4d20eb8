//! The machines and programs of runs.

use haypile_measure::result::{Machine, Program, Run, Sample, Samples, disturbance};
use haypile_number::quantity;
use haypile_plot::drawing::text::{one_line, printable};

use super::number::{bounded, count, list};

/// Most machines and command lines that an experiment shows.
const MAX_HOSTS: usize = 6;
const MAX_COMMANDS: usize = 20;
/// Longest command line that is shown, in characters.
const MAX_COMMAND_CHARS: usize = 4_000;

/// The distinct machines on which a report's results were measured; sections refer to them by
/// number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machines(Vec<KnownMachine>);

/// A machine of a report, and the builds of Haypile that were measured on it.
#[derive(Clone, Debug)]
pub(crate) struct KnownMachine {
    machine: Machine,
    programs: Vec<Program>,
}

/// A machine with a build of Haypile, for a section of the report, and the commands that were run
/// there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// The number of the machine among those of the report, from 1.
    pub(crate) machine: usize,
    /// The name of the machine's processor.
    pub(crate) processor: String,
    /// The version and the commit of the build of Haypile.
    pub(crate) program: String,
    /// The load average of the machine before the runs began.
    pub(crate) load: String,
    /// The time at which the runs on this machine began, or the first and the last.
    pub(crate) started: String,
    /// Reasons to doubt the results of these runs, such as load on the machine.
    pub(crate) warnings: Vec<String>,
    /// The command lines of the runs on this machine.
    pub(crate) commands: Vec<String>,
}

impl Machines {
    /// Returns the distinct machines of the report, in the order of their numbers.
    pub(crate) fn all(&self) -> &[KnownMachine] {
        &self.0
    }

    /// Returns the number of a run's machine, and remembers both machine and program.
    fn number(&mut self, machine: &Machine, program: &Program) -> usize {
        let at = self.0.iter().position(|known| is_same(&known.machine, machine));
        let at = at.unwrap_or_else(|| {
            self.0.push(KnownMachine { machine: machine.clone(), programs: Vec::new() });
            self.0.len() - 1
        });
        let programs = &mut self.0[at].programs;
        if !programs.contains(program) {
            programs.push(program.clone());
        }
        at + 1
    }
}

impl KnownMachine {
    /// Returns facts about the machine (processor, memory, kernel), each as a name and a value.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let machine = &self.machine;
        vec![
            ("Processor", text(&machine.cpu)),
            ("Cores", machine.cores.to_string()),
            ("Memory", quantity::bytes(machine.memory_bytes)),
            ("Kernel", text(&machine.kernel)),
            ("Virtual", yes(Some(machine.virtual_machine))),
            ("Frequency", text(machine.governor.as_deref().unwrap_or("not told"))),
            ("Turbo", yes(machine.turbo)),
        ]
    }

    /// Returns texts that describe the builds of Haypile; builds that differ only by commit share a
    /// text.
    pub(crate) fn programs(&self) -> Vec<String> {
        let mut builds: Vec<(String, Vec<String>)> = Vec::new();
        for program in &self.programs {
            let build = format!(
                "Haypile {}, compiler {}, allocator {}",
                text(&program.version),
                text(program.rustc.as_deref().unwrap_or("not told")),
                text(&program.allocator)
            );
            let at = builds.iter().position(|(known, _)| *known == build).unwrap_or_else(|| {
                builds.push((build, Vec::new()));
                builds.len() - 1
            });
            builds[at].1.extend(commit(program));
        }
        let words = |(build, commits): (String, Vec<String>)| match commits.len() {
            0 => build,
            1 => format!("{build}; commit {}", commits[0]),
            _ => format!("{build}; commits {}", list(&commits)),
        };
        builds.into_iter().map(words).collect()
    }
}

/// Returns the machines on which these runs were made, with their load, and messages about what is
/// left out.
pub(crate) fn hosts(
    runs: &[&Run],
    samples: &Samples<'_>,
    machines: &mut Machines,
) -> (Vec<Host>, Vec<String>) {
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
            "{} of machine and program {} not shown.",
            count(beyond, "further pair"),
            if beyond == 1 { "is" } else { "are" }
        ));
        groups.truncate(MAX_HOSTS);
    }
    let hosts = groups.iter().map(|group| host(group, samples, machines, &mut left_out)).collect();
    (hosts, left_out)
}

/// Whether two runs were made on one machine, however busy it was.
fn is_same(one: &Machine, other: &Machine) -> bool {
    let facts = |machine: &Machine| {
        let Machine { cpu, cores, kernel, memory_bytes, governor, turbo, virtual_machine, .. } =
            machine.clone();
        (cpu, cores, kernel, memory_bytes, governor, turbo, virtual_machine)
    };
    facts(one) == facts(other)
}

fn host(
    runs: &[&Run],
    samples: &Samples<'_>,
    machines: &mut Machines,
    left_out: &mut Vec<String>,
) -> Host {
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
    let mut warnings: Vec<String> = other_work(runs, samples).into_iter().collect();
    warnings.extend(machine.warnings());
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
        let verb = if beyond == 1 { "is" } else { "are" };
        left_out.push(format!("{} {verb} not shown.", count(beyond, "further command line")));
    }
    Host {
        machine: machines.number(machine, program),
        processor: text(&machine.cpu),
        program: version(program),
        load,
        started: text(&when),
        warnings,
        commands,
    }
}

/// A warning about other work: by what the samples say of it, or where they do not, by the load before.
fn other_work(runs: &[&Run], samples: &Samples<'_>) -> Option<String> {
    let is_own = |sample: &&Sample| runs.iter().any(|run| run.run == sample.run);
    let own: Vec<&Sample> = samples.iter().copied().filter(is_own).collect();
    if own.iter().any(|sample| sample.load.is_some()) {
        return disturbance(own, runs[0].machine.cores);
    }
    let busiest = runs.iter().max_by(|a, b| a.machine.load_1m.total_cmp(&b.machine.load_1m));
    busiest.and_then(|run| run.machine.load_warning())
}

/// The version with the commit, where that is known.
fn version(program: &Program) -> String {
    match commit(program) {
        Some(commit) => format!("{} (commit {commit})", text(&program.version)),
        None => text(&program.version),
    }
}

/// The commit, as short as people write it.
fn commit(program: &Program) -> Option<String> {
    let commit = program.commit.as_deref()?;
    Some(text(&commit.chars().take(12).collect::<String>()))
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
