//! Subjects to measure, and the programs that run them.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use haypile_lab::measure::{Contender, Listed, Runner};
use haypile_lab::subject::{SubjectSpec, Subjects};

use super::installed::Installed;
use crate::args::lab::Measuring;
use crate::command::lab::OWN_LABEL;

/// Longest time that a program may take to list its subjects.
pub(crate) const LIST_LIMIT: Duration = Duration::from_secs(20);

/// Program of a rival, with its subjects.
pub(crate) struct Rival {
    pub(crate) runner: Arc<Runner>,
    pub(crate) subjects: Vec<Listed>,
}

impl Rival {
    /// Whether the program lists the subject.
    pub(crate) fn has(&self, subject: &SubjectSpec) -> bool {
        self.subjects.iter().any(|listed| listed.name == subject.name())
    }
}

/// Asks rivals for their subjects.
pub(crate) fn rivals(programs: &[std::path::PathBuf]) -> anyhow::Result<Vec<Rival>> {
    let ask = |program: &std::path::PathBuf| {
        let runner = Arc::new(Runner::rival(program));
        let subjects = runner.subjects(LIST_LIMIT)?;
        Ok(Rival { runner, subjects })
    };
    programs.iter().map(ask).collect()
}

/// Returns every subject with each of its programs. Errors that would be in every row end the
/// command here.
pub(crate) fn all(
    arguments: &Measuring,
    subjects: &[SubjectSpec],
) -> anyhow::Result<Vec<Contender>> {
    let own = env::current_exe().context("cannot find this program's own file")?;
    let own = Arc::new(Runner::haypile(own, OWN_LABEL));
    let against = arguments.against.as_ref();
    let against = against.map(|build| Arc::new(Runner::haypile(&build.program, &build.label)));
    let rivals = rivals(&arguments.rivals)?;
    let mut installed = Installed::default();
    let mut contenders: Vec<Contender> = Vec::new();
    for subject in subjects {
        Subjects::ours().check(subject)?;
        let runners = if Subjects::ours().has(subject) {
            against.iter().chain([&own]).cloned().collect()
        } else {
            vec![rival(subject, &rivals, &mut installed)?]
        };
        for runner in runners {
            let is_there = |other: &Contender| other.subject == *subject && other.runner == runner;
            if !contenders.iter().any(is_there) {
                let subject = subject.clone();
                contenders.push(Contender { subject, runner });
            }
        }
    }
    Ok(contenders)
}

/// Returns the program that has the subject.
fn rival(
    subject: &SubjectSpec,
    rivals: &[Rival],
    installed: &mut Installed,
) -> anyhow::Result<Arc<Runner>> {
    if let Some(rival) = rivals.iter().find(|rival| rival.has(subject)) {
        return Ok(Arc::clone(&rival.runner));
    }
    if installed.names(subject) {
        let name = subject.name();
        return installed
            .runner(subject)
            .map_err(|why| anyhow!("'{name}' does not run here: {why}"));
    }
    let mut allowed = Subjects::ours().names();
    for listed in rivals.iter().flat_map(|rival| &rival.subjects) {
        allowed = format!("{allowed}, {}", listed.usage);
    }
    for name in installed.subjects() {
        allowed = format!("{allowed}, {name}");
    }
    let more = if rivals.is_empty() { "; --rivals PROGRAM adds those of a runner" } else { "" };
    bail!("unknown subject '{}' (known: {allowed}){more}", subject.name())
}
