//! Which of the subjects that an experiment file names can be measured here.

use anyhow::bail;
use haypile_lab::rival::{Rivals, State};
use haypile_lab::subject::{SubjectSpec, Subjects};

use crate::command::lab::measuring::contenders::LIST_LIMIT;

/// Those that can be; the others are left out, with a line that says why and how to get them.
pub(super) fn only(names: Vec<String>, only_embedded: bool) -> anyhow::Result<Vec<String>> {
    let mut rivals = None;
    let mut kept = Vec::new();
    for name in names {
        // A wrong name is kept: what is wrong with it is said where it is used.
        let why_not = match name.parse::<SubjectSpec>() {
            Err(_) => None,
            Ok(subject) if Subjects::ours().has(&subject) => Subjects::ours().missing(&subject),
            Ok(_) if only_embedded => continue,
            Ok(subject) => {
                let rivals = rivals.get_or_insert_with(|| Rivals::find(None));
                why_not(&subject, rivals)
            }
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

/// Why a rival cannot be measured, and how to get it.
fn why_not(
    subject: &SubjectSpec,
    rivals: &Result<Rivals, haypile_lab::rival::RivalError>,
) -> Option<String> {
    let rivals = match rivals {
        Ok(rivals) => rivals,
        Err(error) => return Some(error.to_string()),
    };
    let Some(rival) = rivals.for_subject(subject.name()) else {
        return Some("no rival has that name".to_owned());
    };
    match rival.state(LIST_LIMIT) {
        State::Runs(_) => None,
        state => {
            let why = state.why_not().unwrap_or("it does not run");
            Some(format!("{why}; run: {}", rival.how_to_get()))
        }
    }
}
