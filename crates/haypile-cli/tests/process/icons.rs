//! Icons from a shell, and the experiment on them.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{FAILURE, NEGATIVE, haypile, path_in, print, text};

const SVG: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='16' height='16'>\
                   <rect width='16' height='16' fill='#f00'/></svg>";

/// A theme of two icons, one of them broken.
fn theme(folder: &TempDir) -> String {
    let base = folder.path().join("icons");
    let apps = base.join("mine/16");
    fs::create_dir_all(&apps).unwrap();
    let text = "[Icon Theme]\nDirectories=16\n[16]\nSize=16\nType=Fixed\n";
    fs::write(base.join("mine/index.theme"), text).unwrap();
    fs::write(apps.join("red.svg"), SVG).unwrap();
    fs::write(apps.join("broken.png"), "no picture").unwrap();
    base.to_str().unwrap().to_owned()
}

#[test]
fn icons_are_looked_up_written_and_kept() {
    let folder = TempDir::new().unwrap();
    let (base, png) = (theme(&folder), path_in(&folder, "red.png"));
    let cache = format!("file:{},size=4MiB", path_in(&folder, "cache"));
    let place = ["--theme", "mine", "--base", &base, "--cache", &cache];
    let with =
        |words: &[&str]| haypile(&[&["icons"], words, &place[..]].concat()).output().unwrap();
    let found = with(&["lookup", "red-dotted", "--size", "24", "--output", &png]);
    assert_eq!(found.status.code(), Some(0));
    assert!(text(found.stdout).ends_with("mine/16/red.svg\n"));
    assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG"));
    let exact = with(&["lookup", "red-dotted", "--exact"]);
    assert_eq!((exact.status.code(), exact.stdout.len()), (Some(NEGATIVE), 0));
    let broken = with(&["lookup", "broken"]);
    assert_eq!(broken.status.code(), Some(FAILURE));
    assert!(text(broken.stderr).contains("broken.png"));
    let warmed = with(&["warm", "--all", "--size", "16,24"]);
    assert_eq!(warmed.status.code(), Some(NEGATIVE), "one is broken");
    assert!(text(warmed.stderr).contains("broken.png"));
    let missing = with(&["warm", "nothing", "red", "--json"]);
    assert_eq!(missing.status.code(), Some(NEGATIVE));
    let json: Value = serde_json::from_slice(&missing.stdout).unwrap();
    assert_eq!(json["missing"], serde_json::json!(["nothing"]));
    let stat = with(&["stat", "--json"]);
    let json: Value = serde_json::from_slice(&stat.stdout).unwrap();
    assert_eq!((json["names"].as_u64(), json["current"].as_bool()), (Some(2), Some(true)));
}

#[test]
fn an_unusable_cache_of_the_user_is_said_once_and_icons_come_all_the_same() {
    let folder = TempDir::new().unwrap();
    let base = theme(&folder);
    let words = ["icons", "warm", "--theme", "mine", "--base", &base, "--size", "16", "red"];
    let mut own = haypile(&words);
    // The user's folder of caches is a file, and its file system is full.
    own.env("XDG_CACHE_HOME", "/dev/full").env("HOME", "/dev/full");
    let output = own.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text(output.stdout).starts_with("1 rendered"));
}

#[test]
fn the_users_own_cache_is_replaced_where_it_cannot_be_used_and_one_line_says_so() {
    let folder = TempDir::new().unwrap();
    let base = theme(&folder);
    let own = |words: &[&str]| {
        let all = [&["icons"], words, &["--theme", "mine", "--base", &base]].concat();
        let mut command = haypile(&all);
        command.env("XDG_CACHE_HOME", folder.path()).output().unwrap()
    };
    let file = folder.path().join("haypile/icons.haypile");
    assert_eq!(text(own(&["lookup", "red"]).stderr), "");
    for bytes in [12_345_678, 100, 0] {
        fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(bytes).unwrap();
        let found = own(&["lookup", "red"]);
        assert_eq!(found.status.code(), Some(0), "{bytes}");
        assert!(text(found.stdout).ends_with("mine/16/red.svg\n"), "{bytes}");
        let said = text(found.stderr);
        let expected = format!("warning: {} was replaced by an empty cache", file.display());
        assert!(said.starts_with(&expected) && said.lines().count() == 1, "{bytes}: {said}");
        assert!(!said.contains("recreate"), "{bytes}: {said}");
        assert_eq!(text(own(&["lookup", "red"]).stderr), "", "{bytes}");
    }
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_named_cache_that_cannot_be_used_stays_and_icons_are_found_without_it() {
    let folder = TempDir::new().unwrap();
    let base = theme(&folder);
    let path = path_in(&folder, "cache");
    fs::write(&path, "mine").unwrap();
    let with = |words: &[&str], cache: &str| {
        let place = ["--theme", "mine", "--base", &base, "--cache", cache];
        haypile(&[&["icons"], words, &place[..]].concat()).output().unwrap()
    };
    for cache in [format!("file:{path}"), "file:/no/such/folder/cache".to_owned()] {
        let found = with(&["lookup", "red", "--json"], &cache);
        assert_eq!(found.status.code(), Some(0), "{cache}");
        let json: Value = serde_json::from_slice(&found.stdout).unwrap();
        assert_eq!(json["cached"], false, "{cache}");
        let said = text(found.stderr);
        assert!(said.starts_with("warning: icons are not cached: "), "{said}");
        assert_eq!(said.matches("cannot be opened").count(), 1, "{said}");
        for command in [&["warm", "red"][..], &["stat"]] {
            let refused = with(command, &cache);
            assert_eq!(refused.status.code(), Some(FAILURE), "{cache}");
            let said = text(refused.stderr);
            assert_eq!(said.matches("cannot be opened").count(), 1, "{said}");
        }
    }
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    let wrong = with(&["lookup", "red"], "no-such-scheme:/cache");
    assert_eq!(wrong.status.code(), Some(FAILURE));
}

#[test]
fn every_way_of_getting_icons_finds_the_same_pictures() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().to_str().unwrap();
    let words = [
        "lab",
        "icons",
        "--theme",
        "generated",
        "--icons",
        "20",
        "--processes",
        "1,2",
        "--blocks",
        "1",
        "--size",
        "16",
        "--directory",
        place,
        "--json",
        "--cold",
    ];
    let output = haypile(&words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let samples = json["samples"].as_array().unwrap();
    // GTK's program writes GTK's cache: without it, that one is left out, and a line says so.
    let is_gtk = !said.contains("GTK's icon cache of the theme");
    assert!(is_gtk || std::env::var_os("HAYPILE_REQUIRE_RIVALS").is_none(), "{said}");
    assert_eq!(samples.len(), (8 + usize::from(is_gtk)) * 2 * 2);
    for sample in samples {
        assert!(sample["error"].is_null(), "{sample}");
        let processes = sample["parameters"]["processes"].as_u64().unwrap();
        assert_eq!(sample["hits"].as_u64(), Some(18 * processes));
        assert_eq!(sample["misses"].as_u64(), Some(2 * processes), "{sample}");
    }
    let stats = |way: &str| {
        let found = samples.iter().find(|it| it["subject"]["name"] == way).unwrap();
        found["counts"]["stat_calls"].as_u64().unwrap()
            / found["parameters"]["processes"].as_u64().unwrap()
    };
    assert!(stats("probe") > 2 * stats("both"), "{} {}", stats("probe"), stats("both"));
    assert!(stats("both") > 18 && stats("shared") == 0, "{} {}", stats("both"), stats("shared"));
    assert_eq!(fs::read_dir(Path::new(place)).unwrap().count(), 0);
}

#[test]
fn icons_in_a_full_cache_are_read_in_place_by_all_programs() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().to_str().unwrap();
    let words = ["lab", "icons", "--theme", "generated", "--icons", "200", "--size", "16"];
    let full = ["--processes", "2", "--blocks", "1", "--full", "--json", "--directory", place];
    let output = haypile(&words).args(full).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let samples = json["samples"].as_array().unwrap();
    for way in ["both", "shared", "copied"] {
        let sample = samples.iter().find(|it| it["subject"]["name"] == way).unwrap();
        assert!(sample["error"].is_null(), "{sample}");
        assert_eq!(sample["parameters"]["cache"], "full");
        assert_eq!(sample["counts"]["cached"].as_u64(), Some(2 * 180), "{sample}");
        for count in ["copied", "gathered", "cache_failures"] {
            assert_eq!(sample["counts"][count].as_u64(), Some(0), "{way} {count}");
        }
    }
}

#[test]
fn a_game_is_drawn_once_for_each_size_with_a_cache_and_each_time_without() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().to_str().unwrap();
    let game = ["lab", "icons", "--set", "game", "--blocks", "1", "--directory", place];
    let output = haypile(&game).arg("--json").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let samples = json["samples"].as_array().unwrap();
    for sample in samples {
        assert!(sample["error"].is_null(), "{sample}");
    }
    let rendered = |subject: &str| -> Vec<(&str, u64)> {
        let own = samples.iter().filter(|it| it["subject"]["name"] == subject);
        own.map(|it| (it["case"].as_str().unwrap(), it["misses"].as_u64().unwrap())).collect()
    };
    let of = |counts: [u64; 4]| -> Vec<(&str, u64)> {
        ["first-start", "restart", "resize", "resize-back"].into_iter().zip(counts).collect()
    };
    assert_eq!(rendered("drawn"), of([101; 4]));
    assert_eq!(rendered("pixmap-cache"), of([101, 0, 101, 0]));
    assert_eq!(fs::read_dir(Path::new(place)).unwrap().count(), 0);
    let refused = haypile(&[&game[..], &["--theme", "breeze"]].concat()).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--theme applies to icons only"));
}

#[test]
fn a_theme_that_is_not_installed_is_said_with_how_to_get_it() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().to_str().unwrap();
    let words = [
        "lab",
        "icons",
        "--theme",
        "no-such-theme",
        "--icons",
        "10",
        "--processes",
        "1",
        "--blocks",
        "1",
        "--size",
        "16",
        "--directory",
        place,
    ];
    let output = haypile(&words).output().unwrap();
    let said = text(output.stderr);
    assert!(
        said.contains("'no-such-theme' is not measured, because it is not installed")
            && said.contains("breeze-icon-theme")
    );
    assert!(text(output.stdout).contains(" px, generated, "));
    assert!(print(&["lab", "experiments", "icons"]).contains("experiment = \"icons\""));
}
