//! Runners that crash, hang, lie or talk nonsense become rows with an error, and the others go on.

use std::time::Duration;

use haypile_measure::measure::Runner;
use haypile_measure::result::Sample;

use crate::scripted::{RESULTS, contender, measured, plan, polite, sample, sample_at_once};

const LONG: Duration = Duration::from_mins(10);

#[track_caller]
fn assert_error(sample: &Sample, part: &str) {
    let error = sample.error.as_deref().unwrap_or_else(|| panic!("no error: {sample:?}"));
    assert!(error.contains(part), "{error}");
    assert_eq!((sample.operations, sample.wall_ns, sample.cpu_ns), (0, 0, 0));
    assert_eq!(sample.cpu_ns_per_operation(), None);
    assert_eq!(sample.subject.name, "thing");
}

#[test]
fn a_good_runner_makes_a_row() {
    let sample = sample(&polite(RESULTS));
    assert_eq!(sample.error, None);
    assert_eq!((sample.operations, sample.wall_ns, sample.cpu_ns), (10, 1000, 900));
    assert_eq!((sample.subject.version.as_str(), sample.subject.language.as_str()), ("1.2", "sh"));
    assert_eq!(sample.subject.program, "script");
    assert_eq!((sample.memory_bytes, sample.counts["entries"]), (Some(4096), 10));
    assert_eq!(sample.counts["verified_after"], 10);
}

#[test]
fn crashes() {
    assert_error(&sample("exit 3"), "exit status: 3");
    assert_error(&sample("echo out of memory >&2; exit 1"), "exit status: 1: out of memory");
    assert_error(&sample("kill -SEGV $$"), "signal: 11");
    assert_error(&sample("echo ready; exit 4"), "exit status: 4");
    assert_error(&sample("echo ready"), "ended before it said everything");
    assert_error(&sample(&polite("echo operations 10; kill -ABRT $$")), "signal: 6");
    assert_error(&sample(&polite(&format!("{RESULTS}; exit 5"))), "exit status: 5");
}

#[test]
fn what_a_runner_complains_of_at_length_is_cut() {
    let script = "i=0; while [ $i -lt 2000 ]; do echo complaint $i >&2; i=$((i+1)); done; exit 1";
    let sample = sample(script);
    assert_error(&sample, "complaint 1999");
    assert!(sample.error.unwrap().len() < 2000);
}

#[test]
fn a_program_that_is_not_there() {
    let mut nobody = contender("");
    let runner = Runner { program: "/nowhere/runner".into(), ..(*nobody.runner).clone() };
    nobody.runner = runner.into();
    let outcome = measured(&plan(vec![nobody]));
    assert_error(&outcome.samples[0], "script cannot be started: /nowhere/runner: No such file");
}

/// Each of these would wait without end; the limit is over before they can do anything.
#[test]
fn runners_that_hang_are_killed() {
    let now = Duration::ZERO;
    let forever = "exec cat /dev/zero > /dev/null";
    assert_error(&sample_at_once(forever, now, LONG), "took longer than 0ns");
    assert_error(&sample_at_once(&format!("echo ready; {forever}"), LONG, now), "took longer");
    assert_error(&sample_at_once(&polite(forever), LONG, now), "took longer");
    // It has said everything and does not end; and one that closes its output and does not end.
    let done = format!("{RESULTS}; {forever}");
    assert_error(&sample_at_once(&polite(&done), LONG, now), "took longer");
    let closed = "exec cat /dev/zero > /dev/null 2>&1";
    assert_error(&sample_at_once(closed, Duration::from_millis(1), LONG), "took longer than 1ms");
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_runner_started_ends_with_it() {
    let sample = sample("cat /dev/zero > /dev/null & echo $!; wait");
    let error = sample.error.unwrap();
    let pid = error.split('\'').nth(1).unwrap();
    // Killed is not yet gone; nobody may have collected it, so that it stays as a zombie.
    while std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        let (_, state) = stat.rsplit_once(") ").unwrap();
        !state.starts_with('Z') && !state.starts_with('X')
    }) {
        std::thread::yield_now();
    }
}

#[test]
fn nonsense() {
    assert_error(&sample("echo hello"), "said 'hello' where 'ready' was due");
    assert_error(&sample("printf '\\033[2J\\001'"), "said '\\u{1b}[2J\\u{1}'");
    assert_error(&sample("echo error the cache is not installed"), "the cache is not installed");
    assert_error(&sample("head -c 100000 /dev/zero"), "a line of more than 16384 bytes");
    assert_error(&sample("yes"), "said 'y' where 'ready' was due");
    assert_error(&sample(&polite("yes")), "said 'y' where 'NAME VALUE' was due");
    assert_error(&sample(&polite("echo Operations 10")), "'Operations 10'");
    assert_error(&sample(&polite("echo error it broke; exit 2")), "it broke");
    assert_error(&sample(&polite("echo hits 1; echo hits 2")), "said hits twice");
    let many = "i=0; while [ $i -le 1001 ]; do echo n$i 1; i=$((i+1)); done";
    assert_error(&sample(&polite(many)), "more than 1000 results");
}

/// The results with one line replaced.
fn with(line: &str) -> String {
    let name = line.split(' ').next().unwrap();
    let lines = RESULTS.split([';', '\n']).map(str::trim);
    let replaced = lines.map(|other| match other.strip_prefix("echo ") {
        Some(said) if said.split(' ').next() == Some(name) => format!("echo {line}"),
        _ => other.to_owned(),
    });
    polite(&replaced.collect::<Vec<_>>().join("\n"))
}

#[test]
fn results_that_are_no_numbers_or_not_there() {
    assert_error(&sample(&polite("echo end")), "did not say operations");
    assert_error(&sample(&with("cpu_ns many")), "said cpu_ns 'many', and not a number");
    assert_error(&sample(&with("cpu_ns -1")), "said cpu_ns '-1'");
    assert_error(&sample(&with("wall_ns 18446744073709551616")), "and not a number");
    assert_error(&sample(&with("entries few")), "said entries 'few'");
    assert_error(&sample(&with("memory_bytes 1e6")), "said memory_bytes '1e6'");
}

#[test]
fn counts_that_are_not_the_definition_s() {
    assert_error(&sample(&with("operations 11")), "11 operations, and 10 are right by definition");
    assert_error(&sample(&with("hits 1")), "1 hits and misses, and 0 are right");
    assert_error(&sample(&with("wrong 1")), "1 values were not those that were written");
    assert_error(&sample(&with("errors 2")), "2 operations failed");
    let told = polite(&format!(
        "echo first_error the disk is gone\n{}",
        RESULTS.replace("echo errors 0", "echo errors 2")
    ));
    assert_error(&sample(&told), "2 operations failed, the first one so: the disk is gone");
    assert_error(&sample(&with("verified_before 9")), "9 keys found before the timed part");
    assert_error(&sample(&with("verified_after 9")), "9 keys found after the timed part");
}

#[test]
fn the_others_go_on_and_everything_is_kept() {
    let mut plan = plan(vec![contender("exit 3"), contender(&polite(RESULTS)), contender("yes")]);
    plan.blocks = 4;
    let outcome = measured(&plan);
    assert_eq!((outcome.samples.len(), outcome.is_complete), (12, true));
    let good = outcome.samples.iter().filter(|sample| sample.error.is_none());
    assert_eq!(good.map(|sample| sample.block).collect::<Vec<_>>(), [0, 1, 2, 3]);
    for block in 0..4 {
        let block: Vec<_> = outcome.samples.iter().filter(|sample| sample.block == block).collect();
        assert_eq!(block.iter().map(|sample| sample.position).collect::<Vec<_>>(), [0, 1, 2]);
    }
}

#[test]
fn runners_list_their_subjects() {
    let list = |script: &str| contender(script).runner.subjects(LONG);
    let listed =
        list("[ $1 = list-subjects ] && printf 'a\\ta:N\\tperl\\t1\\tit caches\\n'").unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].usage.as_str(), listed[0].help.as_str()), ("a:N", "it caches"));
    for (script, part) in [
        ("echo hello", "said 'hello', and not five fields"),
        ("exit 1", "exit status: 1"),
        ("exit 0", "lists no subjects"),
        ("while :; do printf 'a\\tb\\tc\\td\\te\\n'; done", "more than 1000 subjects"),
    ] {
        let message = list(script).unwrap_err().to_string();
        assert!(
            message.starts_with("/bin/sh is not a runner, ") && message.contains(part),
            "{message}"
        );
    }
}

#[test]
fn a_server_of_the_runners_own_has_its_time() {
    let results = RESULTS.replace("echo end", "echo server_cpu_ns 700; echo end");
    let outcome = measured(&plan(vec![contender(&polite(&results))]));
    let sample = &outcome.samples[0];
    assert_eq!((sample.error.as_deref(), sample.server_cpu_ns), (None, Some(700)));
    assert!(!sample.counts.contains_key("server_cpu_ns"), "{:?}", sample.counts);
}
