//! Grouping of the files of one recording.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use haypile_policy::recording::MAGIC;

/// Groups the files that the processes of one recording wrote: `PATH.PID`, or `PATH.PID.2` and so
/// on. Every other path is a group of its own. Groups are in the order of their first files.
///
/// Files are told by their names and their first bytes, so that a compressed recording is alone.
pub fn group(paths: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    let mut groups: Vec<(Option<PathBuf>, Vec<PathBuf>)> = Vec::new();
    for path in paths {
        let recording = stem(path).filter(|_| is_recording(path));
        let same = groups.iter_mut().find(|(other, _)| recording.is_some() && *other == recording);
        match same {
            Some((_, group)) => group.push(path.clone()),
            None => groups.push((recording, vec![path.clone()])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The path without the numbers of the process and of its file.
fn stem(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let numbered = |name: &str| {
        let (stem, number) = name.rsplit_once('.')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| stem.to_owned())
    };
    let stem = numbered(name)?;
    Some(path.with_file_name(numbered(&stem).unwrap_or(stem)))
}

fn is_recording(path: &Path) -> bool {
    // Opening a pipe would wait for its writer, and reading would take from it.
    if !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return false;
    }
    let mut head = [0; MAGIC.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == MAGIC
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_recording_are_together() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let names = ["a.rec.12", "b.rec.12", "a.rec.7", "a.rec.12.2", "a.rec", "a.rec.x", "c.1"];
        for name in names {
            std::fs::write(path(name), MAGIC).unwrap();
        }
        std::fs::write(path("a.rec.99"), "something else").unwrap();
        let paths = names.iter().chain(&["a.rec.99", "a.rec.1"]).map(|name| path(name));
        let groups = group(&paths.collect::<Vec<_>>());
        let expected = [
            vec!["a.rec.12", "a.rec.7", "a.rec.12.2"],
            vec!["b.rec.12"],
            vec!["a.rec"],
            vec!["a.rec.x"],
            vec!["c.1"],
            vec!["a.rec.99"],
            vec!["a.rec.1"],
        ];
        let expected = expected.map(|names| names.into_iter().map(path).collect::<Vec<_>>());
        assert_eq!(groups, expected, "a.rec.1 is not there");
    }
}
