use std::fs;

use super::super::on_caches::Measuring;
use super::super::{Known, replay};
use super::*;

fn filled(known: Known, words: &[&str]) -> anyhow::Result<Filled> {
    let command = known.command().no_binary_name(true);
    Filled::new(known.0, &command.try_get_matches_from(words)?)
}

fn replay(words: &[&str]) -> anyhow::Result<(replay::ReplayOptions, Measuring, Option<Asked>)> {
    let filled = filled(Known::named("replay").unwrap(), words)?;
    Ok((filled.get()?, filled.get()?, filled.asked))
}

fn file(directory: &tempfile::TempDir, options: &str) -> String {
    let path = directory.path().join("mine.toml");
    let head = "experiment = 'replay'\nquestion = 'q?'\nsource = 's'\nmethod = 'm'\n";
    fs::write(&path, format!("{head}{options}")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_experiment_takes_its_own_file_as_a_users() {
    let directory = tempfile::tempdir().unwrap();
    for known in Known::all() {
        let path = directory.path().join(format!("{}.toml", known.name()));
        fs::write(&path, known.file()).unwrap();
        let filled = filled(known, &["--experiment", path.to_str().unwrap()]).unwrap();
        assert_eq!(filled.asked.unwrap().question, known.definition().question);
    }
}

#[test]
fn every_experiments_own_file_fills_its_options() {
    for known in Known::all() {
        for words in [&[][..], &["--quick"]] {
            let filled = filled(known, words).unwrap();
            assert!(filled.asked.is_none());
            assert!(!filled.is_written("subject"));
        }
    }
}

#[test]
fn the_command_line_takes_precedence_over_the_file_and_that_over_the_defaults() {
    let directory = tempfile::tempdir().unwrap();
    let options = "[options]\ntraces = ['a.csv', 'b.csv']\ncapacity = [1, 2]\njson = true\n\
                   blocks = 7\nsubject = ['memory', 'file']\n[quick]\nblocks = 3\n";
    let path = file(&directory, options);
    let given = ["--experiment", &path, "--capacity=5"];
    let (replay, measuring, asked) = self::replay(&given).unwrap();
    let traces: Vec<_> = replay.traces.iter().map(|trace| trace.path.to_str().unwrap()).collect();
    assert_eq!((traces, replay.capacity), (vec!["a.csv", "b.csv"], vec![5.0]));
    // In neither: the default.
    assert_eq!(replay.value_size, haypile::ByteSize(4 << 10));
    assert_eq!((measuring.blocks, measuring.run.json, measuring.run.seed), (7, true, 1));
    assert_eq!(measuring.subject[0].0.len(), 2);
    let [file, question, source, method] = ["mine.toml", "q?", "s", "m"].map(str::to_owned);
    assert_eq!(asked, Some(Asked { file, question, source, method }));

    let (replay, measuring, _) =
        self::replay(&[&given[..], &["--quick", "zipf"]].concat()).unwrap();
    assert_eq!(replay.traces.len(), 1, "the user's list replaces the file's");
    assert_eq!(measuring.blocks, 3, "quick options replace the others");
    let (_, measuring, _) =
        self::replay(&[&given[..], &["--blocks", "5", "--subjects", "noop"]].concat()).unwrap();
    assert_eq!(measuring.blocks, 5, "a default that the user wrote counts as written");
    assert_eq!(measuring.subject[0].0[0].as_str(), "noop");
}

#[test]
fn errors_name_the_file_and_the_option() {
    let directory = tempfile::tempdir().unwrap();
    for (options, part) in [
        ("blocks = 0", "invalid value '0' for '--blocks <N>'"),
        ("timeout = 0", "write a time above 0"),
        ("colour = 1", "unknown option 'colour' of haypile lab replay (known: traces, capacity"),
        ("quick = true", "unknown option 'quick'"),
    ] {
        let path = file(&directory, &format!("[options]\n{options}\n"));
        let error = replay(&["--experiment", &path]).unwrap_err().to_string();
        assert!(error.contains("mine.toml: ") && error.contains(part), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let path = file(&directory, "");
    let other = filled(Known::named("micro").unwrap(), &["--experiment", &path]);
    let error = other.err().unwrap().to_string();
    assert!(error.contains("run: haypile lab replay --experiment"), "{error}");
}
