//! Commands on one cache: one process reads what another has written.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{FAILURE, NEGATIVE, fail, haypile, path_in, print, print_json, text};

/// The longest value under an empty key in [`Place::url`].
const MAX_VALUE_BYTES: usize = 1_048_448;

/// A little more than a day, so that a slow machine does not matter.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A cache that outlives the commands on it.
pub(crate) struct Place {
    pub(crate) dir: TempDir,
    pub(crate) url: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let url = format!("memory:size=1MiB,persist={}", path_in(&dir, "cache.hps"));
        Self { dir, url }
    }

    fn snapshot(&self) -> Vec<u8> {
        fs::read(self.dir.path().join("cache.hps")).unwrap()
    }

    /// Returns the lines of a dump, sorted, without the first.
    fn entries(&self) -> Vec<String> {
        let dump = print(&["dump", &self.url]);
        let mut lines: Vec<String> = dump.lines().skip(1).map(str::to_owned).collect();
        lines.sort();
        lines
    }
}

/// Runs a command with something on standard input.
#[track_caller]
fn run(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = haypile(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A process that does not read it to its end closes it.
    drop(stdin.write_all(input));
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// Returns the exit status of a command that prints nothing.
#[track_caller]
fn status(arguments: &[&str]) -> i32 {
    let output = haypile(arguments).output().unwrap();
    assert_eq!((text(output.stdout), text(output.stderr)), (String::new(), String::new()));
    output.status.code().unwrap()
}

#[track_caller]
fn set(url: &str, key: &str, value: &[u8]) {
    let output = run(&["set", url, key, "-"], value);
    assert_eq!((text(output.stdout), text(output.stderr)), (String::new(), String::new()));
    assert_eq!(output.status.code(), Some(0));
}

#[track_caller]
fn get(url: &str, key: &str) -> Vec<u8> {
    let output = haypile(&["get", url, key]).output().unwrap();
    assert_eq!(text(output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    output.stdout
}

#[test]
fn a_value_comes_back_byte_for_byte() {
    let place = Place::new();
    let all: Vec<u8> = (0..=255).collect();
    let large = all.repeat(2_000);
    for value in [&b""[..], b"text", b"a line\n", b"\n\n", b"\r\n\0", &all, &large] {
        set(&place.url, "key", value);
        assert_eq!(get(&place.url, "key"), value);
    }
    for value in ["", "-5", "text", "two words", "ß"] {
        assert_eq!(status(&["set", &place.url, "key", value]), 0);
        assert_eq!(get(&place.url, "key"), value.as_bytes());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn on_a_terminal_a_line_ends() {
    let place = Place::new();
    for (value, shown) in [(&b"v"[..], &b"v\r\n"[..]), (b"v\n", b"v\r\n"), (b"", b"\r\n")] {
        set(&place.url, "key", value);
        let printed = crate::program::print_on_terminal(haypile(&["get", &place.url, "key"]), 80);
        assert_eq!(printed.as_bytes(), shown);
    }
}

#[test]
fn a_miss_is_a_negative_answer_and_nothing_else() {
    let place = Place::new();
    assert_eq!(status(&["get", &place.url, "key"]), NEGATIVE);
    assert_eq!(status(&["get", &place.url, "key", "--json"]), NEGATIVE);
    assert_eq!(fs::read_dir(place.dir.path()).unwrap().count(), 0, "nothing came into being");
}

#[test]
fn a_write_may_have_a_condition() {
    let place = Place::new();
    let url = place.url.as_str();
    for (arguments, expected, value) in [
        (&["set", url, "key", "1", "--replace"][..], NEGATIVE, None),
        (&["set", url, "key", "2", "--add"], 0, Some("2")),
        (&["set", url, "key", "3", "--add"], NEGATIVE, Some("2")),
        (&["add", url, "key", "4"], NEGATIVE, Some("2")),
        (&["set", url, "key", "5", "--replace"], 0, Some("5")),
        (&["add", url, "other", "6"], 0, Some("5")),
    ] {
        assert_eq!(status(arguments), expected, "{arguments:?}");
        match value {
            Some(value) => assert_eq!(get(url, "key"), value.as_bytes()),
            None => assert_eq!(status(&["get", url, "key"]), NEGATIVE),
        }
    }
    assert_eq!(get(url, "other"), b"6");
}

#[test]
fn an_entry_has_its_ttl() {
    let place = Place::new();
    let ttl = |key: &str| print_json(&["get", &place.url, key, "--json"])["ttl_ms"].take();
    assert_eq!(status(&["set", &place.url, "days", "v", "--ttl", "2days"]), 0);
    let left = ttl("days").as_u64().unwrap();
    assert!(left > DAY_MS && left <= 2 * DAY_MS, "{left}");
    assert_eq!(status(&["set", &place.url, "ever", "v", "--ttl", "never"]), 0);
    assert_eq!(ttl("ever"), Value::Null);
    // What the URL says counts for what says nothing.
    let url = format!("{},ttl=2days", place.url);
    assert_eq!(status(&["set", &url, "default", "v"]), 0);
    assert!(ttl("default").as_u64().unwrap() > DAY_MS);
    assert_eq!(status(&["set", &url, "ever", "v", "--ttl", "never"]), 0);
    assert_eq!(ttl("ever"), Value::Null);
}

#[test]
fn standard_input_is_read_up_to_what_the_cache_takes() {
    let place = Place::new();
    let largest = vec![b'x'; MAX_VALUE_BYTES];
    set(&place.url, "", &largest);
    assert_eq!(get(&place.url, ""), largest);
    set(&place.url, "", b"old");
    let output = run(&["set", &place.url, "", "-"], &vec![b'x'; MAX_VALUE_BYTES + 1]);
    let message = text(output.stderr);
    assert!(message.starts_with(
        "haypile: standard input has more than 1048448 bytes, the largest value of memory:"
    ));
    assert_eq!(output.status.code(), Some(FAILURE));
    // The store's own limit depends on the key.
    let output = run(&["set", &place.url, "key", "-"], &largest);
    let message = text(output.stderr);
    assert!(message.starts_with("haypile: a value of 1048448 bytes is too large: "), "{message}");
    assert_eq!(output.status.code(), Some(FAILURE));
    assert_eq!(get(&place.url, ""), b"old");
}

#[test]
#[cfg(target_os = "linux")]
fn an_endless_input_ends() {
    let place = Place::new();
    let endless = fs::File::open("/dev/zero").unwrap();
    let output = haypile(&["set", &place.url, "key", "-"]).stdin(endless).output().unwrap();
    assert_eq!(output.status.code(), Some(FAILURE));
    let endless = fs::File::open("/dev/zero").unwrap();
    let output = haypile(&["load", &place.url]).stdin(endless).output().unwrap();
    let message = text(output.stderr);
    let start = "haypile: standard input:1: a line of the dump cannot be loaded: the line exceeds ";
    assert!(message.starts_with(start), "{message}");
    assert_eq!(output.status.code(), Some(FAILURE));
}

#[test]
fn what_is_deleted_is_gone() {
    let place = Place::new();
    for key in ["a", "b", "c"] {
        set(&place.url, key, b"v");
    }
    assert_eq!(status(&["delete", &place.url, "x"]), NEGATIVE);
    assert_eq!(status(&["delete", &place.url, "x", "a", "b", "a"]), 0);
    assert_eq!(print(&["keys", &place.url]), "c\n");
    assert_eq!(status(&["clear", &place.url]), 0);
    assert_eq!(print(&["keys", &place.url]), "");
    assert_eq!(status(&["delete", &place.url, "c"]), NEGATIVE);
}

#[test]
fn a_counter_counts() {
    let place = Place::new();
    let url = place.url.as_str();
    assert_eq!(status(&["incr", url, "n"]), NEGATIVE);
    assert_eq!(print(&["incr", url, "n", "--initial", "7", "--ttl", "2days"]), "7\n");
    assert_eq!(print(&["incr", url, "n", "--initial", "7"]), "8\n");
    assert_eq!(print(&["incr", url, "n", "10"]), "18\n");
    assert_eq!(print(&["incr", url, "n", "-3"]), "15\n");
    assert_eq!(print(&["incr", url, "n", "-16"]), "0\n");
    assert_eq!(print(&["incr", url, "n", "18446744073709551615"]), "18446744073709551615\n");
    assert_eq!(print(&["incr", url, "n", "2"]), "1\n");
    assert_eq!(get(url, "n"), b"1");
    let left = print_json(&["get", url, "n", "--json"])["ttl_ms"].as_u64().unwrap();
    assert!(left > DAY_MS, "the TTL stays: {left}");
    set(url, "n", b"many");
    let message = fail(&["incr", url, "n"]);
    assert!(message.starts_with("haypile: incr needs a value of 1 to 20 decimal digits "));
    assert_eq!(get(url, "n"), b"many");
}

#[test]
fn a_key_reads_back_as_it_was_printed() {
    let place = Place::new();
    for key in ["", " ", "plain", r"C:\\temp", r"a\nb\tc", r"\xff\x00\xfe", r"\x1b[31m", "-dash"] {
        let arguments = ["set", "--key-escaped", &place.url, "--", key, "v"];
        assert_eq!(status(&arguments), 0, "{key}");
        assert_eq!(print(&["keys", &place.url]), format!("{key}\n"));
        assert_eq!(print(&["get", "-e", &place.url, "--", key]), "v");
        let line = print_json(&["keys", &place.url, "--json"]);
        if let Some(base64) = line["key_base64"].as_str() {
            assert_eq!(print(&["get", "--key-base64", &place.url, base64]), "v");
        } else {
            assert_eq!(print(&["get", &place.url, "--", line["key"].as_str().unwrap()]), "v");
        }
        assert_eq!(status(&["delete", "-e", &place.url, "--", key]), 0);
    }
    // Without the option a key is what it is.
    set(&place.url, r"a\nb", b"v");
    assert_eq!(print(&["keys", &place.url]), "a\\\\nb\n");
    assert_eq!(get(&place.url, r"a\nb"), b"v");
}

#[test]
#[cfg(unix)]
fn a_key_on_the_command_line_is_any_bytes() {
    use std::os::unix::ffi::OsStrExt;

    let place = Place::new();
    let (key, value) = (OsStr::from_bytes(b"\xff\n"), OsStr::from_bytes(b"\xfe"));
    let output = haypile(&["set", &place.url]).args([key, value]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let output = haypile(&["get", &place.url]).arg(key).output().unwrap();
    assert_eq!(output.stdout, b"\xfe");
    let output = haypile(&["keys", &place.url, "--null"]).output().unwrap();
    assert_eq!(output.stdout, b"\xff\n\0");
    let output = haypile(&["keys", &place.url, "--raw"]).output().unwrap();
    assert_eq!(output.stdout, b"");
    assert_eq!(output.status.code(), Some(FAILURE));
    assert_eq!(
        text(output.stderr),
        "haypile: the key '\\xff\\n' contains the character that --raw prints after each key; \
         list the keys without --raw or \
         with --null\n"
    );
}

#[test]
fn keys_are_selected() {
    let place = Place::new();
    for key in ["user:1", "user:2", "page:1", "\u{1}x"] {
        set(&place.url, key, b"v");
    }
    let keys = |arguments: &[&str]| {
        let printed = print(&[&["keys", &place.url], arguments].concat());
        let mut keys: Vec<String> = printed.lines().map(str::to_owned).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&[]), [r"\x01x", "page:1", "user:1", "user:2"]);
    assert_eq!(keys(&["--prefix", "user:"]), ["user:1", "user:2"]);
    assert_eq!(keys(&["--prefix", "user:", "--limit", "1"]).len(), 1);
    assert_eq!(keys(&["--limit", "3"]).len(), 3);
    assert_eq!(keys(&["--prefix", r"\x01"]), [""; 0]);
    assert_eq!(keys(&["--prefix", r"\x01", "-e"]), [r"\x01x"]);
    assert_eq!(keys(&["--prefix", "page:", "--raw"]), ["page:1"]);
    let dump = print(&["dump", &place.url, "--prefix", "page:"]);
    let line = r#"{"key":"page:1","value":"v","ttl_ms":null}"#;
    assert_eq!(dump.lines().skip(1).collect::<Vec<_>>(), [line]);
}

#[test]
fn reading_leaves_the_cache_as_it_is() {
    let place = Place::new();
    for key in 0..20 {
        set(&place.url, &key.to_string(), &[b'v'; 10_000]);
    }
    let before = place.snapshot();
    // What is opened smaller would be saved smaller.
    let small = place.url.replace("1MiB", "64KiB");
    for arguments in [&["get", &small, "1"][..], &["keys", &small], &["dump", &small]] {
        haypile(arguments).output().unwrap();
        assert!(place.snapshot() == before, "{arguments:?}");
    }
    assert_eq!(print(&["keys", &place.url]).lines().count(), 20);
}

#[test]
fn a_recorded_read_is_recorded() {
    let place = Place::new();
    set(&place.url, "key", b"v");
    let url = format!("{},record={}", place.url, path_in(&place.dir, "app.rec"));
    assert_eq!(print(&["get", &url, "key"]), "v");
    let recording = fs::read_dir(place.dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let recording = recording.filter(|path| path.to_str().unwrap().contains("app.rec"));
    let recording: Vec<_> = recording.collect();
    assert_eq!(recording.len(), 1);
    let info = print_json(&["trace", "info", recording[0].to_str().unwrap(), "--json"]);
    assert_eq!(info["requests"], 1);
}

#[test]
#[cfg(target_os = "linux")]
fn a_cache_in_a_file_is_used_the_same_way() {
    let (place, dir) = (Place::new(), TempDir::new().unwrap());
    let path = path_in(&dir, "app.haypile");
    let url = format!("file://{path}?size=2MiB");
    assert!(fail(&["get", &url, "key"]).contains(" is not created; "));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(status(&["add", &url, "key", "value", "--ttl", "2days"]), 0);
    assert_eq!(status(&["add", &url, "key", "other"]), NEGATIVE);
    assert_eq!(get(&url, "key"), b"value");
    assert_eq!(status(&["get", &url, "nothing"]), NEGATIVE);
    assert_eq!(print(&["incr", &url, "count", "--initial", "3"]), "3\n");
    assert_eq!(print(&["incr", &url, "count", "-1"]), "2\n");
    assert_eq!(status(&["set", "-e", &url, r"\xff\n", "v"]), 0);
    let dump = print(&["dump", &url]);
    let output = run(&["load", &place.url], dump.as_bytes());
    assert_eq!(text(output.stdout), "3 entries loaded; the cache now holds 3\n");
    assert_eq!(status(&["clear", &url]), 0);
    assert_eq!(print(&["keys", &url]), "");
    let output = run(&["load", &url], print(&["dump", &place.url]).as_bytes());
    assert_eq!(text(output.stdout), "3 entries loaded; the cache now holds 3\n");
    let keys = print(&["keys", &url]);
    let mut keys: Vec<&str> = keys.lines().collect();
    keys.sort_unstable();
    assert_eq!(keys, [r"\xff\n", "count", "key"]);
    assert_eq!(get(&url, "key"), b"value");
}

/// Returns a dump of this many lines. Lines of text have different keys, with and without a TTL;
/// every fourth line writes the same binary key.
fn made_up_dump(entries: u32) -> String {
    let mut dump = String::from("{\"type\":\"dump\",\"schema\":1}\n");
    for number in 0..entries {
        let key = format!("key {number} \\ \u{df} \" \u{1}");
        let value = "\u{0}\u{7f}\u{1f409}value\r\n".repeat(number as usize % 50);
        let ttl = (number % 3 > 0).then_some(2 * DAY_MS);
        let line = match number % 4 {
            0 => json!({"key_base64": "/wA=", "value_base64": "gAA="}),
            _ => json!({"key": key, "value": value, "ttl_ms": ttl}),
        };
        dump.push_str(&line.to_string());
        dump.push('\n');
    }
    dump
}

#[test]
fn what_is_dumped_and_loaded_is_the_same() {
    let (first, second) = (Place::new(), Place::new());
    let dump = made_up_dump(300);
    let output = run(&["load", &first.url], dump.as_bytes());
    assert_eq!(text(output.stderr), "");
    assert_eq!(text(output.stdout), "300 entries loaded; the cache now holds 226\n");
    let file = path_in(&first.dir, "dump.jsonl");
    fs::write(&file, print(&["dump", &first.url])).unwrap();
    let loaded = print_json(&["load", &second.url, &file, "--json"]);
    assert_eq!(loaded, json!({"loaded": 226, "skipped": 0, "entries": 226}));
    let parse = |lines: Vec<String>| -> Vec<Value> {
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let sort = |mut values: Vec<Value>| {
        values.sort_by_key(|value| (value["key"].to_string(), value["key_base64"].to_string()));
        values
    };
    let (mut entries, mut again) = (sort(parse(first.entries())), sort(parse(second.entries())));
    assert_eq!(entries.len(), 226);
    for (one, other) in entries.iter_mut().zip(&mut again) {
        // The second is read later.
        let (one, other) = (one["ttl_ms"].take(), other["ttl_ms"].take());
        assert_eq!(one.is_null(), other.is_null());
        let left = |ttl: &Value| ttl.as_u64().unwrap_or(2 * DAY_MS);
        assert!(left(&one) > DAY_MS && left(&other) > DAY_MS);
    }
    assert_eq!(entries, again);
}

#[test]
fn dumps_may_be_joined() {
    let place = Place::new();
    let dump = "{\"type\":\"dump\",\"schema\":1,\"cache\":\"none://\"}\n{\"key\":\"a\",\"value\":\"1\"}\n\n";
    let output = run(&["load", &place.url], dump.repeat(2).trim_end().as_bytes());
    assert_eq!(text(output.stdout), "2 entries loaded; the cache now holds 1\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_bad_line_is_named_and_what_is_before_it_loaded() {
    let place = Place::new();
    let large = format!("{{\"key\":\"l\",\"value\":\"{}\"}}", "x".repeat(MAX_VALUE_BYTES));
    let long = format!("{{\"key\":\"l\",\"value\":\"{}\"}}", "x".repeat(7 * MAX_VALUE_BYTES));
    for (bad, expected) in [
        ("prose", "the JSON text of the line is wrong: expected value at column 1"),
        (
            "{\"key\":\"k\",\"val",
            "the JSON text of the line is wrong: EOF while parsing a string at column 15",
        ),
        ("{\"key\":\"k\"}", "an entry of a dump needs the field value or value_base64"),
        (&large, "a value of 1048448 bytes is too large: under this key memory:"),
        (&long, "the line exceeds 6684"),
    ] {
        let dump = format!(
            "{{\"type\":\"dump\",\"schema\":1}}\n{{\"key\":\"a\",\"value\":\"1\"}}\n{bad}\n{{\"key\":\"b\",\"value\":\"2\"}}\n"
        );
        let file = path_in(&place.dir, "dump.jsonl");
        fs::write(&file, dump).unwrap();
        assert_eq!(status(&["clear", &place.url]), 0);
        let message = fail(&["load", &place.url, &file]);
        let start = format!(
            "haypile: 1 entry loaded, then: {file}:3: a line of the dump cannot be loaded: {expected}"
        );
        assert!(message.starts_with(&start), "{message}");
        assert!(message.ends_with(" (--skip-bad skips and counts such lines)\n"), "{message}");
        assert_eq!(print(&["keys", &place.url]), "a\n");

        let output = haypile(&["load", &place.url, &file, "--skip-bad"]).output().unwrap();
        assert_eq!(text(output.stdout), "2 entries loaded; the cache now holds 2\n");
        let message = text(output.stderr);
        let start = format!("haypile: skipped 1 line:\n  {file}:3: {expected}");
        assert!(message.starts_with(&start), "{message}");
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
fn other_files_than_dumps_are_not_loaded() {
    let place = Place::new();
    set(&place.url, "key", b"v");
    let before = place.snapshot();
    for (input, expected) in [
        ("", "standard input is empty; a dump has at least its first line"),
        ("\n \n", "standard input is empty; a dump has at least its first line"),
        (
            "{\"key\":\"a\",\"value\":\"1\"}\n",
            "standard input:1: this is not a dump of a cache; expected {\"type\":\"dump\",\"schema\":1} \
             as its first line",
        ),
        (
            "{\"type\":\"dump\",\"schema\":2}\n{\"new\":1}\n",
            "standard input:1: this dump has schema 2, but this program reads 1; use the version of \
            haypile that wrote it, or a later one",
        ),
    ] {
        let output = run(&["load", &place.url, "--skip-bad"], input.as_bytes());
        assert_eq!(text(output.stderr), format!("haypile: {expected}\n"));
        assert_eq!(output.status.code(), Some(FAILURE));
        assert!(place.snapshot() == before);
    }
    let missing = path_in(&place.dir, "missing");
    assert!(fail(&["load", &place.url, &missing]).contains("No such file"));
    let dir = place.dir.path().to_str().unwrap();
    assert!(fail(&["load", &place.url, dir]).contains(" is a directory; "));
}

#[test]
fn a_file_that_is_no_snapshot_is_said_and_left() {
    let place = Place::new();
    let path = place.dir.path().join("cache.hps");
    fs::write(&path, "prose").unwrap();
    let output = haypile(&["get", &place.url, "key"]).output().unwrap();
    assert!(text(output.stderr).contains("cache.hps is not a snapshot of a cache, "));
    assert_eq!(output.status.code(), Some(NEGATIVE));
    let output = haypile(&["set", &place.url, "key", "v"]).output().unwrap();
    assert_eq!(output.status.code(), Some(FAILURE));
    assert_eq!(fs::read_to_string(path).unwrap(), "prose");
}

#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#[test]
fn what_is_written_through_levels_is_in_the_last_one() {
    let dir = TempDir::new().unwrap();
    let file = format!("file:{},size=1MiB", path_in(&dir, "lower.haypile"));
    for write in ["through", "back"] {
        let levels = format!("memory:size=1MiB,write={write}+{file}");
        assert_eq!(status(&["set", &levels, write, "value"]), 0);
        assert_eq!(print(&["get", &file, write]), "value");
        assert_eq!(print(&["get", &levels, write]), "value");
        assert_eq!(print(&["incr", &levels, &format!("{write}-count"), "--initial", "5"]), "5\n");
        assert_eq!(status(&["delete", &levels, write]), 0);
        assert_eq!(status(&["get", &levels, write]), NEGATIVE);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_size_that_an_existing_file_ignores_is_told_of() {
    let dir = TempDir::new().unwrap();
    let path = path_in(&dir, "cache");
    set(&format!("file:{path},size=2MiB"), "key", b"value");
    assert_eq!(get(&format!("file:{path},size=2MiB"), "key"), b"value");
    for arguments in [&["get"][..], &["dump"], &["keys"], &["incr", "--initial", "1"], &["clear"]] {
        let (command, more) = arguments.split_first().unwrap();
        let url = format!("file:{path},size=64MiB");
        let mut words = vec![*command, &url];
        words.extend(["get", "incr"].contains(command).then_some("key"));
        words.extend(more);
        let output = haypile(&words).output().unwrap();
        let warning = text(output.stderr);
        // Once, and before whatever else there is to say.
        assert!(warning.starts_with(&format!("haypile: {path} has 2MiB")), "{words:?}: {warning}");
        assert_eq!(warning.matches("size=64MiB has no effect").count(), 1, "{warning}");
    }
}

#[test]
fn no_message_contains_a_password() {
    for arguments in [
        &["get", "redis://u:hunter2@127.0.0.1:1/0,timeout=1s", "key"][..],
        &["get", "redis:u:hunt,hunter2@127.0.0.1:1/0", "key"],
        &["set", "redis://u:hunter2@127.0.0.1:1/none", "key", "value"],
        &["dump", "memcached://u:hunter2@127.0.0.1:1"],
        &["keys", "redis+unix://:hunter2@/run/nothing.sock"],
        &["stat", "file://u:hunter2@h/nonexistent"],
        // The words of a command in another order.
        &["redis://u:hunter2@127.0.0.1:1", "get", "key"],
        &["redis:u:hunter2", "get", "key"],
        &["get", "memory:", "key", "redis://:hunter2@127.0.0.1:1"],
        &["clear", "memory:", "--redis://:hunter2@127.0.0.1:1"],
        &["lab", "micro", "--subject", "://:hunter2@127.0.0.1"],
        &["lab", "micro", "--subject", "memory,redis://u:hunter2@127.0.0.1:1"],
        &["lab", "micro", "--subject", "redis://u:hunter2@127.0.0.1:1/x?y"],
        &["proxy", "redis://u:hunter2@127.0.0.1:1/0?timeout"],
    ] {
        let output = haypile(arguments).output().unwrap();
        let shown = format!("{}{}", text(output.stdout), text(output.stderr));
        assert_eq!(output.status.code(), Some(FAILURE), "{shown}");
        assert!(!shown.contains("hunter2"), "{arguments:?}: {shown}");
    }
}

/// Runs a command in a directory, with a home of its own.
#[cfg(target_os = "linux")]
#[track_caller]
fn print_in(dir: &TempDir, arguments: &[&str]) -> String {
    let mut command = haypile(arguments);
    let output = command.current_dir(dir.path()).env("HOME", dir.path()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", text(output.stderr));
    text(output.stdout)
}

#[cfg(target_os = "linux")]
#[test]
fn a_cache_is_named_by_a_path_relative_or_not() {
    let dir = TempDir::new().unwrap();
    let name = "my cache, v2 + a->b.haypile";
    let full = path_in(&dir, name);
    print_in(&dir, &["set", &full, "key", "value"]);
    let relative = format!("./{name}");
    let home = format!("~/{name}");
    for cache in [full.as_str(), name, &relative, &home] {
        assert_eq!(print_in(&dir, &["get", cache, "key"]), "value", "{cache}");
    }
    print_in(&dir, &["set", "file:short.haypile,size=1MiB", "key", "other"]);
    for cache in [
        "file:short.haypile",
        "file:~/short.haypile",
        "short.haypile",
        "memory:+file:short.haypile",
    ] {
        assert_eq!(print_in(&dir, &["get", cache, "key"]), "other", "{cache}");
    }
    assert!(print_in(&dir, &["stat", "file:short.haypile"]).contains("1MiB"));
}

/// A URL has options for the commands that write; the program adds the mode in which they do nothing.
#[cfg(target_os = "linux")]
#[test]
fn a_command_that_reads_takes_the_url_of_those_that_write() {
    let dir = TempDir::new().unwrap();
    let url = format!("file:{},size=1MiB,ttl=1h", path_in(&dir, "cache"));
    print(&["set", &url, "key", "value"]);
    assert_eq!(print(&["get", &url, "key"]), "value");
    let copied = fail(&["get", &format!("{url},mode=copy"), "key"]);
    assert!(copied.contains("'size' has no effect with mode=copy"), "{copied}");
}

/// From a miss to the write, between two commands.
#[test]
fn a_lease_in_a_file_is_revoked_by_a_change_of_its_key() {
    let dir = TempDir::new().unwrap();
    let (url, lease) = (path_in(&dir, "app.haypile"), path_in(&dir, "lease"));
    let url = format!("file:{url},size=1MiB");
    let miss = || assert_eq!(status(&["get", &url, "key", "--lease", &lease]), NEGATIVE);
    let set = |value| status(&["set", &url, "key", value, "--lease", &lease]);
    miss();
    assert_eq!((set("one"), set("two")), (0, NEGATIVE));
    assert_eq!(print(&["get", &url, "key", "--lease", &lease]), "one");
    assert_eq!(status(&["delete", &url, "key"]), 0);
    miss();
    assert_eq!(status(&["delete", &url, "key"]), NEGATIVE);
    assert_eq!(set("old"), NEGATIVE);
    miss();
    assert_eq!(status(&["clear", &url]), 0);
    assert_eq!(set("old"), NEGATIVE);

    let error = fail(&["set", &url, "key", "value", "--lease", &path_in(&dir, "nowhere")]);
    assert!(error.contains("the lease cannot be read from"), "{error}");
    fs::write(&lease, "+1").unwrap();
    let error = fail(&["set", &url, "key", "value", "--lease", &lease]);
    assert!(error.contains("has no lease: 64 hexadecimal digits"), "{error}");
}

#[test]
fn an_invalidated_group_has_no_entries_and_a_dump_leaves_groups_out() {
    let place = Place::new();
    let (path, lease) = (path_in(&place.dir, "app.haypile"), path_in(&place.dir, "lease"));
    // A memory cache keeps its groups from command to command as well.
    for url in [format!("file:{path},size=1MiB"), place.url.clone()] {
        assert_eq!(status(&["set", &url, "one", "1", "--group", "a", "--group", "b"]), 0);
        assert_eq!(status(&["set", &url, "two", "2", "--group", "b"]), 0);
        assert_eq!(status(&["set", &url, "three", "3"]), 0);
        assert_eq!(status(&["add", &url, "four", "4", "--group", "c"]), 0);
        let dump = haypile(&["dump", &url]).output().unwrap();
        assert_eq!(text(dump.stdout).lines().count(), 2, "the head and one entry");
        let note = text(dump.stderr);
        assert!(note.contains("which a dump cannot name: 3"), "{note}");
        assert_eq!(status(&["invalidate", &url, "a", "c"]), 0);
        let mut keys: Vec<String> = print(&["keys", &url]).lines().map(str::to_owned).collect();
        keys.sort();
        assert_eq!(keys, ["three", "two"], "{url}");
        assert_eq!(status(&["invalidate", &url, "nobody's"]), 0);
        assert_eq!(print(&["get", &url, "two"]), "2");
    }
    let url = format!("file:{path},size=1MiB");
    let set = |group| status(&["set", &url, "key", "1", "--lease", &lease, "--group", group]);
    for (group, outcome) in [("a", NEGATIVE), ("other", 0)] {
        assert_eq!(status(&["get", &url, "key", "--lease", &lease]), NEGATIVE);
        assert_eq!(status(&["invalidate", &url, "a"]), 0);
        assert_eq!(set(group), outcome, "{group}");
    }

    let error = fail(&["set", &url, "key", "value", "--group", ""]);
    assert!(error.contains("1 to 250 bytes"), "{error}");
    let error = fail(&["invalidate", &url]);
    assert!(error.contains("<GROUP>"), "{error}");
}
