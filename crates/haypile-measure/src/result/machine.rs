//! The facts about the machine and the program that a result depends on.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, thread};

use serde::{Deserialize, Serialize};

/// The name of the frequency governor of the processors: `performance`, `powersave`.
pub type Governor = Option<String>;

/// A description of the machine that measured, and its load when a run of an experiment began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The model name of the machine's processors.
    pub cpu: String,
    /// The number of processors that the program may use.
    pub cores: u64,
    /// The operating system's name and version.
    pub kernel: String,
    /// The machine's memory in bytes.
    pub memory_bytes: u64,
    /// The load average of the machine in the last minute before the run started.
    pub load_1m: f64,
    /// The frequency governor of the processors; `None` if the system does not state it.
    #[serde(default)]
    pub governor: Governor,
    /// Whether the processors may run above their nominal frequency; `None` if unknown.
    #[serde(default)]
    pub turbo: Option<bool>,
    /// Whether the machine is virtual.
    #[serde(default)]
    pub virtual_machine: bool,
    /// Whether the programs that run caches are bound to processors. Always false: the system
    /// schedules them.
    #[serde(default)]
    pub pinned: bool,
    /// Fields about a machine that later versions of the results format add, by name.
    #[serde(flatten)]
    pub more: BTreeMap<String, serde_json::Value>,
}

/// The program that measured: its version and how it was built.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The version of the program that measured.
    pub version: String,
    /// The commit that the measuring program was built from; `None` if the build did not know it.
    #[serde(default)]
    pub commit: Option<String>,
    /// The version of the compiler that built the measuring program; `None` if the build did not
    /// know it.
    #[serde(default)]
    pub rustc: Option<String>,
    /// The C library and the memory allocator of runners (measuring programs) in Rust.
    #[serde(default)]
    pub allocator: String,
    /// Whether the measuring program was built without optimisation, so that its times mean
    /// nothing.
    #[serde(default)]
    pub debug: bool,
}

impl Machine {
    /// Returns a description of this machine. Facts that the system does not state are empty or
    /// zero.
    pub fn here() -> Self {
        let cpuinfo = read("/proc/cpuinfo");
        let meminfo = read("/proc/meminfo");
        let field = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim_start_matches([' ', '\t', ':']).trim().to_owned())
        };
        let memory_kib = field(&meminfo, "MemTotal").and_then(|text| {
            text.strip_suffix("kB").and_then(|number| number.trim().parse::<u64>().ok())
        });
        let flags = field(&cpuinfo, "flags").unwrap_or_default();
        Self {
            cpu: field(&cpuinfo, "model name").unwrap_or_default(),
            cores: thread::available_parallelism().map_or(0, |cores| cores.get() as u64),
            kernel: format!(
                "{} {}",
                read("/proc/sys/kernel/ostype").trim(),
                read("/proc/sys/kernel/osrelease").trim()
            ),
            memory_bytes: memory_kib.unwrap_or(0).saturating_mul(1024),
            load_1m: load(&read("/proc/loadavg")),
            governor: governor(),
            turbo: turbo(),
            virtual_machine: flags.split(' ').any(|flag| flag == "hypervisor"),
            pinned: false,
            more: BTreeMap::new(),
        }
    }

    /// Returns a warning about the machine's load before the run began: an estimate, for results
    /// that do not record the load during samples.
    pub fn load_warning(&self) -> Option<String> {
        let is_busy = self.cores > 0 && self.load_1m > self.cores as f64;
        is_busy.then(|| {
            format!(
                "the load of {:.2} exceeded the {} processors before: other work may have disturbed the times",
                self.load_1m, self.cores
            )
        })
    }

    /// Returns warnings about the machine, such as changing processor frequencies, for readers of
    /// the results.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(governor) =
            self.governor.as_deref().filter(|governor| *governor != "performance")
        {
            warnings.push(format!("the processors' frequency follows the load ({governor})"));
        }
        warnings
    }
}

impl Program {
    /// Returns a description of this program: its version and how it was built.
    pub fn here() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("HAYPILE_COMMIT").map(str::to_owned),
            rustc: option_env!("HAYPILE_RUSTC").map(str::to_owned),
            allocator: format!(
                "system ({})",
                if cfg!(target_env = "musl") { "musl" } else { "glibc" }
            ),
            debug: cfg!(debug_assertions),
        }
    }

    /// Returns a warning for readers of the results if the program is a test build.
    pub fn warnings(&self) -> Vec<String> {
        let debug = "this is a build for tests, without optimisation: its times mean nothing";
        self.debug.then(|| debug.to_owned()).into_iter().collect()
    }
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn load(loadavg: &str) -> f64 {
    loadavg.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

fn governor() -> Governor {
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    Some(governor.trim().to_owned()).filter(|governor| !governor.is_empty())
}

/// Intel says whether there is none, all others whether there is a boost.
fn turbo() -> Option<bool> {
    match read("/sys/devices/system/cpu/intel_pstate/no_turbo").trim() {
        "0" => return Some(true),
        "1" => return Some(false),
        _ => {}
    }
    match read("/sys/devices/system/cpu/cpufreq/boost").trim() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_warned_of() {
        let machine = Machine { cores: 2, load_1m: 2.01, ..Machine::default() };
        assert!(machine.load_warning().unwrap().contains("2.01 exceeded the 2 processors"));
        let quiet = Machine { load_1m: 2.0, ..machine };
        assert_eq!(quiet.load_warning(), None);
        assert_eq!(quiet.warnings(), Vec::<String>::new());
        let saving = Machine { governor: Some("powersave".to_owned()), ..quiet };
        assert!(saving.warnings()[0].contains("powersave"));
    }

    #[test]
    fn the_load_is_the_first_number() {
        assert!((load("0.14 0.25 0.82 2/129 4711\n") - 0.14).abs() < 1e-9);
        assert!(load("").abs() < 1e-9);
    }
}
