//! Who is measured, and which program runs them.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use haypile_lab::measure::{Contender, Listed, Runner};
use haypile_lab::subject::{SubjectSpec, Subjects};

use super::installed::Installed;
use crate::args::lab::Measuring;
use crate::command::lab::OWN_LABEL;

/// How long a program may take to list its subjects.
pub(crate) const LIST_LIMIT: Duration = Duration::from_secs(20);

/// A rival's program, and what it runs.
pub(crate) struct Rival {
    pub(crate) runner: Arc<Runner>,
    pub(crate) subjects: Vec<Listed>,
}

impl Rival {
    /// Whether it lists the subject.
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

/// Every subject with each of its programs. What is found wrong here would be an error in every
/// row.
pub(crate) fn all(
    arguments: &Measuring,
    subjects: &[SubjectSpec],
) -> anyhow::Result<Vec<Contender>> {
    let own = env::current_exe().context("this program cannot find itself")?;
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

/// The program that has the subject.
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
    bail!("there is no subject '{}'; there are {allowed}{more}", subject.name())
}
