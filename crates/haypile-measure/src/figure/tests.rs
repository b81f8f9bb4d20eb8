use serde_json::json;

use super::*;
use crate::result::{Load, MEMORY_FOUND, Sample};

/// A sample of 10 operations that take `ns` nanoseconds each.
fn sample(run: &str, block: u64, ns: u64) -> Sample {
    serde_json::from_value(json!({
        "schema": 1, "run": run, "experiment": "micro", "case": "get",
        "parameters": {"keys": 4, "requested_bytes": 200}, "seed": 1, "block": block, "position": 0,
        "subject": {"name": "memory", "version": "1", "language": "Rust", "program": "haypile"},
        "operations": 10, "wall_ns": 20 * ns, "cpu_ns": 10 * ns, "hits": 8, "misses": 2,
        "memory_bytes": 1 << 20, "counts": {"hit_bytes": 50, "busy": 3, "longest_write_ns": block},
        "latency_ns": {"get": {"count": 10, "p50": 5, "p90": 6, "p99": 7, "p999": 8, "max": 9, "mean": 5.5}},
    }))
    .unwrap()
}

fn failed(sample: Sample) -> Sample {
    Sample { error: Some("it stopped".to_owned()), ..sample }
}

fn close(found: Option<Estimate>, value: f64) {
    let found = found.unwrap().value;
    assert!((found - value).abs() < 1e-9 * value.abs().max(1.0), "{found} for {value}");
}

#[test]
fn each_figure_is_what_a_reader_computes_from_the_rows() {
    // With a fifth trimmed from each end the middle three are left; their geometric mean is 200.
    let all = [1, 100, 200, 400, 90_000].into_iter().zip(0..);
    let mut samples: Vec<Sample> = all.map(|(ns, block)| sample("a", block, ns)).collect();
    samples.push(failed(Sample { hits: 1_000, ..sample("a", 5, 7) }));
    let samples: Samples<'_> = samples.iter().collect();
    close(CPU.of(&samples), 200.0);
    close(WALL.of(&samples), 400.0);
    close(CPU_RATE.of(&samples), 1e9 / 200.0);
    close(PART_CPU.of(&samples), 2000.0);
    close(SOURCE_CPU.of(&samples), 200.0);
    close(KEY_WALL.of(&samples), 1000.0);
    close(MEMORY.of(&samples), f64::from(1 << 20));
    close(HIT_RATIO.of(&samples), 0.8);
    close(BYTE_HIT_RATIO.of(&samples), 0.25);
    close(COMPUTATIONS.of(&samples), 0.5);
    assert_eq!(SERVER.of(&samples), None);
    assert_eq!(TOGETHER.of(&samples), CPU.of(&samples));
    // Counts of errors are results as well.
    assert_eq!((count(&samples, "busy"), count(&samples, "longest_write_ns")), (Some(18), Some(5)));
    assert_eq!(count(&samples, "unknown"), None);
}

#[test]
fn samples_of_one_block_count_once() {
    let samples = [sample("a", 0, 100), sample("a", 0, 300), sample("a", 1, 200)];
    let samples: Samples<'_> = samples.iter().collect();
    close(CPU.of(&samples), 200.0);
    assert_eq!(CPU.values(&samples).len(), 2);
    let one = CPU.of(&samples.iter().copied().skip(2).collect()).unwrap();
    assert_eq!((one.interval, one.mad), (None, None), "a block alone says nothing of its spread");
    let other_run = [sample("a", 0, 100), sample("b", 0, 400)];
    let samples: Samples<'_> = other_run.iter().collect();
    assert_eq!(CPU.values(&samples).len(), 2);
}

#[test]
fn errors_and_nothing_have_no_figure() {
    let samples = [failed(sample("a", 0, 100))];
    for samples in [samples.iter().collect(), Samples::default()] {
        for figure in FIGURES {
            assert_eq!(figure.of(&samples), None, "{}", figure.name);
        }
    }
}

#[test]
fn names_are_different() {
    let mut names: Vec<&str> = FIGURES.iter().map(|figure| figure.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), FIGURES.len());
}

#[test]
fn findings_have_every_figure_with_its_key() {
    let other = |sample: Sample| {
        let mut sample = sample;
        "file".clone_into(&mut sample.subject.name);
        sample
    };
    let samples = [
        sample("a", 0, 100),
        other(sample("a", 0, 200)),
        sample("b", 0, 100),
        other(failed(sample("b", 0, 200))),
    ];
    let json = Findings::of(&samples.iter().collect(), FIGURES).to_json();
    assert_eq!(json["schema"], 1);
    let all = json["findings"].as_array().unwrap();
    let find = |subject: &str, figure: &str| {
        all.iter().find(|it| it["subject"]["name"] == subject && it["figure"] == figure)
    };
    let cpu = find("file", "cpu").unwrap();
    assert!((cpu["value"].as_f64().unwrap() - 200.0).abs() < 1e-9);
    assert_eq!((&cpu["runs"], &cpu["samples"]), (&json!(["a", "b"]), &json!(2)));
    assert_eq!((&cpu["errors"], &cpu["interval"]), (&json!(1), &json!(null)));
    assert_eq!(cpu["unit"], "nanoseconds");
    let times = find("file", "times").unwrap();
    assert!((times["value"].as_f64().unwrap() - 2.0).abs() < 1e-9);
    assert_eq!(times["over"]["name"], "memory");
    assert_eq!(find("memory", "times"), None);
    assert_eq!(find("memory", "p99:get").unwrap()["value"], 7.0);
    assert_eq!(find("memory", "count:busy").unwrap()["value"], 6.0);
    assert!(find("memory", "cpu").unwrap()["interval"]["low"].is_number());
}

#[test]
fn what_is_turned_over_keeps_its_interval_around_it() {
    let blocks = [90, 100, 110, 105, 95].into_iter().zip(0..);
    let samples: Vec<Sample> = blocks.map(|(ns, block)| sample("a", block, ns)).collect();
    let rate = CPU_RATE.of(&samples.iter().collect()).unwrap();
    let ends = rate.interval.unwrap();
    assert!(ends.low < rate.value && rate.value < ends.high, "{rate:?}");
    assert!((rate.value - 1e7).abs() < 2e5, "{rate:?}");
}

#[test]
fn percentiles_are_medians_over_samples_and_the_longest_is_of_all() {
    let with = |block, p50, max| {
        let mut sample = sample("a", block, 1);
        let latency = sample.latency_ns.as_mut().unwrap().get_mut("get").unwrap();
        (latency.p50, latency.max) = (p50, max);
        sample
    };
    let samples = [with(0, 100, 7), with(1, 300, 9), with(2, 200, 8), failed(with(3, 1, 50))];
    let samples: Samples<'_> = samples.iter().collect();
    assert_eq!(Operations::kinds(&samples), ["get"]);
    let get = Operations::of(&samples, "get").unwrap();
    let percentiles = get.percentiles.map(|ns| Quantity::Time.write(ns).replace('\u{A0}', ""));
    assert_eq!(percentiles, ["200ns", "6.00ns", "7.00ns", "8.00ns", "9.00ns"]);
    assert_eq!((get.mean, get.count, get.samples), (Some(5.5), 30, 3));
    assert_eq!(Operations::of(&samples, "set"), None);
}

/// Two subjects in 20 blocks, the costs of the first by block.
fn measured(cost: impl Fn(u64) -> u64) -> Vec<Sample> {
    let pair = |block| {
        let own = Sample { position: block % 2, ..sample("a", block, cost(block)) };
        let mut other = Sample { position: 1 - block % 2, ..sample("a", block, 100) };
        other.subject.name = "other".to_owned();
        [own, other]
    };
    (0..20).flat_map(pair).collect()
}

fn noted(samples: &[Sample]) -> Vec<String> {
    let case: Samples<'_> = samples.iter().collect();
    CaseNotes::of(&case).on(&case.by_subject()[0].1)
}

#[test]
fn notes_say_what_centres_hide() {
    assert_eq!(noted(&measured(|_| 100)), [""; 0]);
    let slow = |block| if [3, 9, 11].contains(&block) { 500 } else { 100 };
    let text = "processor time: 3 of 20 samples took up to 5.00 times the centre";
    assert_eq!(noted(&measured(slow)), [text]);
    let first = |block| if block == 0 { 2000 } else { 100 };
    assert_eq!(
        noted(&measured(first)),
        ["processor time: the first sample took 20.0 times the centre"]
    );
    assert_eq!(
        noted(&measured(|block| 100 + 2 * block)),
        ["processor time: grew by 37.7\u{a0}% over the blocks"]
    );
    let halves = |block| if block % 4 < 2 { 150 } else { 100 };
    let both = noted(&measured(halves));
    assert_eq!(
        both[0],
        "processor time: two speeds: 10 of 20 samples took 1.50 times as long as the others"
    );
}

#[test]
fn a_subject_after_which_all_is_slow_is_named() {
    // After itself in every fourth block, and slower then.
    let mut samples = measured(|_| 100);
    for sample in &mut samples {
        let is_own = sample.subject.name == "memory";
        sample.position = u64::from(is_own == (sample.block % 4 == 3));
        if is_own && sample.block % 4 == 0 && sample.block > 0 {
            sample.cpu_ns = 1300;
        }
    }
    assert_eq!(noted(&samples), ["processor time: took 1.30 times as long after memory"]);
}

/// A stall of the machine is not the subject's fault, and is told all the same. Waiting takes no processor time.
#[test]
fn stalls_for_which_other_work_is_the_reason_say_so() {
    let noted = |waited_ns: u64, threads: u64| {
        let mut samples = measured(|_| 100);
        let stalled = samples.iter_mut().find(|sample| sample.block == 7).unwrap();
        // 8,000 ns more than the others.
        stalled.wall_ns = 10_000;
        stalled.parameters.insert("threads".to_owned(), threads.into());
        let pressure = Some(10_000);
        stalled.load =
            Some(Load { waited_ns: Some(waited_ns), cpu_pressure_ns: pressure, ..Load::default() });
        let case: Samples<'_> = samples.iter().collect();
        let own = case.by_subject();
        own.iter().flat_map(|(_, own)| CaseNotes::of(&case).on(own)).collect::<Vec<_>>()
    };
    let text = "wall time: 1 of 20 samples took 5.00 times the centre";
    assert_eq!(noted(4_000, 1), [format!("{text}, while other work had the processor")]);
    assert_eq!(noted(3_900, 1), [text]);
    // Threads wait for each other.
    assert_eq!(noted(4_000, 8), [text]);
}

/// A small note on one clock does not hide a large one on the other.
#[test]
fn stalls_are_told_next_to_what_processor_time_shows() {
    let mut samples = measured(|block| if block == 3 { 131 } else { 100 });
    for sample in samples.iter_mut().filter(|sample| sample.subject.name == "memory") {
        sample.wall_ns = if [5, 9, 14].contains(&sample.block) { 100_000 } else { 2_000 };
    }
    let slow = "processor time: 1 of 20 samples took 1.31 times the centre";
    assert_eq!(
        noted(&samples),
        [slow, "wall time: 3 of 20 samples took up to 50.0 times the centre"]
    );
}

/// A second run on another day is slower as a whole, which is not a trend.
#[test]
fn runs_are_noted_apart() {
    let mut samples = measured(|block| if block == 0 { 900 } else { 100 });
    for sample in measured(|block| if block == 0 { 900 } else { 120 }) {
        samples.push(Sample { run: "b".to_owned(), ..sample });
    }
    assert_eq!(noted(&samples), ["processor time: the first sample took 9.00 times the centre"]);
}

/// Where one sample says too little, those that say a little more are no better.
#[test]
fn memory_of_which_one_sample_says_too_little_is_left_out() {
    let mut samples = measured(|_| 100);
    let case: Samples<'_> = samples.iter().collect();
    assert!(MEMORY.of(&case.by_subject()[0].1).is_some());
    let own = samples.iter_mut().find(|sample| sample.subject.name == "memory").unwrap();
    own.counts.insert(MEMORY_FOUND.to_owned(), 4 << 20);
    let case: Samples<'_> = samples.iter().collect();
    assert_eq!(MEMORY.of(&case.by_subject()[0].1), None);
    let text = "memory is not comparable and left out: 1 MiB by its runner, and the values that were found have 4 MiB";
    let noted: Vec<String> = noted(&samples).iter().map(|note| note.replace(NBSP, " ")).collect();
    assert_eq!(noted, [text]);
}

#[test]
fn an_interval_has_a_unit_of_its_own_only_where_it_differs() {
    let within = |low, high| {
        let estimate = Estimate::exact(97.0).within(Interval { low, high });
        CPU.write_within(&estimate).replace(NBSP, " ")
    };
    assert_eq!(within(93.0, 101.0), "97.0 ns (93.0 to 101)");
    assert_eq!(within(93.0, 2_000.0), "97.0 ns (93.0 ns to 2.00 µs)");
    assert_eq!(CPU.write_within(&Estimate::exact(97.0)).replace(NBSP, " "), "97.0 ns");
    let ratio = Estimate::exact(0.5).within(Interval { low: 0.25, high: 0.75 });
    assert_eq!(HIT_RATIO.write_within(&ratio), "0.500 (0.250 to 0.750)");
}
