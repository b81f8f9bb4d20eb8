//! The ranking of the subjects of a run.

use haypile_measure::figure::{CPU, CaseNotes, Estimate, HIT_RATIO, MEMORY, SERVER, WALL};
use haypile_measure::result::{Identity, Parameters, Sample, Samples, SubjectId};
use haypile_measure::statistics::Effect;

/// The measured figures (times, hit ratio, memory) of all caches in one case of a run, such as
/// reads that hit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Ranking {
    /// The name of the measured case, such as `get-hit`.
    pub case: String,
    /// The parameters of the measured case, such as the number of keys.
    pub parameters: Parameters,
    /// The figures of the measured caches, in the order in which the user named them.
    pub subjects: Vec<Figures>,
}

/// The measured figures (times, hit ratio, memory) of one cache in one case.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Figures {
    /// The measured cache, with the program that ran it.
    pub subject: SubjectId,
    /// Processor time of the cache per operation ([`CPU`]); `None` if nothing was measured.
    pub cpu: Option<Estimate>,
    /// Wall time of the cache per operation ([`WALL`]); `None` if nothing was measured.
    pub wall: Option<Estimate>,
    /// Processor time of the cache's server per operation ([`SERVER`]); `None` if the cache has no
    /// server.
    pub server: Option<Estimate>,
    /// Processor time per operation of the cache divided by that of the first cache, from the
    /// blocks that both have; without the servers' time.
    pub relative: Option<Effect>,
    /// Hit ratio of all reads of the cache ([`HIT_RATIO`]); `None` if nothing is read.
    pub hit_ratio: Option<Estimate>,
    /// Resident memory of the process with the cache ([`MEMORY`]); `None` if it was not measured.
    pub memory: Option<Estimate>,
    /// The number of this cache's samples that are errors.
    pub errors: u64,
    /// The text of the first error among this cache's samples.
    pub first_error: Option<String>,
    /// The processor time per operation in each block (round of the experiment), in the blocks'
    /// order.
    pub costs: Vec<f64>,
    /// Notes for people on facts about the cache's samples that medians do not show, such as a slow
    /// first sample.
    pub notes: Vec<String>,
}

/// Groups the samples of one run by case and cache. Cases are in the order of `samples`, caches in
/// that of `subjects`: the names of caches and of the programs that ran them.
pub fn rankings(samples: &[Sample], subjects: &[(String, String)]) -> Vec<Ranking> {
    let ranking = |case: &Samples<'_>| {
        let notes = CaseNotes::of(case);
        let mut figures = Vec::new();
        let mut first: Option<Samples<'_>> = None;
        for (name, program) in subjects {
            let own = case.of_subject(Identity { name, program });
            figures.extend(self::figures(&notes, &own, first.as_ref()));
            first.get_or_insert(own);
        }
        Ranking {
            case: case[0].case.clone(),
            parameters: case[0].parameters.clone(),
            subjects: figures,
        }
    };
    samples.iter().collect::<Samples<'_>>().cases().iter().map(ranking).collect()
}

fn figures(
    notes: &CaseNotes<'_>,
    samples: &Samples<'_>,
    first: Option<&Samples<'_>>,
) -> Option<Figures> {
    // The last one that succeeded knows the version.
    let known = samples.iter().rev().find(|sample| sample.error.is_none());
    let subject = known.or(samples.last())?.subject.clone();
    let mut errors = samples.iter().filter_map(|sample| sample.error.clone());
    let first_error = errors.next();
    let relative = first
        .and_then(|first| Effect::paired(&CPU.values(first).paired(&CPU.values(samples))).ok());
    Some(Figures {
        subject,
        cpu: CPU.of(samples),
        wall: WALL.of(samples),
        server: SERVER.of(samples),
        relative,
        hit_ratio: HIT_RATIO.of(samples),
        memory: MEMORY.of(samples),
        errors: u64::from(first_error.is_some()) + errors.count() as u64,
        first_error,
        costs: CPU.values(samples).to_vec(),
        notes: notes.on(samples),
    })
}
