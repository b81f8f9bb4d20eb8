//! Small experiments of the laboratory.

use serde_json::Value;

use crate::program::{FAILURE, haypile};

fn json(arguments: &[&str]) -> Value {
    let output = haypile(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn samples(json: &Value) -> impl Iterator<Item = &Value> {
    json["samples"].as_array().expect("samples").iter()
}

#[test]
fn what_is_written_is_opened_by_another_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().to_str().expect("text");
    let arguments = ["lab", "persist", "--subject", "copy", "--total", "1MB", "--age", "1"];
    let json = json(&[&arguments[..], &["--blocks", "2", "--directory", place, "--json"]].concat());
    let cases: Vec<_> = samples(&json).map(|sample| sample["case"].as_str()).collect();
    let names = ["fill", "write", "open", "open-half", "write-aged", "open-aged"];
    assert_eq!(cases, names.iter().flat_map(|name| [Some(*name); 2]).collect::<Vec<_>>());
    for sample in samples(&json) {
        assert!(sample["error"].is_null(), "{sample}");
        let entries = &sample["parameters"]["entries"];
        // Reading all of it before it is written would be a use of all of it.
        let case = sample["case"].as_str().expect("a name");
        let verified = if case.starts_with("write") { &Value::Null } else { entries };
        assert_eq!(sample["counts"]["verified_after"], *verified, "{sample}");
        let kept = sample["counts"]["file_bytes"].as_u64();
        if case == "fill" {
            assert_eq!((kept, &sample["operations"]), (None, entries));
            continue;
        }
        assert!(kept > sample["parameters"]["entry_bytes"].as_u64());
        if sample["case"] == "open" {
            assert_eq!(sample["hits"], *entries);
            let time = |name: &str| sample["counts"][name].as_u64().expect(name);
            assert!(time("open_wall_ns") <= time("first_hit_wall_ns"));
        }
    }
    let left = directory.path().read_dir().expect("it is there").count();
    assert_eq!(left, 0, "nothing is left behind");
}

/// Reading, loading and inserting are told apart, as the source tells them of its own cache.
#[test]
fn what_a_snapshot_takes_to_open_is_told_apart() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().to_str().expect("text");
    let arguments = ["lab", "persist", "--subject", "memory,file", "--total", "1MB"];
    let arguments = [&arguments[..], &["--blocks", "1", "--directory", place]].concat();
    let json = json(&[&arguments[..], &["--json"]].concat());
    for sample in samples(&json) {
        assert!(sample["error"].is_null(), "{sample}");
        let count = |name: &str| sample["counts"].get(name).and_then(Value::as_u64);
        let parts = ["load_read_ns", "load_check_ns", "load_insert_ns"].map(count);
        let is_memory = sample["subject"]["name"] == "memory:persist=snapshot";
        match count("open_wall_ns").filter(|_| is_memory) {
            Some(open_ns) => {
                assert!(parts.iter().all(|ns| *ns > Some(0)), "{sample}");
                assert!(parts.iter().flatten().sum::<u64>() <= open_ns, "{sample}");
            }
            None => assert_eq!(parts, [None; 3], "{sample}"),
        }
    }
    let shown = haypile(&arguments).output().expect("it runs");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("opening told apart\nSubject"), "{shown}");
}

/// It is one file, which whoever opens it also writes to. What one has opened, none of the others
/// finds changed: each opens what was written.
#[test]
fn a_cache_in_a_file_is_opened_as_it_was_left() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().to_str().expect("text");
    let arguments = ["lab", "persist", "--subject", "file,file:entry_size=1KiB", "--total", "1MB"];
    for more in [&[][..], &["--cold"]] {
        let arguments = [&arguments[..], &["--blocks", "2", "--directory", place, "--json"], more];
        let json = json(&arguments.concat());
        let mut seen = 0;
        for sample in samples(&json) {
            assert!(sample["error"].is_null(), "{sample}");
            let entries = &sample["parameters"]["entries"];
            let count = |name: &str| sample["counts"][name].as_u64().expect(name);
            match sample["case"].as_str().expect("a name") {
                "write" => assert_eq!(sample["operations"], 0, "it is flushed alone"),
                "open" => {
                    assert_eq!(sample["hits"], *entries);
                    assert!(count("open_wall_ns") <= count("first_hit_wall_ns"));
                }
                // It keeps the size that it was made with.
                "open-half" => assert!(
                    count("capacity_bytes")
                        > sample["parameters"]["capacity_bytes"].as_u64().expect("a number")
                ),
                _ => {}
            }
            if sample["case"] != "write" {
                assert_eq!(sample["counts"]["verified_after"], *entries, "{sample}");
            }
            seen += 1;
        }
        assert_eq!(seen, 4 * 2 * 2);
    }
    assert_eq!(directory.path().read_dir().expect("it is there").count(), 0);
}

#[test]
fn a_cache_that_writes_nothing_is_an_error_in_its_rows() {
    let arguments = ["lab", "persist", "--subject", "none", "--total", "1KB", "--blocks", "1"];
    let output = haypile(&arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("none on write: "), "{text}");
}

#[test]
fn a_file_outside_of_the_measured_directory_is_refused() {
    let elsewhere = tempfile::tempdir().expect("a directory");
    let path = elsewhere.path().join("file").to_str().expect("text").to_owned();
    for path in [path.as_str(), "../file"] {
        let subject = format!("memory:persist={path}");
        let output =
            haypile(&["lab", "persist", "--subject", &subject, "--total", "1KB", "--blocks", "1"])
                .output()
                .unwrap();
        assert_eq!(output.status.code(), Some(FAILURE));
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            message.contains(&format!("persist={path} is outside of the directory")),
            "{message}"
        );
    }
    assert_eq!(elsewhere.path().read_dir().expect("it is there").count(), 0);
}

#[test]
fn a_trace_is_replayed_and_hits_are_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = directory.path().join("small.csv");
    std::fs::write(&trace, "key,size\n1,100\n2,200\n1,100\n3,50\n1,100\n").expect("a file");
    let arguments = ["lab", "replay", "--subject", "memory:size=1MiB,none", "--blocks", "1"];
    let trace = trace.to_str().expect("text");
    let json = json(&[&arguments[..], &["--capacity", "50", "--json", trace]].concat());
    let found: Vec<_> = samples(&json)
        .map(|sample| {
            let count = |name: &str| sample["counts"][name].as_u64().expect(name);
            assert_eq!(sample["case"], "small");
            assert_eq!(sample["parameters"]["requested_bytes"], 550);
            assert_eq!(sample["parameters"]["capacity_bytes"], 175);
            (sample["subject"]["name"].clone(), sample["hits"].as_u64(), count("hit_bytes"))
        })
        .collect();
    assert!(found.contains(&("memory:size=1MiB".into(), Some(2), 200)), "{found:?}");
    assert!(found.contains(&("none".into(), Some(0), 0)), "{found:?}");
}

/// Of any experiment: a cache in a file has it where it was told to, and not where the user is.
#[test]
fn caches_in_files_leave_none_behind() {
    let here = tempfile::tempdir().expect("a directory");
    let place = here.path().join("place");
    std::fs::create_dir(&place).expect("a directory");
    let trace = here.path().join("trace.csv");
    std::fs::write(&trace, "key,size\na,10\nb,20\na,10\n").expect("a trace");
    let trace = trace.to_str().expect("text");
    for arguments in
        [&["replay", trace][..], &["micro", "--case", "get-hit", "--keys", "10", "-n", "10"]]
    {
        let mut command = haypile(&[&["lab"], arguments].concat());
        command.args(["--subject", "file", "--blocks", "1", "--json", "--directory", "place"]);
        let output = command.current_dir(&here).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(place.read_dir().expect("it is there").count(), 0);
    }
    let left = here.path().read_dir().expect("it is there").count();
    assert_eq!(left, 2, "the trace and the place");
}

#[test]
fn wrong_names_say_what_there_is() {
    for (arguments, said) in [
        (&["lab", "workload", "pops"][..], "pop, epop, mix, read, proof"),
        (&["lab", "replay", "zipf", "--capacity", "0"], "above 0"),
        (&["lab", "replay", "zipf", "--subject", "moka"], "--rivals PROGRAM"),
    ] {
        let output = haypile(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(said), "{text}");
    }
}
