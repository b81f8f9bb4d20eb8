//! Disk caches whose process was killed: whether they are consistent, and how many entries are left.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use haypile_measure::measure::Places;
use haypile_measure::result::{Sample, SubjectId};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::experiment::on_pages::browser::HTTPS;
use crate::experiment::on_pages::measure::PageRun;
use crate::experiment::parameters;
use crate::experiment::session::{Session, attempt};
use haypile_pages::site::Page;
use haypile_pages::{LoadReport, LoaderError, LoaderProcess, SiteServer};

/// Name of the result rows about caches whose process was killed.
pub(super) const KILLED: &str = "killed";

/// A loader without a sign of life is late.
const SOON: Duration = Duration::from_mins(1);

/// The name of the count of distinct storable resources that were loaded before the kill, in the
/// result rows about killed caches. `ANSWERING` names those of them that the next process answered
/// from the cache when it was first asked for them.
pub(super) const STORABLE: &str = "entries_storable";
pub(super) const ANSWERING: &str = "entries_answering";
/// Files of entries that a browser found when it started.
const FOUND: &str = "entries_found";
/// The beginning of the names of the counts that describe a browser's work on its cache's index.
pub(super) const INDEX: &str = "index_";

/// Starts a loader in a directory, with a new cache or the one that is there; with a limit for its answers.
type Start<'a> = dyn Fn(&Path, bool, Duration) -> Result<LoaderProcess, LoaderError> + 'a;

/// A page loader with a cache on disk that is killed on purpose.
pub(super) struct Victim<'a> {
    pub(super) subject: SubjectId,
    /// The name of the storage medium of the cache, if it has one.
    pub(super) medium: Option<&'a str>,
    /// Whether the page loader reports the state in which it finds its disk cache after the kill of
    /// the previous loader.
    pub(super) reports_remains: bool,
    /// Whether the loader shakes hands by TLS for pages with https.
    pub(super) has_tls: bool,
    pub(super) start: &'a Start<'a>,
}

/// The state of the page loader when it is killed, such as idle or loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KilledWhen {
    /// The loader is not killed: it closes its cache. The others are compared with the cache that is left then.
    Never,
    /// The loader is killed at a random instant of a load.
    Loading,
    /// The loader is killed after the last load, when nothing is under way.
    Paused,
    /// The loader is killed after the last load, after it has written everything to disk.
    Flushed,
}

impl KilledWhen {
    pub(super) const ALL: [Self; 4] = [Self::Never, Self::Loading, Self::Paused, Self::Flushed];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Never => "closed, not killed",
            Self::Loading => "while it loads",
            Self::Paused => "after a pause",
            Self::Flushed => "after a flush",
        }
    }
}

impl PageRun<'_> {
    /// Kills the page loader in each state this many times, and lets another one load the same
    /// pages from the remaining cache.
    pub(super) fn kills(
        &self,
        server: &SiteServer,
        victim: &Victim<'_>,
        kills: u32,
        session: &mut Session<'_>,
    ) -> anyhow::Result<()> {
        let all = u64::from(kills) * KilledWhen::ALL.len() as u64;
        self.host.begin(all, format!("killing {}", victim.subject.name))?;
        let mut random = ChaCha8Rng::seed_from_u64(self.run.seed ^ 0x6b69_6c6c);
        for block in 0..u64::from(kills) {
            for when in KilledWhen::ALL {
                let mut parameters =
                    parameters([("site", self.site_name.into()), ("when", when.name().into())]);
                if victim.has_tls && self.site.has_https() {
                    parameters.insert(HTTPS.to_owned(), true.into());
                    parameters.insert("protocol".to_owned(), self.loader.protocol.name().into());
                }
                let experiment = &*self.run.experiment;
                let subject = victim.subject.clone();
                let blank = Sample::blank(&self.run, experiment, KILLED, parameters, subject);
                let killed = self.killed(server, victim, when, &mut random, blank.clone());
                let sample = attempt(killed)?;
                let sample = sample.unwrap_or_else(|text| Sample { error: Some(text), ..blank });
                session.keep(Sample { block, ..sample })?;
                self.host.advance(1);
            }
        }
        self.host.finish();
        Ok(())
    }

    /// Loads pages, kills the loader, and has another one load the pages that were loaded whole.
    fn killed(
        &self,
        server: &SiteServer,
        victim: &Victim<'_>,
        when: KilledWhen,
        random: &mut ChaCha8Rng,
        mut sample: Sample,
    ) -> Result<Sample, LoaderError> {
        let failed = |error: std::io::Error| LoaderError::Failed(error.to_string());
        let places = Places::new(self.directory(victim.medium)).map_err(failed)?;
        let place = places.next().map_err(failed)?;
        let is_interrupted = || self.host.is_interrupted();
        let pages = self.site.pages.len();
        let mut loader = (victim.start)(&place, false, Duration::ZERO)?;
        // All but the last page are loaded whole.
        let whole = pages.saturating_sub(1).max(1);
        let mut longest_ns = 0;
        for page in 0..whole {
            let (report, _) = loader.load(page, server, &is_interrupted)?;
            longest_ns = longest_ns.max(report.wall_ns);
        }
        match when {
            KilledWhen::Never => loader.end(&is_interrupted)?,
            KilledWhen::Loading => {
                loader.begin_load(pages - 1);
                let until = Duration::from_nanos(random.next_u64() % longest_ns.max(1));
                // It may have ended before.
                let _ = loader.report_within(until, &is_interrupted)?;
                loader.kill();
            }
            KilledWhen::Paused => loader.kill(),
            KilledWhen::Flushed => {
                let took = loader.flush(&is_interrupted)?;
                let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
                sample.counts.insert("flush_ns".to_owned(), took_ns);
                loader.kill();
            }
        }
        let mut loader = (victim.start)(&place, true, SOON)?;
        if victim.reports_remains {
            let found = loader.remains(&is_interrupted)?;
            sample.counts.insert(FOUND.to_owned(), found.entries);
            sample.counts.insert(format!("{INDEX}{}", found.index), 1);
        }
        let sum = self.load_what_is_left(&mut loader, server, whole, &mut sample)?;
        loader.end(&is_interrupted)?;
        if sum.wrong + sum.failed > 0 {
            return Err(LoaderError::Failed(format!(
                "{} responses were not those of the site, and {} failed, after a kill {}",
                sum.wrong,
                sum.failed,
                when.name()
            )));
        }
        Ok(Sample {
            operations: pages as u64,
            wall_ns: sum.wall_ns,
            cpu_ns: sum.cpu_ns,
            hits: sum.hits,
            misses: sum.requests - sum.hits,
            ..sample
        })
    }

    /// Loads all pages, and counts what comes from the cache; `whole` pages were loaded before the kill. Returns the sums,
    /// of hits and requests those of these pages.
    fn load_what_is_left(
        &self,
        loader: &mut LoaderProcess,
        server: &SiteServer,
        whole: usize,
        sample: &mut Sample,
    ) -> Result<LoadReport, LoaderError> {
        let (mut sum, mut seen) = (LoadReport::default(), BTreeSet::new());
        let (mut storable, mut answering) = (0, 0);
        for (page, Page { loads, .. }) in self.site.pages.iter().enumerate() {
            let before = server.requests_by_resource();
            let (report, _) = loader.load(page, server, &|| self.host.is_interrupted())?;
            let after = server.requests_by_resource();
            sum.wrong += report.wrong;
            sum.failed += report.failed;
            sum.wall_ns += report.wall_ns;
            sum.cpu_ns += report.cpu_ns;
            if page >= whole {
                continue;
            }
            sum.requests += report.requests;
            sum.hits += report.hits;
            // What the process asks for a second time, it has stored itself.
            for resource in loads.iter().map(|load| load.resource).filter(|at| seen.insert(*at)) {
                if self.site.resources[resource].is_cacheable() {
                    storable += 1;
                    answering += u64::from(before[resource] == after[resource]);
                }
            }
        }
        sample.counts.insert(STORABLE.to_owned(), storable);
        sample.counts.insert(ANSWERING.to_owned(), answering);
        Ok(sum)
    }
}
