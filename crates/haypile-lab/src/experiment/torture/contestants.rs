//! Caches to torture, and the programs that run them.

use std::sync::Arc;

use anyhow::bail;
use haypile_measure::measure::Runner;
use haypile_measure::subject::SubjectSpec;
use haypile_measure::torture::{Contestant, TortureCase, role};

use super::TortureOptions;
use crate::experiment::on_caches::listings;

/// Returns every cache that the experiment `torture` tests, with the program that runs it.
pub(super) fn contestants(options: &TortureOptions) -> anyhow::Result<Vec<Contestant>> {
    let own = Arc::new(Runner::own()?);
    let rivals = listings(&options.rivals)?;
    let default = ["file".parse::<SubjectSpec>().expect("a valid name")];
    let subjects = if options.subjects.is_empty() { &default[..] } else { &options.subjects[..] };
    let contestant = |subject: &SubjectSpec| {
        let has_case = options.case.is_empty() || options.case.contains(&TortureCase::Invalidate);
        if role::SERVERS.contains(&subject.name()) && !has_case {
            bail!(
                "the cache {} is a server, which the death of a client does not test; only the \
                 case invalidate tests it: add --case invalidate",
                subject.name()
            );
        }
        if role::OURS.contains(&subject.name()) {
            let version = env!("CARGO_PKG_VERSION").to_owned();
            let runner = Arc::clone(&own);
            let language = "rust".to_owned();
            return Ok(Contestant { subject: subject.clone(), runner, version, language });
        }
        for rival in &rivals {
            if let Some(listed) = rival.find(subject) {
                return Ok(Contestant {
                    subject: subject.clone(),
                    runner: Arc::clone(&rival.runner),
                    version: listed.version.clone(),
                    language: listed.language.clone(),
                });
            }
        }
        bail!(
            "unknown subject '{}' (known: file, memcached, redis); --rivals PROGRAM adds those \
             of a runner",
            subject.name()
        )
    };
    subjects.iter().map(contestant).collect()
}
