//! The order in which columns are measured over links: all columns over no link, where the origin counts, and those
//! that differ over each other link.

use std::time::Duration;

use haypile_measure::measure::Turns;
use haypile_measure::meter::LoadWatch;
use haypile_measure::result::Sample;
use haypile_origin::link::LinkProfile;

use super::measure::{Measured, PageRun, estimate, is_counting};
use crate::experiment::session::{Session, attempt};
use haypile_pages::verify::CountedLoad;
use haypile_pages::{LoaderError, SiteServer};

/// A loader of web pages with given cache configurations: this program's own, or a browser.
pub(crate) trait ColumnLoader {
    /// A column of its matrix.
    type Column: Clone;

    /// Returns what the columns of the run have in common.
    fn pages(&self) -> &PageRun<'_>;

    /// Returns the name of the browser; `None` for this program's own loader.
    fn browser(&self) -> Option<&str> {
        None
    }

    /// Whether two columns have a cache of the same kind on the same medium.
    fn is_alike(one: &Self::Column, other: &Self::Column) -> bool;

    /// Loads all visits with the cache of a column, empty at first, and verifies the counts.
    fn column(
        &self,
        server: &SiteServer,
        column: &Self::Column,
        is_verified_after: bool,
    ) -> Result<Vec<CountedLoad>, LoaderError>;

    /// Returns the rows of a column: one for each visit, or one with the error.
    fn samples(
        &self,
        link: &LinkProfile,
        column: &Self::Column,
        measured: &Measured,
    ) -> Vec<Sample>;

    /// Measures columns over a link, in blocks, each in random order; returns the loads of the first
    /// block by column.
    ///
    /// # Errors
    ///
    /// Results cannot be written, the link cannot be set up, the time is over, or the user has stopped
    /// it.
    fn link(
        &self,
        server: &mut SiteServer,
        link: &LinkProfile,
        columns: &[Self::Column],
        blocks: u64,
        session: &mut Session<'_>,
    ) -> anyhow::Result<Vec<Measured>> {
        let pages = self.pages();
        let seed = pages.run.seed;
        let mut turns = Turns::new(seed, 0, columns.len());
        let mut first: Vec<Option<Measured>> = columns.iter().map(|_| None).collect();
        for block in 0..blocks {
            for (position, &at) in turns.next_block().iter().enumerate() {
                let done = block * columns.len() as u64 + position as u64;
                let all = blocks * columns.len() as u64;
                pages.time.map_or(Ok(()), |time| time.check_left(link, (done, all)))?;
                // The same jitter and losses for each column.
                server.over(link, seed.wrapping_add(block))?;
                let column = &columns[at];
                let watch = LoadWatch::begin();
                let measured = attempt(self.column(server, column, is_counting(link)))?;
                let load = Some(watch.end(None));
                for sample in self.samples(link, column, &measured) {
                    let (position, load) = (position as u64, load.clone());
                    session.keep(Sample { block, position, load, ..sample })?;
                }
                if block == 0 {
                    first[at] = Some(measured);
                }
                pages.host.advance(pages.visits.len() as u64);
            }
        }
        Ok(first.into_iter().flatten().collect())
    }

    /// Measures all columns over no link, and those whose counts differ over each of the others, if
    /// the time that the user allows is enough for these. Returns the latter columns.
    ///
    /// # Errors
    ///
    /// Those of [`link`](Self::link), and a time that is not enough.
    fn links(
        &self,
        server: &mut SiteServer,
        links: &[LinkProfile],
        columns: &[Self::Column],
        blocks: u64,
        session: &mut Session<'_>,
    ) -> anyhow::Result<Vec<Self::Column>> {
        let pages = self.pages();
        let (host, visits) = (pages.host, pages.visits.len() as u64);
        let place = self.browser().map_or_else(String::new, |name| format!(" in {name}"));
        let shaped: Vec<&LinkProfile> = links.iter().filter(|link| !is_counting(link)).collect();
        // Where it is asked for, the pass that counts is a measurement as well.
        let counting = if shaped.len() < links.len() { blocks } else { 1 };
        let all = columns.len() as u64 * visits * counting;
        host.begin(all, format!("loading pages{place} over no link"))?;
        let counted = self.link(server, &LinkProfile::unshaped(), columns, counting, session)?;
        host.finish();
        let distinct = distinct::<Self>(columns, &counted);
        let chosen: Vec<_> = distinct.iter().map(|&at| columns[at].clone()).collect();
        if shaped.is_empty() {
            return Ok(chosen);
        }
        let loads = distinct.iter().filter_map(|&at| counted[at].as_ref().ok());
        let estimate: Duration = shaped
            .iter()
            .flat_map(|link| loads.clone().map(move |loads| estimate(pages.site, link, loads)))
            .sum();
        let times = u32::try_from(blocks).unwrap_or(u32::MAX).saturating_mul(pages.passes);
        let estimate = Duration::from_secs(estimate.saturating_mul(times).as_secs() + 1);
        let (of, why) = match self.browser() {
            Some(name) => (format!(" of {name}"), ""),
            None => (
                String::new(),
                " (of configurations of one kind with the same requests to the origin, one is)",
            ),
        };
        host.note(&format!(
            "{} of {} cache configurations{of} are measured over the emulated links, which takes \
             about {}{why}",
            distinct.len(),
            columns.len(),
            humantime::format_duration(estimate)
        ));
        pages.time.map_or(Ok(()), |time| time.check(estimate))?;
        for link in shaped {
            self.columns(server, link, &chosen, blocks, session)?;
        }
        Ok(chosen)
    }

    /// Measures these columns over a link, with the progress on the terminal.
    ///
    /// # Errors
    ///
    /// Those of [`link`](Self::link).
    fn columns(
        &self,
        server: &mut SiteServer,
        link: &LinkProfile,
        columns: &[Self::Column],
        blocks: u64,
        session: &mut Session<'_>,
    ) -> anyhow::Result<()> {
        let pages = self.pages();
        let place = self.browser().map_or_else(String::new, |name| format!(" in {name}"));
        let all = columns.len() as u64 * pages.visits.len() as u64 * blocks;
        pages.host.begin(all, format!("loading pages{place} over {}", link.name))?;
        self.link(server, link, columns, blocks, session)?;
        pages.host.finish();
        Ok(())
    }
}

/// Returns the columns, by index, whose counts are not equal to those of an earlier one that is alike.
fn distinct<L: ColumnLoader + ?Sized>(columns: &[L::Column], counted: &[Measured]) -> Vec<usize> {
    let seen = |at: usize| {
        let loads = counted[at].as_ref().ok()?;
        Some(loads.iter().map(|load| load.origin.seen()).collect::<Vec<_>>())
    };
    let is_equal = |at: usize, other: usize| {
        L::is_alike(&columns[at], &columns[other]) && seen(at) == seen(other)
    };
    let is_first = |at: &usize| counted[*at].is_ok() && !(0..*at).any(|other| is_equal(*at, other));
    (0..columns.len()).filter(is_first).collect()
}
