//! The contents of `rival.toml`.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::RivalError;

/// The largest manifest that is read.
const MAX_BYTES: u64 = 64 << 10;

/// Cargo's folder, in whose place `CARGO_TARGET_DIR` may name another.
const TARGET: &str = "target";

/// The manifest of a rival (another cache): its description, the program that runs it and its
/// installation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Manifest {
    /// A description of the rival cache, in one line.
    pub about: String,
    /// The programming language that the rival's cache is used from.
    pub language: String,
    /// The path of the program that runs the rival's cache, relative to the checkout's root.
    pub program: PathBuf,
    /// The names of the caches that the rival's program can run, without their options; at least
    /// one.
    pub subjects: Vec<String>,
    /// The names of the Debian packages that the rival cache needs.
    pub debian: Vec<String>,
    /// The project's `make` target that installs or builds the rival cache.
    pub make: String,
    /// Whether the rival's caches are HTTP caches, which only experiments with an HTTP origin
    /// measure.
    pub http: bool,
    /// Whether the rival's program knows `run-jobs`: it does several jobs in one process, which
    /// keeps what is slow to start, such as a browser.
    pub several_jobs: bool,
}

/// The same as it is written, with where that is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    about: Spanned<String>,
    language: Spanned<String>,
    program: Spanned<PathBuf>,
    subjects: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    debian: Vec<Spanned<String>>,
    make: Spanned<String>,
    #[serde(default)]
    http: bool,
    #[serde(default)]
    several_jobs: bool,
}

impl Manifest {
    /// Reads the manifest file of a rival (another cache).
    ///
    /// # Errors
    ///
    /// [`RivalError::Read`], [`RivalError::Manifest`].
    pub(super) fn read(path: &Path) -> Result<Self, RivalError> {
        let text =
            read(path).map_err(|source| RivalError::Read { path: path.to_path_buf(), source })?;
        Self::parse(&text).map_err(|(at, wrong)| {
            // What is missing at the end is missing in the last line that there is.
            let before = &text.as_bytes()[..at.min(text.trim_end().len())];
            let line = before.split(|byte| *byte == b'\n').count();
            RivalError::Manifest { path: path.to_path_buf(), line, wrong }
        })
    }

    /// Parses a text; an error says at which byte.
    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let written: Written = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            (at, error.message().to_owned())
        })?;
        if written.subjects.get_ref().is_empty() {
            return Err((written.subjects.span().start, "there are no subjects".to_owned()));
        }
        let about = checked(written.about, is_line, "is not a line of text")?;
        let language = checked(written.language, is_name, NO_NAME)?;
        let program = checked(
            written.program,
            is_inside,
            "is not a path from the checkout's root to a file inside of it",
        )?;
        let subjects = written.subjects.into_inner();
        Ok(Self {
            about,
            language,
            program,
            subjects: subject_names(subjects)?,
            debian: names(written.debian)?,
            make: checked(written.make, is_name, NO_NAME)?,
            http: written.http,
            several_jobs: written.several_jobs,
        })
    }

    /// Returns the path of the rival's program in a checkout, with Cargo's output folder `target`
    /// if that is given.
    pub(super) fn program_in(&self, checkout: &Path, target: Option<&Path>) -> PathBuf {
        match (target, self.program.strip_prefix(TARGET)) {
            (Some(target), Ok(inside)) => checkout.join(target).join(inside),
            _ => checkout.join(&self.program),
        }
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("a manifest has at most {MAX_BYTES} bytes")));
    }
    Ok(text)
}

const NO_NAME: &str = "is not a name: letters, digits and any of -_.+/ after the first";

/// They become words of command lines and names of results.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+/".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_plain)
}

fn is_line(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(char::is_control)
}

fn is_inside(path: &Path) -> bool {
    let is_normal = |part| matches!(part, Component::Normal(_));
    path.components().next().is_some() && path.components().all(is_normal)
}

/// A plus parts the levels of a cache.
fn subject_names(texts: Vec<Spanned<String>>) -> Result<Vec<String>, (usize, String)> {
    let is_right = |text: &str| is_name(text) && !text.contains('+');
    texts.into_iter().map(|text| checked(text, is_right, NO_NAME)).collect()
}

fn names(texts: Vec<Spanned<String>>) -> Result<Vec<String>, (usize, String)> {
    texts.into_iter().map(|text| checked(text, is_name, NO_NAME)).collect()
}

/// A value that is right, or where it is and what is wrong with it.
fn checked<T: Deref + Debug>(
    value: Spanned<T>,
    is_right: impl Fn(&T::Target) -> bool,
    wrong: &str,
) -> Result<T, (usize, String)> {
    let at = value.span().start;
    let value = value.into_inner();
    if is_right(&value) { Ok(value) } else { Err((at, format!("{value:?} {wrong}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = "about = \"A cache\"\nlanguage = \"perl\"\nprogram = \"rivals/x/x\"\n\
                         subjects = [\"x\"]\nmake = \"rivals-foreign\"\n";

    fn line_and_wrong(text: &str) -> (usize, String) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rival.toml");
        std::fs::write(&path, text).unwrap();
        match Manifest::read(&path) {
            Err(RivalError::Manifest { line, wrong, path: named }) => {
                assert_eq!(named, path);
                (line, wrong)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_manifest_is_read() {
        let manifest = Manifest::parse(RIGHT).unwrap();
        let text = str::to_owned;
        let expected = Manifest {
            about: text("A cache"),
            language: text("perl"),
            program: PathBuf::from("rivals/x/x"),
            subjects: vec![text("x")],
            debian: vec![],
            make: text("rivals-foreign"),
            http: false,
            several_jobs: false,
        };
        assert_eq!(manifest, expected);
        assert!(Manifest::parse(&format!("{RIGHT}http = true\n")).unwrap().http);
        let several = Manifest::parse(&format!("{RIGHT}several_jobs = true\n")).unwrap();
        assert!(several.several_jobs && !several.http);
        let more = format!("{RIGHT}debian = [\"g++\", \"libx-perl\"]\n");
        assert_eq!(Manifest::parse(&more).unwrap().debian, ["g++", "libx-perl"]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (old, new, line, said) in [
            ("about", "abut", 1, "unknown field `abut`"),
            ("make = \"rivals-foreign\"", "", 1, "missing field `make`"),
            ("[\"x\"]", "[]", 4, "there are no subjects"),
            ("[\"x\"]", "\"x\"", 4, "invalid type: string \"x\", expected a sequence"),
            ("[\"x\"]", "[\"y\",\n\n\"a:b\"]", 6, "\"a:b\" is not a name"),
            ("[\"x\"]", "[\"x\"", 5, ""),
            ("rivals-foreign", "-f/x", 5, "\"-f/x\" is not a name"),
            ("rivals-foreign", "A=b", 5, "is not a name"),
            ("rivals/x/x", "/bin/sh", 3, "is not a path from the checkout's root"),
            ("rivals/x/x", "../x", 3, "is not a path from the checkout's root"),
            ("rivals/x/x", "", 3, "is not a path from the checkout's root"),
            ("A cache", "A\\ncache", 1, "is not a line of text"),
            ("A cache", " ", 1, "is not a line of text"),
        ] {
            let text = RIGHT.replace(old, new);
            assert_ne!(text, RIGHT);
            let (found, wrong) = line_and_wrong(&text);
            assert!(wrong.contains(said), "{wrong}");
            assert_eq!(found, line, "{text}: {wrong}");
        }
    }

    #[test]
    fn a_file_that_is_no_text_or_enormous_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rival.toml");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(matches!(Manifest::read(&path), Err(RivalError::Read { .. })));
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let error = Manifest::read(&path).unwrap_err().to_string();
        assert!(error.ends_with("a manifest has at most 65536 bytes"), "{error}");
    }

    #[test]
    fn what_cargo_builds_is_where_cargo_was_told_to() {
        let rust = RIGHT.replace("rivals/x/x", "target/release/x");
        let [plain, built] = [RIGHT, &rust].map(|text| Manifest::parse(text).unwrap());
        let root = Path::new("/root");
        for (target, expected) in [(None, "/root/target/release/x"), (Some("/t"), "/t/release/x")] {
            let target = target.map(Path::new);
            assert_eq!(built.program_in(root, target), Path::new(expected));
            assert_eq!(plain.program_in(root, target), Path::new("/root/rivals/x/x"));
        }
        let relative = built.program_in(root, Some(Path::new("t")));
        assert_eq!(relative, Path::new("/root/t/release/x"));
    }
}
