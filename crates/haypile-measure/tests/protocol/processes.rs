//! Jobs of several processes: who begins when, what is added up, and what ends all of them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use haypile_measure::job::{Ops, Timing};
use haypile_measure::measure::Places;
use haypile_measure::measure::{Expected, Plan, RunnerLimits};
use haypile_measure::result::Sample;
use haypile_measure::runner::{Assignment, RunnerError, serve};
use tempfile::TempDir;

use crate::job::{set_all, settings, write_job};
use crate::scripted::{case, contender, measured, plan};
use crate::subject::subjects;

/// A job of this many processes, each of which does ten sets. The script is done by process `$P`,
/// and `$LOG` is a file of all of them.
fn plan_of(processes: u32, log: &Path, script: &str) -> Plan {
    let script = format!("P=$5; LOG='{}'\n{script}", log.display());
    let mut plan = plan(vec![contender(&script)]);
    let [case] = &mut plan.cases[..] else { panic!("one case") };
    case.processes = processes;
    case.write = Box::new(move |directory| {
        let timed = vec![set_all(); processes as usize];
        let settings = settings().with_processes(processes);
        write_job(directory, &settings, &set_all(), &timed);
        Ok(Expected {
            operations: timed.iter().map(Ops::operations).sum(),
            verified_before: Some(10),
            verified_after: Some(10),
            ..Expected::default()
        })
    });
    plan
}

/// The words of a process that has done its part; only the first one verifies.
const DONE: &str = "
    echo operations 10; echo wall_ns $((1000 + P)); echo cpu_ns 900; echo hits 0; echo misses 0
    echo errors 0; echo wrong 0; echo version 1.$P; echo language sh; echo memory_bytes 4096
    echo memory_peak_bytes 5000; echo hit_bytes 7; echo entries 10; echo room $((50 + P))
    echo latency_set_count 10; echo latency_set_p50 $((5 + P)); echo latency_set_p90 8
    echo latency_set_p99 8; echo latency_set_p999 8; echo latency_set_max 9
    echo latency_set_mean 5.5
    [ $P = 0 ] && { echo verified_before 10; echo verified_after 10; }
    echo end";

/// A process that does its part, with something else at one step of it: `started`, `ready`, `go`,
/// `timed` or `verify`.
fn part(step: &str, instead: &str) -> String {
    let at = |name: &str| if name == step { instead } else { "" };
    format!(
        "{}\necho ready\n{}\nread go\n{}\necho timed\n{}\nread verify\n{}\n{DONE}",
        at("started"),
        at("ready"),
        at("go"),
        at("timed"),
        at("verify"),
    )
}

fn only(plan: &Plan) -> Sample {
    let outcome = measured(plan);
    let [sample] = &outcome.samples[..] else { panic!("one sample") };
    sample.clone()
}

#[test]
fn what_processes_did_is_added_up_and_the_first_speaks_of_the_cache() {
    let directory = TempDir::new().unwrap();
    let sample = only(&plan_of(3, directory.path(), &part("", "")));
    assert_eq!(sample.error, None);
    assert_eq!((sample.operations, sample.wall_ns, sample.cpu_ns), (30, 1002, 2700));
    assert_eq!(sample.memory_bytes, Some(3 * 4096));
    let count = |name: &str| sample.counts[name];
    assert_eq!((count("memory_peak_bytes"), count("hit_bytes")), (15_000, 21));
    assert_eq!((count("entries"), count("room"), count("verified_after")), (10, 50, 10));
    assert_eq!(sample.subject.version, "1.0");
    let latency = &sample.latency_ns.unwrap()["set"];
    assert_eq!((latency.p50, latency.max), (7, 9), "of the slowest");
}

/// The same job, whose last process works in the background of the others.
fn plan_beside(log: &Path, script: &str) -> Plan {
    let mut plan = plan_of(3, log, script);
    let [case] = &mut plan.cases[..] else { panic!("one case") };
    let write = std::mem::replace(&mut case.write, Box::new(|_| Ok(Expected::default())));
    case.write = Box::new(move |directory| {
        Ok(Expected { operations: 20, last_is_beside: true, ..write(directory)? })
    });
    plan
}

#[test]
fn who_is_beside_the_others_is_told_apart() {
    let directory = TempDir::new().unwrap();
    let served = part("verify", "echo server_cpu_ns 5000");
    let sample = only(&plan_beside(directory.path(), &served));
    assert_eq!(sample.error, None);
    assert_eq!((sample.operations, sample.wall_ns, sample.cpu_ns), (20, 1001, 1800));
    assert_eq!((sample.server_cpu_ns, sample.counts["server_cpu_ns"]), (None, 5000), "of all");
    assert_eq!(sample.memory_bytes, Some(2 * 4096));
    let of_writer = ["operations", "wall_ns", "cpu_ns"].map(|name| format!("beside_{name}"));
    assert_eq!(of_writer.map(|name| sample.counts[&name]), [10, 1002, 900]);
    assert_eq!(sample.counts["hit_bytes"], 14);
}

/// Results end at the first `end`: what the script says before is what counts.
#[test]
fn who_is_finished_before_the_others_was_not_beside_them() {
    let directory = TempDir::new().unwrap();
    let said = |line: &str| {
        let early = format!("[ $P = 2 ] && {{ {line}; exit; }}");
        let sample = only(&plan_beside(directory.path(), &part("verify", &early)));
        assert_eq!((sample.operations, sample.wall_ns), (0, 0));
        sample.error.unwrap()
    };
    let results = "echo operations 10; echo cpu_ns 900; echo errors 0";
    let error = said(&format!("{results}; echo wall_ns 1000; echo wrong 0; echo end"));
    assert!(error.contains("ended after 1000 ns, before the readers, which took 1001"), "{error}");
    let error = said(&format!("{results}; echo wall_ns 2000; echo wrong 3; echo end"));
    assert_eq!(error, "3 values were not those that were written");
}

#[test]
fn the_first_process_has_the_cache_for_itself_before_and_after() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let note = |word: &str| format!("echo {word} $P >> \"$LOG\"");
    let script = format!(
        "{}\necho ready\nread go\n[ $go = go ] || exit 9\n{}\necho timed\nread verify\n\
         [ $verify = verify ] || exit 9\n{}\n{DONE}",
        // Each takes its time with what the next one has to wait for.
        format_args!("{}\n{}\npwd >> \"$LOG.places\"", note("opens"), note("opened")),
        note("timed"),
        format_args!("{}\n{}", note("verifies"), note("verified")),
    );
    let mut plan = plan_of(3, &log, &script);
    plan.surroundings = Some(Box::new(Places::new(directory.path()).unwrap()));
    plan.blocks = 2;
    let outcome = measured(&plan);
    assert!(outcome.samples.iter().all(|sample| sample.error.is_none()), "{:?}", outcome.samples);
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for lines in lines.chunks(15) {
        let opening = ["opens 0", "opened 0", "opens 1", "opened 1", "opens 2", "opened 2"];
        assert_eq!(lines[..6], opening);
        let mut timed = lines[6..9].to_vec();
        timed.sort_unstable();
        assert_eq!(timed, ["timed 0", "timed 1", "timed 2"]);
        let verifying =
            ["verifies 0", "verified 0", "verifies 1", "verified 1", "verifies 2", "verified 2"];
        assert_eq!(lines[9..], verifying);
    }
    let places = fs::read_to_string(directory.path().join("log.places")).unwrap();
    let mut places: Vec<&str> = places.lines().collect();
    assert_eq!(places.len(), 6);
    places.dedup();
    assert_eq!(places.len(), 2, "all of a sample work in one directory");
    assert!(places.iter().all(|place| !fs::exists(place).unwrap()), "nothing is left of them");
}

/// The error of a job of two processes of which the second does something else at one step. No
/// process is left.
#[track_caller]
fn error(limits: RunnerLimits, step: &str, instead: &str) -> String {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("pids");
    let bad = part(step, instead);
    let script =
        format!("echo $$ >> \"$LOG\"\nif [ $P = 1 ]; then\n{bad}\nelse\n{}\nfi", part("", ""));
    let mut plan = plan_of(2, &log, &script);
    plan.limits = limits;
    let sample = only(&plan);
    assert_eq!((sample.operations, sample.wall_ns, sample.cpu_ns), (0, 0, 0));
    let pids = fs::read_to_string(&log).unwrap();
    #[cfg(target_os = "linux")]
    for pid in pids.lines() {
        assert!(!fs::exists(format!("/proc/{pid}")).unwrap(), "process {pid} is still there");
    }
    assert!(pids.lines().count() <= 2);
    sample.error.unwrap_or_else(|| panic!("no error at {step}"))
}

#[test]
fn one_that_crashes_ends_all() {
    for step in ["started", "ready", "go", "timed", "verify"] {
        let error = error(RunnerLimits::default(), step, "echo no memory >&2; exit 3");
        assert!(error.starts_with("process 1: "), "{step}: {error}");
        assert!(error.ends_with("exit status: 3: no memory"), "{step}: {error}");
        assert!(self::error(RunnerLimits::default(), step, "kill -KILL $$").contains("signal: 9"));
    }
}

#[test]
fn one_that_talks_nonsense_ends_all() {
    for (step, instead, said) in [
        ("started", "echo hello", "process 1: the runner said 'hello' where 'ready' was due"),
        ("go", "echo ready", "process 1: the runner said 'ready' where 'timed' was due"),
        ("verify", "echo Hello", "process 1: the runner said 'Hello' where 'NAME VALUE' was due"),
        ("timed", "head -c 100000 /dev/zero", "process 1: the runner said a line of more than"),
        ("started", "echo error it has no cache", "process 1: it has no cache"),
        ("verify", "echo operations many; echo end; exit", "operations 'many', and not a number"),
        ("verify", "echo verified_after 10; echo operations 10; echo end; exit", "did not say"),
    ] {
        let error = error(RunnerLimits::default(), step, instead);
        assert!(error.contains(said), "{step}: {error}");
    }
}

/// Whichever of them is found first, the limit is over for all.
#[test]
fn one_that_hangs_ends_all() {
    let forever = "exec cat /dev/zero > /dev/null";
    let long = RunnerLimits::default();
    let soon = Duration::from_millis(100);
    for (limits, step) in [
        (RunnerLimits { prepare: soon, ..long }, "started"),
        (RunnerLimits { timed: soon, ..long }, "go"),
        (RunnerLimits { timed: soon, ..long }, "verify"),
    ] {
        let error = error(limits, step, forever);
        assert!(error.contains("took longer than 100ms and was killed"), "{step}: {error}");
    }
}

/// The first process waits for the second as one does who waits for a lock.
#[test]
fn a_crash_is_noticed_while_another_process_hangs() {
    let directory = TempDir::new().unwrap();
    let script = part("go", "[ $P = 1 ] && exit 4\nexec tail -f /dev/null");
    let error = only(&plan_of(2, directory.path(), &script)).error.unwrap();
    assert!(error.starts_with("process 1: ") && error.ends_with("exit status: 4"), "{error}");
}

/// If a process closes its output before it ends, the others are still watched.
#[test]
fn a_crash_is_noticed_while_another_process_lives_on_in_silence() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("silent");
    let script = part(
        "go",
        "if [ $P = 1 ]; then\n\
         while ! [ -s \"$LOG\" ]; do :; done; exit 4\n\
         fi\nexec > /dev/null; echo now > \"$LOG\"; exec cat /dev/zero",
    );
    let error = only(&plan_of(2, &log, &script)).error.unwrap();
    assert!(error.starts_with("process 1: ") && error.ends_with("exit status: 4"), "{error}");
}

#[test]
fn a_job_of_one_process_is_started_as_ever() {
    let directory = TempDir::new().unwrap();
    let script = format!("[ $# = 3 ] || exit 8\nP=0\n{}", part("", ""));
    let sample = only(&plan_of(1, directory.path(), &script));
    assert_eq!(sample.error, None);
    assert_eq!(case().processes, 1);
}

/// The output of one process of a job in `directory`, and its end.
fn said(
    directory: &Path,
    subject: &str,
    process: Option<u32>,
) -> (Result<(), RunnerError>, String) {
    let subject = subject.parse().unwrap();
    let assignment = Assignment { process, ..Assignment::new(directory, &subject) };
    let mut output = Vec::new();
    let done = serve(&subjects(), &assignment, &mut &b"go\nverify\n"[..], &mut output);
    (done, String::from_utf8(output).unwrap())
}

#[test]
fn only_the_first_process_prepares_and_verifies() {
    let directory = TempDir::new().unwrap();
    let (mut first, mut second) = (Ops::new(), Ops::new());
    first.delete(3);
    (0..10).for_each(|key| second.get(key));
    let settings = settings().with_processes(2).with_timing(Timing::Each);
    write_job(directory.path(), &settings, &set_all(), &[first, second]);
    let has = |text: &str, line: &str| text.lines().any(|said| said == line);
    let (done, text) = said(directory.path(), "shared", Some(0));
    done.unwrap();
    for line in ["operations 1", "verified_before 10", "verified_after 9", "latency_delete_count 1"]
    {
        assert!(has(&text, line), "{line} in {text}");
    }
    let (done, text) = said(directory.path(), "shared", Some(1));
    done.unwrap();
    // It finds what the first one left, and leaves it as it is.
    for line in ["operations 10", "hits 9", "misses 1", "entries 9", "latency_get_count 10"] {
        assert!(has(&text, line), "{line} in {text}");
    }
    assert!(!text.contains("verified"), "{text}");
    // The first one of another job begins with nothing.
    let (done, text) = said(directory.path(), "shared", Some(0));
    done.unwrap();
    assert!(has(&text, "verified_before 10"), "{text}");
}

#[test]
fn a_cache_of_one_process_s_own_refuses_several() {
    let directory = TempDir::new().unwrap();
    let settings = settings().with_processes(2);
    write_job(directory.path(), &settings, &set_all(), &[set_all(), set_all()]);
    for subject in ["map", "mock:100ns", "again:3:map", "copy"] {
        for process in [0, 1] {
            let (done, text) = said(directory.path(), subject, Some(process));
            assert!(done.is_err());
            let error = "cannot be shared by processes, and the job has 2; ask for --processes 1";
            assert!(text.starts_with("error ") && text.contains(error), "{text}");
            assert_eq!(text.lines().count(), 1, "{text}");
        }
    }
    for (process, part) in [(None, "by --process NUMBER"), (Some(2), "process 2 is not one of")] {
        let (done, text) = said(directory.path(), "shared", process);
        assert!(done.is_err());
        assert!(text.starts_with("error ") && text.contains(part), "{text}");
    }
}
