//! Disk caches whose process was killed: whether they are consistent, and how warm.

use std::time::Duration;

use haypile_measure::measure::Places;
use haypile_measure::result::Sample;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::experiment::on_pages::measure::{PageRun, subject};
use crate::experiment::parameters;
use crate::experiment::session::{Session, attempt};
use haypile_pages::{Column, LoadReport, LoaderError, LoaderProcess, SiteServer};

/// Name of the rows of kills.
pub(super) const KILLED: &str = "killed";

/// A loader without a sign of life is late.
const SOON: Duration = Duration::from_mins(1);

/// The state of the loader when it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KilledWhen {
    /// It is not: it closes its cache. What is left then is what the others are compared with.
    Never,
    /// At a random instant of a load.
    Loading,
    /// After the last load, when nothing is under way.
    Paused,
    /// The same, after it has written everything to disk.
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
    /// Kills the loader in each state this many times, and has another one load the same pages from
    /// what is left.
    pub(super) fn kills(
        &self,
        server: &SiteServer,
        column: &Column,
        kills: u32,
        session: &mut Session<'_>,
    ) -> anyhow::Result<()> {
        let mut random = ChaCha8Rng::seed_from_u64(self.run.seed ^ 0x6b69_6c6c);
        for block in 0..u64::from(kills) {
            for when in KilledWhen::ALL {
                let parameters =
                    parameters([("site", self.site_name.into()), ("when", when.name().into())]);
                let blank = Sample::blank(
                    &self.run,
                    &*self.run.experiment,
                    KILLED,
                    parameters,
                    subject(column),
                );
                let killed = self.killed(server, column, when, &mut random, blank.clone());
                let sample = attempt(killed)?;
                let sample = sample.unwrap_or_else(|text| Sample { error: Some(text), ..blank });
                session.keep(Sample { block, ..sample })?;
                self.host.advance(1);
            }
        }
        Ok(())
    }

    /// Loads pages, kills the loader, and has another one load the pages that were loaded whole.
    fn killed(
        &self,
        server: &SiteServer,
        column: &Column,
        when: KilledWhen,
        random: &mut ChaCha8Rng,
        mut sample: Sample,
    ) -> Result<Sample, LoaderError> {
        let failed = |error: std::io::Error| LoaderError::Failed(error.to_string());
        let places = Places::new(self.directory(column.medium.as_deref())).map_err(failed)?;
        let place = places.next().map_err(failed)?;
        let is_interrupted = || self.host.is_interrupted();
        let pages = self.site.pages.len();
        let mut loader =
            LoaderProcess::start(self.loader, server, column, &place, false, &is_interrupted)?;
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
        let mut loader = LoaderProcess::start(
            crate::experiment::on_pages::measure::patient(self.loader, SOON),
            server,
            column,
            &place,
            true,
            &is_interrupted,
        )?;
        let mut sum = LoadReport::default();
        for page in 0..pages {
            let (report, _) = loader.load(page, server, &is_interrupted)?;
            sum.wrong += report.wrong;
            sum.failed += report.failed;
            sum.wall_ns += report.wall_ns;
            sum.cpu_ns += report.cpu_ns;
            if page < whole {
                sum.requests += report.requests;
                sum.hits += report.hits;
            }
        }
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
}
