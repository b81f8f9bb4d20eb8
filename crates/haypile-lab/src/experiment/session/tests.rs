use std::path::Path;

use clap::{Args, Command, FromArgMatches};
use haypile_measure::measure::Watcher;
use haypile_measure::result::{Parameters, SubjectId, read};
use haypile_sim::Trace;
use haypile_sim::trace::format::Format;
use parking_lot::Mutex;

use super::*;

/// Keeps everything that it is given.
#[derive(Default)]
struct Recorder {
    printed: Mutex<Vec<String>>,
    json: Mutex<Option<Value>>,
}

impl Watcher for Recorder {
    fn advance(&self, _: u64) {}

    fn is_interrupted(&self) -> bool {
        false
    }
}

impl Host for Recorder {
    fn begin(&self, _: u64, _: String) -> anyhow::Result<()> {
        Ok(())
    }

    fn finish(&self) {}

    fn note(&self, _: &str) {}

    fn check_output(&self, path: &Path) -> anyhow::Result<()> {
        if path.is_dir() {
            bail!("{} is a directory", path.display());
        }
        Ok(())
    }

    fn print(&self, printout: &Printout) -> anyhow::Result<()> {
        self.printed.lock().push(format!("{printout:?}"));
        Ok(())
    }

    fn print_json(&self, value: &Value) -> anyhow::Result<()> {
        *self.json.lock() = Some(value.clone());
        Ok(())
    }

    fn trace(&self, _: &Path, _: Option<Format>) -> anyhow::Result<(String, Trace)> {
        bail!("there is no trace")
    }
}

fn options(words: &[&str]) -> RunOptions {
    let command = RunOptions::augment_args(Command::new("run").no_binary_name(true));
    RunOptions::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
}

fn sample(session: &Session<'_>) -> Sample {
    let [name, version, language, program] = ["a", "", "", ""].map(str::to_owned);
    let subject = SubjectId { name, version, language, program };
    Sample::blank(&session.run, "test", "case", Parameters::new(), subject)
}

fn printout(samples: &[Sample]) -> Printout {
    let mut printout = Printout::default();
    printout.text(format!("{} samples\n", samples.len()));
    printout
}

#[test]
fn a_sample_is_in_the_file_as_soon_as_it_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.jsonl");
    let (host, options) = (Recorder::default(), options(&["--out", path.to_str().unwrap()]));
    let mut session = Session::new("test", None, &options, &host).unwrap();
    assert!(!path.exists(), "what cannot be measured leaves no file");
    session.begin(Some(2)).unwrap();
    assert_eq!(read(&path).unwrap().runs.len(), 1);
    session.keep(sample(&session)).unwrap();
    assert_eq!(read(&path).unwrap().samples, session.samples());
    let error = session.end(Err(Interrupted.into()), no_fields, printout).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the experiment was interrupted; printed and kept 1 of 2 measurements"
    );
    assert!(host.printed.lock()[0].contains("1 samples"));
}

#[test]
fn an_error_does_not_keep_what_was_measured_from_being_printed() {
    let (host, options) = (Recorder::default(), options(&["--json"]));
    let mut session = Session::new("test", None, &options, &host).unwrap();
    session.begin(None).unwrap();
    session.keep(Sample { error: Some("wrong".to_owned()), ..sample(&session) }).unwrap();
    let fields = |_: &[Sample]| [("more".to_owned(), json!(7))].into_iter().collect();
    let error = session.end(Err(anyhow::anyhow!("the disk is gone")), fields, printout);
    assert_eq!(error.unwrap_err().to_string(), "the disk is gone");
    let json = host.json.lock().take().unwrap();
    assert_eq!((&json["complete"], &json["more"]), (&json!(false), &json!(7)));
    assert_eq!(json["samples"][0]["error"], "wrong");
    assert!(host.printed.lock().is_empty());
}

#[test]
fn findings_are_printed_instead_of_rows() {
    let (host, options) = (Recorder::default(), options(&["--findings"]));
    let mut session = Session::new("test", None, &options, &host).unwrap();
    session.begin(None).unwrap();
    session.keep(Sample { hits: 3, misses: 1, ..sample(&session) }).unwrap();
    session.end(Ok(()), no_fields, printout).unwrap();
    let json = host.json.lock().take().unwrap();
    let of_hits = |it: &&Value| it["figure"] == "hit-ratio";
    let found = json["findings"].as_array().unwrap().iter().find(of_hits).unwrap();
    assert_eq!((&found["value"], &json["complete"]), (&json!(0.75), &json!(true)));
    assert!(host.printed.lock().is_empty());
}

#[test]
fn the_end_says_whether_results_are_errors_or_incomplete() {
    let (host, options) = (Recorder::default(), options(&[]));
    let ended = |error: Option<&str>, measured| {
        let mut session = Session::new("test", None, &options, &host).unwrap();
        session.begin(None).unwrap();
        let error = error.map(str::to_owned);
        session.keep(Sample { error, ..sample(&session) }).unwrap();
        session.end(measured, no_fields, printout).map_err(|error| error.to_string())
    };
    assert_eq!(ended(None, Ok(())), Ok(Ended::Well));
    assert_eq!(ended(Some("wrong"), Ok(())), Ok(Ended::WithErrors));
    let stopped = ended(None, Err(Interrupted.into()));
    assert_eq!(stopped, Err("the experiment was interrupted; printed 1 measurements".to_owned()));
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(&["--out", directory.path().to_str().unwrap()]);
    assert!(Session::new("test", None, &options, &Recorder::default()).is_err());
}
