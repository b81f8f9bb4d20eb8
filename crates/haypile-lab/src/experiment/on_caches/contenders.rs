//! Subjects to measure, and the programs that run them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{anyhow, bail};
use haypile_measure::measure::{Contender, Listed, Runner};
use haypile_measure::subject::SubjectSpec;

use super::installed::Installed;
use super::{Filled, Measuring, SubjectList};
use crate::experiment::{ExperimentFile, Host};

/// The longest time that a runner (a program that measures caches) may take to list its caches.
pub const LIST_LIMIT: Duration = Duration::from_secs(20);

/// A runner (a program that measures caches), with the list of the caches that it can measure.
#[derive(Debug)]
pub struct Listing {
    /// The program that measures the listed caches.
    pub runner: Arc<Runner>,
    /// The caches that the runner lists as measurable, called subjects.
    pub subjects: Vec<Listed>,
}

impl Listing {
    /// Returns the entry for this cache in the list of caches that the runner can measure; `None`
    /// if it is not in the list.
    pub fn find(&self, subject: &SubjectSpec) -> Option<&Listed> {
        self.subjects.iter().find(|listed| listed.name == subject.name())
    }
}

/// Asks runners (programs that measure caches) for the lists of their caches.
///
/// # Errors
///
/// A program that is not a runner, or that takes longer than [`LIST_LIMIT`].
pub fn listings(programs: &[PathBuf]) -> anyhow::Result<Vec<Listing>> {
    let ask = |program: &PathBuf| {
        let runner = Arc::new(Runner::rival(program));
        let subjects = runner.subjects(LIST_LIMIT)?;
        Ok(Listing { runner, subjects })
    };
    programs.iter().map(ask).collect()
}

/// Returns the caches to measure: those that the user named, or else those of the experiment file
/// that can be measured here. A file without subjects uses those of the experiment's own file.
pub(super) fn subjects(
    experiment: &str,
    measuring: &Measuring,
    filled: &Filled,
    host: &dyn Host,
) -> anyhow::Result<Vec<SubjectSpec>> {
    let named: Vec<SubjectSpec> = match &measuring.subject[..] {
        [] => own_subjects(experiment)?,
        lists => lists.iter().flat_map(|list| list.0.clone()).collect(),
    };
    if filled.is_written("subject") {
        return Ok(named);
    }
    available(named, measuring, host)
}

/// Returns the subjects of an experiment's own file.
fn own_subjects(experiment: &str) -> anyhow::Result<Vec<SubjectSpec>> {
    let file = ExperimentFile::built_in(experiment);
    let subject = file.and_then(|file| file.options.get("subject"));
    let names = subject.map(|names| names.texts().join(",")).unwrap_or_default();
    Ok(names.parse::<SubjectList>()?.0)
}

/// Returns the subjects that can be measured. For each of the others, notes why it is skipped and
/// how to install it.
fn available(
    subjects: Vec<SubjectSpec>,
    measuring: &Measuring,
    host: &dyn Host,
) -> anyhow::Result<Vec<SubjectSpec>> {
    let given = listings(&measuring.rivals)?;
    let mut installed = Installed::default();
    let mut kept = Vec::new();
    for subject in subjects {
        let is_ours = crate::subjects().has(&subject);
        if measuring.embedded && !is_ours {
            continue;
        }
        let is_given = !is_ours && given.iter().any(|rival| rival.find(&subject).is_some());
        let why_not = if is_given { None } else { installed.why_not(&subject) };
        match why_not {
            None => kept.push(subject),
            Some(why_not) => {
                host.note(&format!("the cache '{subject}' is not measured: {why_not}"));
            }
        }
    }
    if kept.is_empty() {
        bail!(
            "none of the caches of the experiment can be measured here; name others with \
             --subjects"
        );
    }
    Ok(kept)
}

/// Returns every cache to measure, paired with each program that measures it. Errors that every row
/// would have end the command here.
pub(super) fn contenders(
    measuring: &Measuring,
    subjects: &[SubjectSpec],
) -> anyhow::Result<Vec<Contender>> {
    let own = Arc::new(Runner::own()?);
    let against = measuring.against.as_ref();
    let against = against.map(|build| Arc::new(Runner::haypile(&build.program, &build.label)));
    let rivals = listings(&measuring.rivals)?;
    let mut installed = Installed::default();
    if !measuring.necko_pref.is_empty() && !subjects.iter().any(|it| it.name() == NECKO) {
        bail!("--necko-pref is for the caches of Firefox; add one, as in --subject necko:disk");
    }
    let mut contenders: Vec<Contender> = Vec::new();
    for subject in subjects {
        crate::subjects().check(subject)?;
        let runners: Vec<_> = if crate::subjects().has(subject) {
            against.iter().chain([&own]).cloned().collect()
        } else {
            let rival = rival(subject, &rivals, &mut installed)?;
            let preferences = measuring.necko_pref.iter().filter(|_| subject.name() == NECKO);
            let others: Vec<_> = preferences.map(|it| with_preference(&rival, it)).collect();
            std::iter::once(rival).chain(others).collect()
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

/// The rival whose settings are preferences of a browser.
const NECKO: &str = "necko";

/// Returns a runner of a browser with one more preference, whose results are those of another program.
fn with_preference(runner: &Runner, preference: &str) -> Arc<Runner> {
    let mut arguments = runner.arguments.clone();
    arguments.extend(["--pref".into(), preference.into()]);
    Arc::new(Runner { arguments, label: preference.to_owned(), ..runner.clone() })
}

/// Returns the program that has the subject.
fn rival(
    subject: &SubjectSpec,
    rivals: &[Listing],
    installed: &mut Installed,
) -> anyhow::Result<Arc<Runner>> {
    if let Some(rival) = rivals.iter().find(|rival| rival.find(subject).is_some()) {
        return Ok(Arc::clone(&rival.runner));
    }
    if installed.names(subject) {
        let name = subject.name();
        return installed
            .runner(subject)
            .map_err(|why| anyhow!("the cache '{name}' cannot be measured here: {why}"));
    }
    let mut allowed = crate::subjects().names();
    for listed in rivals.iter().flat_map(|rival| &rival.subjects) {
        allowed = format!("{allowed}, {}", listed.usage);
    }
    for name in installed.subjects() {
        allowed = format!("{allowed}, {name}");
    }
    let more = if rivals.is_empty() { "; --rivals PROGRAM adds those of a runner" } else { "" };
    bail!("unknown subject '{}' (known: {allowed}){more}", subject.name())
}
