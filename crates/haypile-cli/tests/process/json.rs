//! JSON, field by field, and its agreement with the other forms.

use serde_json::{Value, json};

use crate::program::{TINY, TRACE, fail, haypile, path_in, print, print_json, text};

const READS: u64 = 39_310;

fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("{field} of {value}"))
}

fn fraction(value: &Value, field: &str) -> f64 {
    value[field].as_f64().unwrap_or_else(|| panic!("{field} of {value}"))
}

/// Largest difference between sums of fractions.
const ROUNDING: f64 = 1e-12;

#[track_caller]
fn assert_near(one: f64, other: f64) {
    assert!((one - other).abs() < ROUNDING, "{one} and {other}");
}

fn share(part: u64, of: u64) -> f64 {
    part as f64 / of as f64
}

#[test]
fn every_count_of_a_simulation_adds_up() {
    let arguments = ["simulate", TRACE, "--policy", "lru,s3fifo,belady", "--size", "8MiB,16MiB"];
    let document = print_json(&[&arguments[..], &["--json"]].concat());
    assert_eq!(document["version"], 1);
    let [trace] = &document["traces"].as_array().unwrap()[..] else { panic!("one trace") };
    assert_eq!(trace["trace"], "redis-build.csv.zst");
    assert_eq!(trace["requests"], 40_053);
    assert_eq!(trace["keys"], 1067);
    assert_eq!(trace["accounting"], "bytes");
    assert_eq!(trace["complete"], true);
    let simulations = trace["simulations"].as_array().unwrap();
    let which: Vec<_> =
        simulations.iter().map(|one| (&one["policy"], number(one, "capacity"))).collect();
    let policies = ["lru", "s3fifo", "belady"].map(|name| Value::String(name.to_owned()));
    let expected: Vec<_> = [8 << 20, 16 << 20]
        .into_iter()
        .flat_map(|capacity| policies.iter().map(move |policy| (policy, capacity)))
        .collect();
    assert_eq!(which, expected);
    for one in simulations {
        let (hits, misses) = (number(one, "hits"), number(one, "misses"));
        assert_eq!(hits + misses, READS);
        assert_eq!(number(one, "cold_misses"), 652);
        assert_eq!(number(one, "capacity_misses") + 652, misses);
        assert_eq!(number(one, "writes"), 577);
        assert_eq!(number(one, "deletes"), 166);
        assert!(number(one, "used") <= number(one, "capacity"));
        assert!(number(one, "entries") > 0);
        assert!(number(one, "metadata_bytes") > 0);
        assert!(one["cpu_ns"].is_u64());
        assert_near(fraction(one, "hit_ratio"), share(hits, READS));
        let (hit_bytes, miss_bytes) = (number(one, "hit_bytes"), number(one, "miss_bytes"));
        assert_eq!(hit_bytes + miss_bytes, 489_572_385);
        assert_near(fraction(one, "byte_hit_ratio"), share(hit_bytes, hit_bytes + miss_bytes));
    }
}

#[test]
fn csv_says_what_json_says() {
    let arguments = ["simulate", TRACE, "--policy", "fifo,lru", "--size", "2MiB,8MiB"];
    assert_csv_says_what_json_says(&arguments);
    let cost = ["--miss-cost", "fixed=1ms,per-byte=0.5ns"];
    assert_csv_says_what_json_says(&[&arguments[..], &cost].concat());
}

fn assert_csv_says_what_json_says(arguments: &[&str]) {
    let document = print_json(&[arguments, &["--json"]].concat());
    let lines = print(&[arguments, &["--csv"]].concat());
    let mut reader = csv::Reader::from_reader(lines.as_bytes());
    let header = reader.headers().unwrap().clone();
    let records: Vec<_> = reader.records().map(Result::unwrap).collect();
    let simulations = document["traces"][0]["simulations"].as_array().unwrap();
    assert_eq!(records.len(), simulations.len());
    for (record, simulation) in records.iter().zip(simulations) {
        for (column, cell) in header.iter().zip(record) {
            match column {
                "trace" => assert_eq!(cell, "redis-build.csv.zst"),
                "accounting" => assert_eq!(cell, "bytes"),
                "policy" => assert_eq!(simulation[column], cell),
                "cpu_ns" => assert!(cell.parse::<u64>().is_ok()),
                "cost_saved_ratio" | "miss_cost_ns" => {
                    let in_csv: Option<f64> = cell.parse().ok();
                    assert_eq!(in_csv.is_some(), arguments.contains(&"--miss-cost"), "{column}");
                    // The last digit of a number that is read from JSON may differ.
                    let in_json = simulation[column].as_f64();
                    let difference =
                        in_json.zip(in_csv).map(|(json, csv)| (json / csv - 1.0).abs());
                    assert_eq!(in_json.is_some(), in_csv.is_some(), "{column}");
                    assert!(difference.is_none_or(|it| it < 1e-12), "{column}: {difference:?}");
                }
                _ => assert_eq!(simulation[column].to_string(), cell, "{column}"),
            }
        }
    }
}

#[test]
fn a_trace_without_sizes_has_no_byte_hit_ratio() {
    let document = print_json(&["simulate", "tests/data/keys.csv", "--policy", "lru", "--json"]);
    assert_eq!(document["traces"][0]["accounting"], "objects");
    assert_eq!(document["traces"][0]["simulations"][0]["byte_hit_ratio"], Value::Null);
}

#[test]
fn the_curve_is_what_single_simulations_give() {
    for sizes in [["--objects", "1,10,100,1000"], ["--size", "1MiB,4MiB,16MiB,64MiB"]] {
        let document = print_json(
            &[&["simulate", TRACE, "--curve", "lru", "--policy", "lru", "--json"], &sizes[..]]
                .concat(),
        );
        let trace = &document["traces"][0];
        let curve = trace["lru_curve"].as_array().unwrap();
        let simulations = trace["simulations"].as_array().unwrap();
        assert_eq!(curve.len(), 4);
        assert_eq!(simulations.len(), 4);
        for (point, simulation) in curve.iter().zip(simulations) {
            assert_eq!(point["capacity"], simulation["capacity"]);
            // By bytes there is an error, and no bound of it is known.
            let error = if sizes[0] == "--objects" { json!(0.0) } else { Value::Null };
            assert_eq!(point["error"], error);
            let difference =
                fraction(point, "miss_ratio") + fraction(simulation, "hit_ratio") - 1.0;
            // By bytes whole entries are evicted, and what is larger than the cache is never stored.
            // The curve knows neither, because it has no size.
            let allowed = if sizes[0] == "--objects" { ROUNDING } else { 0.02 };
            assert!(difference.abs() < allowed, "{point} and {simulation}");
        }
    }
}

#[test]
fn a_sampled_curve_states_its_error() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("zipf.hpt");
    let trace = trace.to_str().unwrap();
    let pattern = "zipf:keys=50000,exponent=0.8";
    print(&["trace", "generate", pattern, "--requests", "200000", "--output", trace]);
    let arguments = ["simulate", trace, "--curve", "lru", "--objects", "3000", "--json"];
    let exact = print_json(&arguments);
    let sampled = print_json(&[&arguments[..], &["--sample", "0.2"]].concat());
    let point = |document: &Value| document["traces"][0]["lru_curve"][0].clone();
    let (exact, sampled) = (point(&exact), point(&sampled));
    let error = fraction(&sampled, "error");
    assert!(error > 0.0);
    let off = (fraction(&exact, "miss_ratio") - fraction(&sampled, "miss_ratio")).abs();
    assert!(off <= 2.0 * error, "{sampled} for {exact}");
}

#[test]
fn writes_alone_have_no_hit_ratio() {
    let folder = tempfile::tempdir().unwrap();
    let trace = path_in(&folder, "writes.csv");
    std::fs::write(&trace, "key,op,size\n1,set,9\n2,set,9\n1,set,9\n").unwrap();
    let arguments = ["simulate", &trace, "--policy", "lru", "--size", "100"];
    let simulation = print_json(&[&arguments[..], &["--json"]].concat());
    let simulation = &simulation["traces"][0]["simulations"][0];
    assert_eq!(
        (&simulation["hit_ratio"], &simulation["byte_hit_ratio"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(number(simulation, "writes"), 3);
    for form in [["--all"], ["--details"]] {
        let words = print(&[&arguments[..], &form].concat());
        assert_eq!(words.matches("no reads").count(), 2, "{words}");
        assert!(!words.contains("0.000"), "{words}");
    }
}

/// The engine's accounting is of a `memory:` cache in its shards.
#[test]
fn shards_are_those_of_the_engine() {
    let arguments = ["simulate", TRACE, "--policy", "lirs", "--size", "3MiB", "--json"];
    let hits = |more: &[&str]| {
        let document = print_json(&[&arguments[..], more].concat());
        let simulation = &document["traces"][0]["simulations"][0];
        (number(simulation, "shards"), number(simulation, "hits"))
    };
    let engine = ["--accounting", "engine"];
    assert_eq!(hits(&[]).0, 1);
    // A small cache has one.
    let alone = hits(&engine);
    assert_eq!(alone, hits(&[&engine[..], &["--shards", "1"]].concat()));
    let (shards, in_shards) = hits(&[&engine[..], &["--shards", "4"]].concat());
    assert_eq!(shards, 4);
    assert_ne!(in_shards, alone.1);
    let error = fail(&[&arguments[..], &engine, &["--shards", "3"]].concat());
    assert!(error.contains("cannot have 3 shards"), "{error}");
    let error = fail(&[&arguments[..], &["--shards", "2"]].concat());
    assert!(error.contains("add --accounting engine"), "{error}");
    let advice = print_json(&["advise", TRACE, "--budget", "3MiB", "--shards", "2", "--json"]);
    let url = advice["choice"]["url"].as_str().unwrap();
    assert!(url.ends_with("&shards=2"), "{url}");
    // No size is tried that cannot have them, and no URL is advised that cannot be opened.
    let advice = print_json(&["advise", TRACE, "--shards", "64", "--json"]);
    assert!(advice["sizes"][0]["capacity"].as_u64().unwrap() >= 64 << 10, "{advice}");
    for (more, part) in [
        (&["--shards", "3"][..], "cannot have 3 shards"),
        (&["--shards", "100000"], "a power of two up to 1024"),
        (&["--shards", "4", "--accounting", "bytes"], "with --accounting engine"),
        (&["--shards", "4", "--accounting", "objects"], "with --accounting engine"),
    ] {
        let error = fail(&[&["advise", TRACE][..], more].concat());
        assert!(error.contains(part), "{error}");
    }
    for size in ["1", "300GiB"] {
        let error = fail(&["simulate", TRACE, "--accounting", "engine", "--size", size]);
        assert!(error.contains("its size is from 1024 to 274877906944"), "{error}");
    }
    // The number is said where it depends on the machine, and where it costs.
    let advised = |more: &[&str]| {
        let output = haypile(&[&["advise", TRACE, "--budget", "4MiB"][..], more].concat()).output();
        text(output.unwrap().stdout)
    };
    assert!(advised(&[]).contains("Simulated in 2 shards"), "{}", advised(&[]));
    assert!(!advised(&["--shards", "1"]).contains("Simulated in"));
    assert!(advised(&["--accounting", "bytes"]).contains("In shards, the default"));
}

/// A form without deletions and texts says what it lost.
#[test]
fn a_conversion_tells_its_losses() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, target) = (path_in(&folder, "a.csv"), path_in(&folder, "a.oracleGeneral.bin"));
    std::fs::write(&trace, "key,op\n/a,get\n/a,delete\n/a,set\n").unwrap();
    let output = haypile(&["trace", "convert", &trace, &target]).output().unwrap();
    let told = text(output.stderr);
    let lines = [
        "deletions that were left out: 1\n",
        "writes that became reads: 1\n",
        "no sizes",
        "keys became numbers",
    ];
    for line in lines {
        assert!(told.contains(line), "{told}");
    }
    assert_eq!(std::fs::metadata(&target).unwrap().len(), 2 * 24);
    std::fs::write(&trace, "key,op\n/a,delete\n").unwrap();
    let error = fail(&["trace", "convert", &trace, &target]);
    assert!(error.contains("the trace has only deletions"), "{error}");
    assert_eq!(std::fs::metadata(&target).unwrap().len(), 2 * 24, "the file is as it was");
    // The form of our own has all.
    print(&["trace", "convert", &trace, &path_in(&folder, "a.hpt")]);
}

#[test]
fn several_traces_are_several_results() {
    let document = print_json(&[
        "simulate",
        TINY,
        "tests/data/keys.csv",
        "--policy",
        "lru",
        "--objects",
        "2",
        "--json",
    ]);
    let traces = document["traces"].as_array().unwrap();
    let names: Vec<_> = traces.iter().map(|one| one["trace"].as_str().unwrap()).collect();
    assert_eq!(names, ["tiny.csv", "keys.csv"]);
}

#[test]
fn advice_keeps_within_the_budget() {
    let budget = 3 << 20;
    let arguments = ["advise", TRACE, "--policy", "s3fifo,lru", "--budget", "3MiB", "--json"];
    let advice = print_json(&arguments);
    assert_eq!(number(&advice, "requests"), 40_053);
    assert_eq!(number(&advice, "reads"), READS);
    assert_eq!(number(&advice, "keys"), 1067);
    assert_eq!(advice["accounting"], "engine");
    assert_eq!(advice["version"], 2);
    let level = advice["certainty"]["level"].as_str().unwrap();
    assert!(["very", "moderately", "not-very"].contains(&level), "{level}");
    assert!(!advice["certainty"]["reasons"].as_array().unwrap().is_empty());
    let choice = &advice["choice"];
    let policy = choice["policy"].as_str().unwrap();
    assert!(["s3fifo", "lru"].contains(&policy), "{policy}");
    assert!(number(choice, "capacity") <= budget);
    let best = fraction(&advice, "best_possible");
    assert!((0.0..=best).contains(&fraction(choice, "hit_ratio")));
    let url = choice["url"].as_str().unwrap();
    assert!(url.starts_with("memory://?size="), "{url}");
    assert!(url.ends_with(&format!("&policy={policy}")), "{url}");
    for size in advice["sizes"].as_array().unwrap() {
        assert!(fraction(size, "hit_ratio") >= fraction(size, "lru_hit_ratio"), "{size}");
    }
}

#[test]
fn advice_in_words_ends_with_the_url_of_json() {
    let arguments = ["advise", TRACE, "--policy", "s3fifo,lru"];
    let words = print(&arguments);
    let advice = print_json(&[&arguments[..], &["--json"]].concat());
    assert_eq!(words.lines().last(), advice["choice"]["url"].as_str());
}

#[test]
fn info_counts_every_request() {
    let info = print_json(&["trace", "info", TRACE, "--windows", "7", "--json"]);
    assert_eq!(number(&info, "requests"), 40_053);
    assert_eq!(number(&info, "reads"), READS);
    assert_eq!(number(&info, "writes"), 577);
    assert_eq!(number(&info, "deletes"), 166);
    assert_eq!(info["version"], 1);
    let windows = info["working_set"].as_array().unwrap();
    assert_eq!(windows.len(), 7);
    assert_eq!(windows.iter().map(|one| number(one, "requests")).sum::<u64>(), 40_053);
    assert_eq!(windows.iter().map(|one| number(one, "new_keys")).sum::<u64>(), 1067);
}

#[test]
fn every_policy_that_is_listed_runs_with_the_parameters_that_are_listed() {
    let kinds = print_json(&["policies", "--json"]);
    let mut specs = Vec::new();
    for kind in kinds.as_array().unwrap() {
        let params = kind["params"].as_array().unwrap().iter().map(|param| {
            let value = fraction(param, "default");
            assert!((fraction(param, "min")..=fraction(param, "max")).contains(&value), "{param}");
            format!("{}={value}", param["name"].as_str().unwrap())
        });
        let params = params.collect::<Vec<_>>().join(",");
        let name = kind["name"].as_str().unwrap();
        let spec = if params.is_empty() { name.to_owned() } else { format!("{name}:{params}") };
        specs.push(spec);
    }
    assert!(specs.contains(&"lru".to_owned()));
    assert!(specs.contains(&"belady:decline=0".to_owned()));
    let policies = specs.join(",");
    let document =
        print_json(&["simulate", TINY, "--policy", &policies, "--objects", "2", "--json"]);
    let simulations = document["traces"][0]["simulations"].as_array().unwrap();
    assert_eq!(simulations.len(), specs.len());
    assert_eq!(kinds.as_array().unwrap().len(), print(&["policies"]).split("\n\n").count());
}
