//! Runners whose answers have the right form and are not true: each of the lies that a review tried.

use std::path::Path;

use haypile_measure::figure::{CaseNotes, MEMORY};
use haypile_measure::job::{Ops, Population, Settings, write};
use haypile_measure::measure::{Case, Expected};
use haypile_measure::result::{Parameters, Sample, Samples};

use crate::scripted::{contender, measured, plan};

const KEYS: u32 = 8;
const BYTES: u32 = 20;

/// A job on small values, of which the first four are prepared.
fn case(capacity_bytes: u64, timed: impl Fn(&mut Ops) + 'static) -> Case {
    case_of(BYTES, capacity_bytes, timed)
}

/// A job of eight keys with values of this size, of which the first four are prepared.
fn case_of(value_bytes: u32, capacity_bytes: u64, timed: impl Fn(&mut Ops) + 'static) -> Case {
    let write = move |directory: &Path| {
        let mut population = Population::new();
        for number in 0..KEYS {
            population.push(format!("key {number}").as_bytes(), value_bytes).unwrap();
        }
        let (mut prepare, mut ops) = (Ops::new(), Ops::new());
        (0..4).for_each(|key| prepare.set(key));
        timed(&mut ops);
        let settings = Settings::new(7, capacity_bytes, 1000);
        write(directory, &settings, &population, &prepare, std::slice::from_ref(&ops)).unwrap();
        Ok(Expected { operations: ops.operations(), reads: ops.reads(), ..Expected::default() })
    };
    Case {
        experiment: "test",
        name: "lies".to_owned(),
        parameters: Parameters::new(),
        processes: 1,
        skips: &[],
        write: Box::new(write),
    }
}

/// Hits of a prepared key and of no other.
fn hits() -> Case {
    case(1 << 20, |ops| (0..4).for_each(|key| ops.get(key)))
}

/// The sample of a runner that says `lines` after it did `work` in its timed part.
fn sample(case: Case, work: &str, lines: &str) -> Sample {
    let mut plan = plan(vec![contender(&script(work, lines))]);
    plan.cases = vec![case];
    measured(&plan).samples.remove(0)
}

/// The runner.
fn script(work: &str, lines: &str) -> String {
    let said: Vec<String> =
        lines.split(';').map(|line| format!("echo {}\n", line.trim())).collect();
    let said = said.concat();
    format!(
        "echo ready; read go; {work}\necho timed; read verify\n{said}echo errors 0; echo wrong 0; echo \
         version 1; echo language sh; echo end"
    )
}

#[track_caller]
fn assert_error(sample: &Sample, part: &str) {
    let error = sample.error.as_deref().unwrap_or_else(|| panic!("no error: {sample:?}"));
    assert!(error.contains(part), "{error}");
}

/// The checksum of the four values.
fn words() -> u64 {
    let directory = tempfile::tempdir().unwrap();
    (hits().write)(directory.path()).unwrap();
    let job = haypile_measure::job::Job::read(directory.path()).unwrap();
    let mut pool = job.pool().to_vec();
    (0..4).fold(0_u64, |sum, key| {
        job.entry(key).value(key, &mut pool, |value| {
            let words = value[..16].chunks(8).map(|it| u64::from_le_bytes(it.try_into().unwrap()));
            let rest = value[16..].iter().map(|byte| u64::from(*byte));
            words.chain(rest).fold(sum, u64::wrapping_add)
        })
    })
}

const COUNTS: &str = "operations 4; wall_ns 1000; cpu_ns 900; hits 4; misses 0; verified_before 4; \
                      verified_after 4; verified_new 0";

#[test]
fn an_honest_runner_is_believed() {
    let honest = sample(hits(), ":", &format!("{COUNTS}; read_words {}", words()));
    assert_eq!(honest.error, None);
    assert!(!honest.counts.contains_key("read_words"), "{:?}", honest.counts);
}

#[test]
fn reads_that_were_not_done_and_values_that_were_not_read() {
    assert_error(&sample(hits(), ":", &format!("{COUNTS}; read_words 0")), "did not read");
    let some = format!("{COUNTS}; read_words {}", words().wrapping_sub(1));
    assert_error(&sample(hits(), ":", &some), "did not read what it counts as hits");
    assert_error(&sample(hits(), ":", &format!("{COUNTS}; read_crc32 1")), "read_crc32 is 1");
    assert_error(&sample(hits(), ":", COUNTS), "neither read_words nor read_crc32");
}

/// A word of a subject of ours, which does nothing, would spare a runner every check.
#[test]
fn a_cache_that_says_that_it_only_pretends() {
    assert_error(&sample(hits(), ":", &format!("{COUNTS}; pretends 1")), "only noop does");
}

#[test]
fn a_runner_that_does_not_warm_up_is_not_measured_cold() {
    let warm_up = |lines: &str| {
        let mut plan = plan(vec![contender(&script(":", lines))]);
        plan.cases = vec![hits()];
        plan.warm_up = 3;
        measured(&plan).samples.remove(0)
    };
    let honest = format!("{COUNTS}; read_words {}", words());
    assert_error(&warm_up(&honest), "warm_up of 3 executions, and the runner said that it did 0");
    assert_error(&warm_up(&format!("{honest}; warm_up 2")), "did 2");
    let warmed = warm_up(&format!("{honest}; warm_up 3"));
    assert_eq!(warmed.error, None);
    assert_eq!(warmed.parameters["warm_up"], 3);
    assert!(!warmed.counts.contains_key("warm_up"), "{:?}", warmed.counts);
    // And one that has warmed up where nobody asked for it.
    assert_error(&sample(hits(), ":", &format!("{honest}; warm_up 3")), "warm_up of 0");
}

#[test]
fn a_runner_that_kills_nothing_is_not_measured_after_a_kill() {
    let killed = |lines: &str| {
        let Case { write, .. } = hits();
        let write = move |directory: &Path| Ok(Expected { is_killed: true, ..write(directory)? });
        sample(Case { write: Box::new(write), ..hits() }, ":", lines)
    };
    let honest = format!("{COUNTS}; read_words {}", words());
    assert_error(&killed(&honest), "whether it killed");
    assert_eq!(killed(&format!("{honest}; killed 1")).error, None);
    assert_error(&sample(hits(), ":", &format!("{honest}; killed 1")), "whether it killed");
}

#[test]
fn writes_that_were_not_done() {
    let writes = || case(1 << 20, |ops| (4..KEYS).for_each(|key| ops.set(key)));
    let said = |after: u32, new: u32| {
        format!(
            "operations 4; wall_ns 1000; cpu_ns 900; hits 0; misses 0; verified_before 4; \
             verified_after {after}; verified_new {new}"
        )
    };
    assert_eq!(sample(writes(), ":", &said(8, 4)).error, None);
    assert_eq!(sample(writes(), ":", &said(5, 1)).error, None, "a cache may evict");
    assert_error(&sample(writes(), ":", &said(4, 0)), "none of the keys");
    // With less room a policy may decline all that is new: the row says so, without an error.
    let bounded = || case(8 * 60, |ops| (4..KEYS).for_each(|key| ops.set(key)));
    let declined = sample(bounded(), ":", &said(4, 0));
    assert_eq!((declined.error, declined.counts.get("writes_unproven")), (None, Some(&1)));
    let kept = sample(bounded(), ":", &said(5, 1));
    assert_eq!((kept.error, kept.counts.get("writes_unproven")), (None, None));
}

#[test]
fn more_hits_than_a_cache_of_this_size_can_have() {
    // Room for two of eight, which are read in turns.
    let turns = || {
        case(2 * u64::from(BYTES), |ops| {
            for key in (0..KEYS).chain(0..KEYS) {
                ops.get_set(key);
            }
        })
    };
    let said = |hits: u32| {
        format!(
            "operations 16; wall_ns 1000; cpu_ns 900; hits {hits}; misses {}; verified_before 2; \
             verified_after 2; verified_new 1; read_words 1",
            16 - hits
        )
    };
    // Two of the prepared ones, and two that are kept over the turn.
    assert_eq!(sample(turns(), ":", &said(4)).error, None);
    assert_error(&sample(turns(), ":", &said(5)), "5 hits, and Belady's optimum");
    let free = format!("{}; levels 2", said(5));
    assert_eq!(sample(turns(), ":", &free).error, None);
    assert_error(&sample(turns(), ":", &said(13)), "Belady");
    let free = format!("{}; levels 2", said(13));
    assert_error(&sample(turns(), ":", &free), "a cache without a bound has 12");
}

/// About half a second of work.
const WORK: &str = "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done";
/// The processor time of a process and its ended children so far, in ticks of 10 ms.
const TICKS: &str = "t() { set -- $(cut -d' ' -f14-17 /proc/$$/stat); echo $(($1+$2+$3+$4)); }";

/// The sample of a runner that does `work`, and says these times.
fn timed(work: &str, wall_ns: &str, cpu_ns: &str) -> Sample {
    let counts = COUNTS.replace("wall_ns 1000", &format!("wall_ns {wall_ns}"));
    let counts = counts.replace("cpu_ns 900", &format!("cpu_ns {cpu_ns}"));
    let work = format!(
        "{TICKS}; w=$(date +%s%N); c=$(t); {work}; w=$(($(date +%s%N)-w)); c=$((($(t)-c)*10000000))"
    );
    sample(hits(), &work, &format!("{counts}; read_words {}", words()))
}

#[test]
fn times_that_are_too_short_or_too_long() {
    assert_eq!(timed(WORK, "$w", "$c").error, None);
    assert_error(&timed(WORK, "1000", "$c"), "a wall time of 1000 ns");
    assert_error(&timed(WORK, "$w", "0"), "a processor time of 0 ns");
    assert_error(&timed(WORK, "$((w*2))", "$c"), "nothing takes longer than that");
    assert_error(&timed(WORK, "$w", "$((c*2+100000000))"), "nothing takes longer than that");
    // As a review found it: a hundred times as long, of a part that is over at once.
    assert_error(&timed(":", "3600000000000", "$c"), "nothing takes longer than that");
}

/// A helper that has ended, and one that goes on.
#[test]
fn work_that_another_process_did() {
    let ended = format!("( {WORK} )");
    assert_eq!(timed(&ended, "$w", "$c").error, None, "it counts its children");
    assert_error(&timed(&ended, "$w", "0"), "another process did its work");
    // It lives as long as the runner, which has the other end of a pipe.
    let living = format!(
        "d=$(mktemp -d); mkfifo $d/f $d/g; exec 3<>$d/g; \
         ( exec 4<$d/g 3>&-; {WORK}; echo >$d/f; read over <&4 ) & read over <$d/f; rm -r $d"
    );
    assert_error(&timed(&living, "$w", "0"), "another process did its work");
}

/// Work of this processor time, of which `$c` is the scheduler's number.
fn work_of(ms: u32) -> String {
    format!(
        "read b rest < /proc/$$/schedstat; e=$b; while [ $((e-b)) -lt {ms}000000 ]; do read e rest < /proc/$$/schedstat; \
         done; c=$((e-b))"
    )
}

/// Half of the times of short parts is told from all of them over several blocks.
#[test]
fn half_of_the_times_of_short_parts_has_no_verdict() {
    let samples = |ms: u32, said: &str| {
        let counts = COUNTS.replace("wall_ns 1000", &format!("wall_ns {said}"));
        let counts = counts.replace("cpu_ns 900", &format!("cpu_ns {said}"));
        let lines = format!("{counts}; read_words {}", words());
        let mut plan = plan(vec![contender(&script(&work_of(ms), &lines))]);
        (plan.cases, plan.blocks) = (vec![hits()], 7);
        measured(&plan).samples
    };
    let is_unconfirmed = |ms: u32, said: &str| {
        let samples = samples(ms, said);
        assert!(samples.iter().all(|sample| sample.error.is_none()), "{samples:?}");
        samples.iter().collect::<Samples<'_>>().timing().is_unconfirmed
    };
    // Too short for the check of a single sample.
    assert!(is_unconfirmed(25, "$((c/2))"));
    // However late the laboratory notices the end, it is a small part of this.
    assert!(!is_unconfirmed(150, "$c"));
}

/// The sample of a runner that has four values of 2 MiB in memory, or does not, and says this memory.
fn memory(has_values: bool, said: &str) -> Sample {
    let big = case_of(2 << 20, 1 << 24, |ops| (0..4).for_each(|key| ops.get(key)));
    // Without another process: whatever a child writes counts as written.
    let doubled = "v=0123456789abcdef; i=0; while [ $i -lt 19 ]; do v=$v$v; i=$((i+1)); done";
    let values = if has_values { doubled } else { ":" };
    let lines = format!("{COUNTS}; memory_bytes {said}");
    // What it read is not in question here.
    let lines = lines.replace("hits 4; misses 0", "hits 3; misses 1");
    let mut plan = plan(vec![contender(&format!("{values}; {}", script(":", &lines)))]);
    plan.cases = vec![big];
    measured(&plan).samples.remove(0)
}

#[test]
fn memory_that_is_more_than_was_resident_or_less_than_what_is_there() {
    let honest = memory(true, "8388608");
    assert_eq!((honest.error.as_deref(), honest.memory_bytes), (None, Some(8 << 20)));
    assert_error(&memory(true, "$((1<<30))"), "a memory of 1073741824 bytes");
    let little = memory(true, "1");
    assert_eq!(little.error, None);
    let of = |sample: &Sample| MEMORY.of(&[sample].into_iter().collect());
    assert_eq!(of(&little), None);
    assert!(of(&honest).is_some());
    let own = [&little].into_iter().collect();
    let notes = CaseNotes::of(&own).on(&own);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0]
            .replace('\u{a0}', " ")
            .ends_with("1 B by its runner, and the values that were found have 8 MiB"),
        "{notes:?}"
    );
    // Where nothing is in memory, little is right: it may be on disk.
    assert!(of(&memory(false, "1")).is_some());
}
