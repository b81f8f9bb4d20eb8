//! Selection of the subjects of an experiment file that can be measured here.

use std::path::PathBuf;

use anyhow::bail;
use haypile_lab::subject::{SubjectSpec, Subjects};

use crate::command::lab::measuring::contenders;
use crate::command::lab::measuring::installed::Installed;

/// Returns the subjects that can be measured, including those of the user's `programs`. For each of
/// the others, prints why it is skipped and how to install it.
pub(super) fn only(
    names: Vec<String>,
    only_embedded: bool,
    programs: &[PathBuf],
) -> anyhow::Result<Vec<String>> {
    let given = contenders::rivals(programs)?;
    let mut installed = Installed::default();
    let mut kept = Vec::new();
    for name in names {
        // A wrong name stays, because its user reports the error.
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
            "none of the caches of the experiment can be measured here; name others with --subjects"
        );
    }
    Ok(kept)
}
