//! Conversion of the runners' results into a row.

use std::collections::BTreeMap;

use super::MeasureSlot;
use super::expected::{Expected, Reported};
use super::plan::Contender;
use super::protocol::{Done, Ran};
use crate::job::Op;
use crate::result::{Latency, Sample, SubjectId};
use crate::subject::SubjectSpec;

/// Results that have fields of their own in a row, or are compared here; all others but texts are
/// counts.
const FIELDS: [&str; 10] = [
    "operations",
    "wall_ns",
    "cpu_ns",
    "hits",
    "misses",
    "memory_bytes",
    "read_words",
    "read_crc32",
    "warm_up",
    "killed",
];

/// Results that are text.
const TEXTS: [&str; 3] = ["version", "language", "first_error"];

/// Creates a sample of a contender (a cache and the program that runs it) in a case, without
/// results.
pub(super) fn blank(slot: &MeasureSlot<'_>, contender: &Contender) -> Sample {
    let subject = SubjectId {
        name: contender.subject.to_string(),
        version: String::new(),
        language: String::new(),
        program: contender.runner.label.clone(),
    };
    let case = slot.case;
    let parameters = case.parameters.clone();
    Sample {
        block: slot.block,
        position: slot.position,
        ..Sample::blank(slot.run, case.experiment, case.name.clone(), parameters, subject)
    }
}

/// Returns the sample with this error and without numbers, because the numbers of a failed
/// measurement mean nothing.
pub(super) fn failed(sample: Sample, error: String) -> Sample {
    Sample {
        operations: 0,
        wall_ns: 0,
        cpu_ns: 0,
        server_cpu_ns: None,
        hits: 0,
        misses: 0,
        memory_bytes: None,
        latency_ns: None,
        timeline: None,
        calls: None,
        load: None,
        error: Some(error),
        ..sample
    }
}

/// Counts of what a process did. All others are of the cache, of which there is one.
const ADDED: [&str; 4] = ["errors", "wrong", "hit_bytes", "memory_peak_bytes"];

/// Fills in a sample with the results of its job's processes. The time is that of the slowest;
/// other numbers are added up, and those about the whole cache are the first process's. If the last
/// process only loads the cache, its results become separate counts.
pub(super) fn fill(
    sample: &mut Sample,
    Ran { done, mut load }: Ran,
    expected: &Expected,
) -> Result<Reported, String> {
    let (writer, measured) = match &done[..] {
        [measured @ .., writer] if expected.last_is_beside => (Some(writer), measured),
        all => (None, all),
    };
    for Done { results, .. } in &done {
        let warm_up = optional(results, "warm_up")?.unwrap_or(0);
        if warm_up != expected.warm_up {
            return Err(format!(
                "the job has a warm_up of {} executions, and the runner said that it did {warm_up}",
                expected.warm_up
            ));
        }
        if (optional(results, "killed")? == Some(1)) != expected.is_killed {
            return Err("the runner did not say as the job wants it whether it killed the process that prepared the cache".to_owned());
        }
    }
    let subject: SubjectSpec = sample.subject.name.parse()?;
    let kind = subject.inner_name();
    let mut reported = Reported::default();
    for (process, Done { results, seen, memory }) in measured.iter().enumerate() {
        let is_first = process == 0;
        if is_first {
            let text = |name: &str| results.get(name).cloned().unwrap_or_default();
            sample.subject.version = text("version");
            sample.subject.language = text("language");
        }
        no_errors(results)?;
        let [operations, wall_ns, cpu_ns, hits, misses] =
            ["operations", "wall_ns", "cpu_ns", "hits", "misses"].map(|name| needed(results, name));
        sample.operations = sum(sample.operations, operations?)?;
        sample.wall_ns = sample.wall_ns.max(wall_ns?);
        sample.cpu_ns = sum(sample.cpu_ns, cpu_ns?)?;
        sample.hits = sum(sample.hits, hits?)?;
        sample.misses = sum(sample.misses, misses?)?;
        needed(results, "errors")?;
        needed(results, "wrong")?;
        if results.contains_key("pretends") && kind != "noop" {
            return Err("the runner said that it pretends, and only noop does".to_owned());
        }
        // The one does nothing, and the other has a clock of its own.
        let has_clock_of_its_own = ["noop", "mock"].contains(&kind);
        let server_ns = optional(results, "server_cpu_ns")?;
        if !has_clock_of_its_own {
            if writer.is_none() {
                // Of a writer as well, the laboratory sees the time of the longer of the two.
                load.seen_cpu_ns = seen.cpu_ns().map(|ns| ns + load.seen_cpu_ns.unwrap_or(0));
            }
            let server_ns = server_ns.unwrap_or(0);
            seen.judge(needed(results, "wall_ns")?, needed(results, "cpu_ns")?, server_ns)?;
        }
        reported.add_words(optional(results, "read_words")?);
        reported.add_crc32(optional(results, "read_crc32")?);
        if results.contains_key("memory_bytes") {
            let bytes = needed(results, "memory_bytes")?;
            if let Some(memory) = memory.filter(|_| !has_clock_of_its_own && server_ns.is_none()) {
                memory.judge(bytes)?;
            }
            sample.memory_bytes = Some(sum(sample.memory_bytes.unwrap_or(0), bytes)?);
        }
        for name in results.keys() {
            let is = |names: &[&str]| names.contains(&name.as_str());
            let is_count = !is(&FIELDS) && !is(&TEXTS) && !name.starts_with("latency_");
            if is_count && (is_first || is(&ADDED)) {
                let count = sample.counts.entry(name.clone()).or_default();
                *count = sum(*count, needed(results, name)?)?;
            }
        }
        for op in Op::ALL {
            if let Some(latency) = latency(results, op)? {
                let latencies = sample.latency_ns.get_or_insert_default();
                let slowest = latencies.entry(op.name().to_owned()).or_insert(latency.clone());
                *slowest = slower(slowest, &latency);
            }
        }
    }
    if let Some(Done { results, .. }) = writer {
        // What a server did for that one cannot be told from the rest: it stays a count.
        add_beside(sample, results)?;
    } else {
        sample.server_cpu_ns = sample.counts.remove("server_cpu_ns");
    }
    sample.load = Some(load);
    Ok(reported)
}

fn no_errors(results: &BTreeMap<String, String>) -> Result<(), String> {
    let errors = results.get("errors").filter(|errors| errors.as_str() != "0");
    if let (Some(errors), Some(first)) = (errors, results.get("first_error")) {
        return Err(format!("{errors} operations failed, the first one so: {first}"));
    }
    Ok(())
}

/// Adds the work of a process that was busy in the background of those that are measured. All began
/// at once: it was so as long as they were if it took no less time.
fn add_beside(sample: &mut Sample, results: &BTreeMap<String, String>) -> Result<(), String> {
    no_errors(results)?;
    let wall_ns = needed(results, "wall_ns")?;
    for name in ["operations", "wall_ns", "cpu_ns"] {
        sample.counts.insert(format!("beside_{name}"), needed(results, name)?);
    }
    for name in ["errors", "wrong"] {
        let count = sample.counts.entry(name.to_owned()).or_default();
        *count = sum(*count, needed(results, name)?)?;
    }
    if wall_ns < sample.wall_ns {
        return Err(format!(
            "the writer ended after {wall_ns} ns, before the readers, which took {} ns; they read \
             without a writer for the rest",
            sample.wall_ns
        ));
    }
    Ok(())
}

fn optional(results: &BTreeMap<String, String>, name: &str) -> Result<Option<u64>, String> {
    results.contains_key(name).then(|| needed(results, name)).transpose()
}

fn needed(results: &BTreeMap<String, String>, name: &str) -> Result<u64, String> {
    let value = results.get(name).ok_or_else(|| format!("the runner did not say {name}"))?;
    let number = value.parse().map_err(|_| {
        let shown: String = value.chars().take(80).collect();
        format!("the runner said {name} '{}', and not a number", shown.escape_debug())
    })?;
    Ok(number)
}

fn sum(one: u64, other: u64) -> Result<u64, String> {
    one.checked_add(other).ok_or_else(|| "the runner said numbers beyond 2^64".to_owned())
}

fn latency(results: &BTreeMap<String, String>, op: Op) -> Result<Option<Latency>, String> {
    let name = |part: &str| format!("latency_{}_{part}", op.name());
    if !results.contains_key(&name("count")) {
        return Ok(None);
    }
    let number = |part: &str| needed(results, &name(part));
    let mean = results.get(&name("mean")).and_then(|mean| mean.parse().ok());
    let mean = mean.filter(|mean: &f64| mean.is_finite());
    Ok(Some(Latency {
        count: number("count")?,
        p50: number("p50")?,
        p90: number("p90")?,
        p99: number("p99")?,
        p999: number("p999")?,
        max: number("max")?,
        mean: mean.ok_or_else(|| format!("the runner did not say {} as a number", name("mean")))?,
    }))
}

/// Of two processes the larger of each: percentiles cannot be added up.
fn slower(one: &Latency, other: &Latency) -> Latency {
    Latency {
        count: one.count.max(other.count),
        p50: one.p50.max(other.p50),
        p90: one.p90.max(other.p90),
        p99: one.p99.max(other.p99),
        p999: one.p999.max(other.p999),
        max: one.max.max(other.max),
        mean: one.mean.max(other.mean),
    }
}
