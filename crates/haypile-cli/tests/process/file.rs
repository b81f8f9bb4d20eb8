//! Commands that read the file of a cache.

use std::fs;

use crate::program::haypile;

#[test]
fn a_file_is_described_and_checked_and_damage_is_a_negative_answer() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let file = path.to_str().expect("text");
    let url = format!("file:{file},size=1MiB");
    let value = "v".repeat(500);
    assert!(haypile(&["set", &url, "key", &value]).status().unwrap().success());

    let stat = haypile(&["stat", file, "--json"]).output().unwrap();
    let stat: serde_json::Value = serde_json::from_slice(&stat.stdout).expect("JSON");
    assert_eq!((&stat["entries"], &stat["size_bytes"]), (&1.into(), &(1 << 20).into()));
    assert_eq!(stat["processes"].as_array().map(Vec::len), Some(0));
    let text = haypile(&["stat", file]).output().unwrap();
    assert!(String::from_utf8_lossy(&text.stdout).contains("entries    1\n"));
    let check = haypile(&["check", file]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&check.stdout), "1 entries are intact, 0 are damaged\n");
    assert_eq!(check.status.code(), Some(0));

    let mut bytes = fs::read(&path).expect("bytes");
    let at = bytes.windows(500).position(|window| window == value.as_bytes()).expect("the value");
    bytes[at + 1] = b'w';
    fs::write(&path, bytes).expect("written");
    let check = haypile(&["check", file]).output().unwrap();
    assert_eq!(check.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&check.stdout).contains("its checksum is another"));

    let nothing = haypile(&["stat", "/nonexistent/cache"]).output().unwrap();
    assert_eq!(nothing.status.code(), Some(2));
    let foreign = haypile(&["check", "/etc/passwd"]).output().unwrap();
    assert_eq!(foreign.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&foreign.stderr).contains("not a cache of Haypile"));
}
