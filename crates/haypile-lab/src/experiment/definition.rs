//! Experiment files: the question of an experiment, and its options.
//!
//! ```toml
//! experiment = "ratio"                  # haypile lab ratio
//! question = "How many operations per second does each cache do?"
//! source = "The Perl cache benchmark, 2010"
//! method = "One set, then the gets of other keys."
//!
//! [options]                             # of that command, by their long names
//! subject = ["memory", "file"]
//!
//! [quick]                               # these instead, with --quick
//! blocks = 2
//! ```
//!
//! Each experiment has such a file in its folder: what it asks and does by itself.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use haypile_measure::result::Asked;
use serde::Deserialize;

use super::Known;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The longest question, source and method, in bytes. They are kept in rows of results, which have
/// a limit of their own.
const MAX_TEXT_BYTES: usize = 8 << 10;

/// The options of an experiment file, with their values, by name.
pub type Settings = BTreeMap<String, Setting>;

/// The value of an option in an experiment file: a text, a number, a truth value or a list.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Setting {
    /// Whether an option that takes no value is given.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// A number with a fraction.
    Decimal(f64),
    /// A text.
    Text(String),
    /// Several values.
    List(Vec<Setting>),
}

impl Setting {
    /// Returns the option's value as a user would write it on the command line; of a list, one text
    /// for each value.
    pub fn texts(&self) -> Vec<String> {
        match self {
            Self::Flag(is_given) => vec![is_given.to_string()],
            Self::Whole(number) => vec![number.to_string()],
            Self::Decimal(number) => vec![number.to_string()],
            Self::Text(text) => vec![text.clone()],
            Self::List(settings) => settings.iter().flat_map(Self::texts).collect(),
        }
    }
}

/// The contents of an experiment file: the question, source, method and options of an experiment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ExperimentFile {
    /// The name of the experiment's command under `haypile lab`.
    pub experiment: String,
    /// The question that the experiment is to answer, in a sentence.
    pub question: String,
    /// The source of the experiment's question, such as a publication.
    pub source: String,
    /// The method of the experiment, in a sentence or two.
    pub method: String,
    /// Options of the experiment's command, by their long names; a positional argument goes by the
    /// name that the help has for it, in the plural and in lower case.
    #[serde(default)]
    pub options: Settings,
    /// Options that a quick run adds to those of `options`, or sets to other values.
    #[serde(default)]
    pub quick: Settings,
}

/// The error of an experiment file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentFileError {
    /// The file cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The file is too large to be an experiment file.
    #[error("{path} has {bytes} bytes; an experiment file may have at most {MAX_BYTES}", path = path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The size of the file.
        bytes: u64,
    },
    /// The contents of the file are wrong.
    #[error("{path}: {wrong}", path = path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The reason, and its place.
        wrong: String,
    },
}

impl ExperimentFile {
    /// Reads an experiment file (TOML with a question and options of an experiment) from this path.
    ///
    /// # Errors
    ///
    /// [`ExperimentFileError`].
    pub fn read(path: &Path) -> Result<Self, ExperimentFileError> {
        let io = |source| ExperimentFileError::Io { path: path.into(), source };
        let bytes = fs::metadata(path).map_err(io)?.len();
        if bytes > MAX_BYTES {
            return Err(ExperimentFileError::TooLarge { path: path.into(), bytes });
        }
        let text = fs::read_to_string(path).map_err(io)?;
        Self::parse(&text).map_err(|wrong| ExperimentFileError::Wrong { path: path.into(), wrong })
    }

    /// Returns the experiment file that the program contains for an experiment.
    pub fn built_in(experiment: &str) -> Option<&'static Self> {
        static FILES: LazyLock<BTreeMap<&str, ExperimentFile>> = LazyLock::new(|| {
            let parse = |known: Known| {
                let file = ExperimentFile::parse(known.file());
                (known.name(), file.expect("tests read the files of all experiments"))
            };
            Known::all().map(parse).collect()
        });
        FILES.get(experiment)
    }

    /// Returns the question, the source and the method of this experiment file, for the first row
    /// of results; `path` is where it was read.
    pub fn asked(&self, path: &Path) -> Asked {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Asked {
            file: name.to_string_lossy().into_owned(),
            question: self.question.clone(),
            source: self.source.clone(),
            method: self.method.clone(),
        }
    }

    /// Returns the experiment's options with their values, for a quick run or a full one.
    pub fn options(&self, is_quick: bool) -> Settings {
        let mut options = self.options.clone();
        if is_quick {
            options.extend(self.quick.clone());
        }
        options
    }

    /// Parses the text of an experiment file, which is TOML.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let file: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let texts = [
            ("experiment", &file.experiment),
            ("question", &file.question),
            ("source", &file.source),
            ("method", &file.method),
        ];
        if texts.iter().any(|(_, text)| text.trim().is_empty()) {
            return Err("experiment, question, source and method have to say something".to_owned());
        }
        if let Some((name, text)) = texts.iter().find(|(_, text)| text.len() > MAX_TEXT_BYTES) {
            let bytes = text.len();
            return Err(format!("{name} has {bytes} bytes, and at most {MAX_TEXT_BYTES} are kept"));
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_has_a_file_that_says_what_it_asks() {
        for known in Known::all() {
            let file = ExperimentFile::parse(known.file()).unwrap();
            assert_eq!(file.experiment, known.name());
            assert!(file.question.ends_with('?'), "{}", file.question);
            assert_eq!(ExperimentFile::built_in(known.name()), Some(&file));
        }
        assert_eq!(ExperimentFile::built_in("nothing"), None);
    }

    #[test]
    fn quick_options_come_into_the_place_of_others() {
        let file = ExperimentFile::parse(
            "experiment = 'ratio'\nquestion = 'q?'\nsource = 's'\nmethod = 'm'\n\
             [options]\nblocks = 5\nseed = 7\n[quick]\nblocks = 2\n",
        )
        .unwrap();
        assert_eq!(file.options(false)["blocks"], Setting::Whole(5));
        assert_eq!(file.options(true)["blocks"], Setting::Whole(2));
        assert_eq!(file.options(true)["seed"], Setting::Whole(7));
    }

    #[test]
    fn settings_are_texts_as_a_user_writes_them() {
        let settings: Settings =
            toml::from_str("a = [1, 2.5, 'x']\nb = true\nc = 'y'\nd = [['z']]").unwrap();
        let texts: Vec<_> = settings.values().map(Setting::texts).collect();
        assert_eq!(texts, [vec!["1", "2.5", "x"], vec!["true"], vec!["y"], vec!["z"]]);
        assert!(toml::from_str::<Settings>("a = 1979-05-27").is_err());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.toml");
        let base = "experiment = 'ratio'\nquestion = 'q?'\nsource = 's'\nmethod = 'm'\n";
        for (text, part) in [
            ("", "missing field"),
            (&format!("{base}colour = 1\n"), "unknown field `colour`"),
            (&format!("{base}[options]\nblocks = [\n"), "mine.toml"),
            (&base.replace("'q?'", "' '"), "have to say something"),
            (&base.replace("q?", &"q".repeat(8193)), "question has 8193 bytes, and at most 8192"),
        ] {
            fs::write(&path, text).unwrap();
            let error = ExperimentFile::read(&path).unwrap_err().to_string();
            assert!(error.contains("mine.toml") && error.contains(part), "{error}");
        }
        let missing = ExperimentFile::read(&directory.path().join("none")).unwrap_err();
        assert!(missing.to_string().contains("none"), "{missing}");
        fs::write(&path, vec![b'#'; (MAX_BYTES + 1).try_into().unwrap()]).unwrap();
        assert!(ExperimentFile::read(&path).unwrap_err().to_string().contains("at most"));
    }
}
