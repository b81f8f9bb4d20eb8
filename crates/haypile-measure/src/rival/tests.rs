use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use tempfile::TempDir;

use super::checkout::{Hints, find};
use super::*;

/// The time limit of a runner; much longer than any does here.
const LIMIT: Duration = Duration::from_mins(1);

fn add(checkout: &Path, name: &str, subjects: &str, script: Option<&str>) {
    let folder = checkout.join("rivals").join(name);
    fs::create_dir_all(&folder).unwrap();
    let manifest = format!(
        "about = \"A cache\"\nlanguage = \"sh\"\nprogram = \"rivals/{name}/run\"\n\
         subjects = [{subjects}]\nmake = \"rivals-foreign\"\n"
    );
    fs::write(folder.join("rival.toml"), manifest).unwrap();
    if let Some(script) = script {
        let program = folder.join("run");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn checkout() -> TempDir {
    let checkout = tempfile::tempdir().unwrap();
    let lists = r"printf 'one\tone[:x=N]\tsh\t1\tfirst\nmore\tmore\tsh\t2\tsecond\n'";
    add(checkout.path(), "good", "\"one\", \"more\"", Some(lists));
    add(checkout.path(), "absent", "\"absent\"", None);
    add(
        checkout.path(),
        "unready",
        "\"unready\"",
        Some("echo 'error it is not; run: make it'; exit 2"),
    );
    add(checkout.path(), "garbage", "\"garbage\"", Some("echo hello; echo again"));
    add(checkout.path(), "crash", "\"crash\"", Some("echo ouch >&2; echo more >&2; kill -9 $$"));
    add(checkout.path(), "silent", "\"silent\"", Some("exit 0"));
    let other = r"printf 'another\tanother\tsh\t1\tone\n'";
    add(checkout.path(), "liar", "\"liar\"", Some(other));
    // A folder that is not a rival.
    fs::create_dir(checkout.path().join("rivals/shared")).unwrap();
    fs::write(checkout.path().join("rivals/README.md"), "").unwrap();
    checkout
}

#[test]
fn each_rival_says_whether_it_runs() {
    let checkout = checkout();
    let rivals = Rivals::find(Some(checkout.path())).unwrap();
    let names: Vec<_> = rivals.iter().map(Rival::name).collect();
    assert_eq!(names, ["absent", "crash", "garbage", "good", "liar", "silent", "unready"]);
    let root = checkout.path().display();
    for (name, expected) in [
        ("absent", State::Missing(format!("there is no {root}/rivals/absent/run"))),
        ("unready", State::Missing("it is not".to_owned())),
        (
            "garbage",
            State::Broken("it said 'hello', and not five fields parted by tabs".to_owned()),
        ),
        ("crash", State::Broken("the runner ended with signal: 9 (SIGKILL): ouch".to_owned())),
        ("silent", State::Broken("it lists no subjects".to_owned())),
        (
            "liar",
            State::Broken(format!(
                "it does not list 'liar', which {root}/rivals/liar/rival.toml names"
            )),
        ),
    ] {
        let rival = rivals.iter().find(|rival| rival.name() == name).unwrap();
        assert_eq!(rival.state(LIMIT), expected);
        assert!(rival.state(LIMIT).why_not().is_some());
    }
    let good = rivals.for_subject("one:x=2").unwrap();
    let State::Runs(listed) = good.state(LIMIT) else { panic!("it runs") };
    assert_eq!(listed.iter().map(|one| &*one.version).collect::<Vec<_>>(), ["1", "2"]);
    assert!(rivals.for_subject("shared").is_none());
}

#[test]
fn names_choose_and_wrong_ones_say_which_there_are() {
    let checkout = checkout();
    let rivals = Rivals::find(Some(checkout.path())).unwrap();
    assert_eq!(rivals.named(&[]).unwrap().len(), 7);
    let chosen = rivals.named(&["silent".to_owned(), "good".to_owned()]).unwrap();
    assert_eq!(chosen.iter().map(|rival| rival.name()).collect::<Vec<_>>(), ["good", "silent"]);
    let error = rivals.named(&["moka".to_owned()]).unwrap_err().to_string();
    let names = "absent, crash, garbage, good, liar, silent, unready";
    assert_eq!(error, format!("unknown rival 'moka' (known: {names})"));
}

#[test]
fn a_subject_is_of_one_rival() {
    let checkout = checkout();
    add(checkout.path(), "thief", "\"thief\", \"more\"", None);
    let error = Rivals::find(Some(checkout.path())).unwrap_err().to_string();
    let root = checkout.path().join("rivals");
    let [good, thief] = ["good", "thief"].map(|name| root.join(name).join("rival.toml"));
    let (good, thief) = (good.display(), thief.display());
    assert_eq!(
        error,
        format!(
            "two rivals have the subject 'more', in {good} and {thief}; rename it in one of them"
        )
    );
}

#[test]
fn the_nearest_checkout_is_found_unless_one_is_named() {
    let [outer, other, empty] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    add(outer.path(), "good", "\"one\"", None);
    add(other.path(), "good", "\"one\"", None);
    let inner = outer.path().join("target/release");
    fs::create_dir_all(&inner).unwrap();
    let nowhere = Hints { working_directory: Some(empty.path().to_owned()), ..Hints::default() };
    assert!(matches!(find(None, &nowhere), Err(RivalError::NoCheckout)));
    let program = Hints { program: Some(inner.join("haypile")), ..nowhere.clone() };
    assert_eq!(find(None, &program).unwrap(), outer.path());
    let working = Hints { working_directory: Some(other.path().to_owned()), ..program };
    assert_eq!(find(None, &working).unwrap(), other.path());
    let variable = Hints { variable: Some(OsString::from(outer.path())), ..working.clone() };
    assert_eq!(find(None, &variable).unwrap(), outer.path());
    assert_eq!(find(Some(other.path()), &variable).unwrap(), other.path());
    // What is named is not replaced by what is near.
    let error = find(Some(empty.path()), &variable).unwrap_err().to_string();
    assert!(error.contains("named by --checkout, is not a checkout"), "{error}");
    let wrong = Hints { variable: Some(OsString::from(empty.path())), ..working };
    let error = find(None, &wrong).unwrap_err().to_string();
    assert!(error.contains("named by HAYPILE_CHECKOUT, is not a checkout"), "{error}");
}

/// Every folder that has a runner has a manifest, and each names a program that is there or that is
/// built.
#[test]
fn the_manifests_of_this_checkout_are_right() {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let rivals = Rivals::find(Some(&checkout)).unwrap();
    for rival in rivals.iter() {
        let program = &rival.manifest().program;
        let is_built = program.starts_with("target");
        assert!(is_built || is_file(&checkout.join(program)), "{}: {program:?}", rival.name());
    }
    for folder in fs::read_dir(checkout.join("rivals")).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        if is_file(&folder.path().join(&name)) {
            assert!(rivals.iter().any(|rival| rival.name() == name), "{name} has no rival.toml");
        }
    }
    let makefile = fs::read_to_string(checkout.join("Makefile")).unwrap();
    for rival in rivals.iter() {
        let make = &rival.manifest().make;
        let has = makefile.lines().any(|line| line.starts_with(&format!("{make}:")));
        assert!(has, "{}: there is no target {make}", rival.name());
    }
}

#[test]
fn how_to_get_it_is_a_command() {
    let checkout = checkout();
    let manifest = checkout.path().join("rivals/good/rival.toml");
    let get =
        || Rivals::find(Some(checkout.path())).unwrap().for_subject("one").unwrap().how_to_get();
    assert_eq!(get(), "haypile rivals install good");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("{text}debian = [\"g++\", \"libx-perl\"]\n")).unwrap();
    assert_eq!(get(), "apt-get install g++ libx-perl && haypile rivals install good");
}
