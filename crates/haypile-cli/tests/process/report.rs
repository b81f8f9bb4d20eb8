//! Pages of results as files.

use std::fs;

use tempfile::TempDir;

use crate::program::{FAILURE, haypile};

const RESULTS: &str = "tests/data/lab/builds.jsonl";

#[test]
fn a_page_and_its_plots_are_written_where_they_are_said_to_be() {
    let directory = TempDir::new().unwrap();
    let [page, plots] = ["page.html", "plots"].map(|name| directory.path().join(name));
    let output = haypile(&["lab", "report", RESULTS])
        .arg("--output")
        .arg(&page)
        .arg("--plots")
        .arg(&plots)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed, format!("{}: 2 files\n{}\n", plots.display(), page.display()));
    assert!(fs::read_to_string(&page).unwrap().ends_with("</html>\n"));
    let mut names: Vec<String> = fs::read_dir(&plots)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["micro-get-hit.svg", "micro-set-evict.svg"]);
}

#[test]
fn the_same_rows_give_the_same_page() {
    let page = || haypile(&["lab", "report", RESULTS, "--output", "-"]).output().unwrap();
    let (one, other) = (page(), page());
    assert!(one.status.success(), "{one:?}");
    assert_eq!(one.stdout, other.stdout);
    assert!(one.stdout.starts_with(b"<!DOCTYPE html><html lang=\"en\">"));
}

#[test]
fn there_has_to_be_a_place_and_something_to_show() {
    let directory = TempDir::new().unwrap();
    let empty = directory.path().to_str().unwrap();
    for (results, target, reason) in [
        (empty, "-", "there are no results in"),
        (RESULTS, empty, "is a directory; name the file to write"),
        (RESULTS, "no/such/page.html", "the directory no/such does not exist"),
        ("tests/data/lab/prose.jsonl", "-", "prose.jsonl"),
        ("no.json", "-", "no.json: No such file"),
    ] {
        let output = haypile(&["lab", "report", results, "--output", target]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(FAILURE), "{said}");
        assert!(said.contains(reason), "{said}");
        assert!(output.stdout.is_empty());
    }
}
