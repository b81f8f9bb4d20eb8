//! Which of the subjects that an experiment file names can be measured here.

use std::path::PathBuf;

use anyhow::bail;
use haypile_lab::subject::{SubjectSpec, Subjects};

use crate::command::lab::measuring::contenders;
use crate::command::lab::measuring::installed::Installed;

/// Those that can be; the others are left out, with a line that says why and how to get them. What
/// the programs that the user names can run is there.
pub(super) fn only(
    names: Vec<String>,
    only_embedded: bool,
    programs: &[PathBuf],
) -> anyhow::Result<Vec<String>> {
    let given = contenders::rivals(programs)?;
    let mut installed = Installed::default();
    let mut kept = Vec::new();
    for name in names {
        // A wrong name is kept: what is wrong with it is said where it is used.
        let why_not = match name.parse::<SubjectSpec>() {
            Err(_) => None,
            Ok(subject) if Subjects::ours().has(&subject) => Subjects::ours().missing(&subject),
            Ok(_) if only_embedded => continue,
            Ok(subject) if given.iter().any(|rival| rival.has(&subject)) => None,
            Ok(subject) => installed.runner(&subject).err(),
        };
        match why_not {
            None => kept.push(name),
            Some(why_not) => eprintln!("skipped: {name}: {why_not}"),
        }
    }
    if kept.is_empty() {
        bail!(
            "nothing can be measured of what the experiment is about; name caches with --subjects"
        );
    }
    Ok(kept)
}
