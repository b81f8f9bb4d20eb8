//! Measures the columns of a matrix.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::bail;
use haypile_measure::measure::Places;
use haypile_measure::result::{Run, Sample, SubjectId};
use haypile_origin::link::LinkProfile;
use serde_json::{Value, json};

use super::improvement::{LOAD, UNSHAPED, WAITS};
use super::links::ColumnLoader;
use super::matrix::Disk;
use crate::experiment::{Host, parameters};
use haypile_pages::site::Site;
use haypile_pages::site::manifest::{Visit, Visits};
use haypile_pages::verify::{self, CountedLoad};
use haypile_pages::{
    Column, LoadReport, LoaderError, LoaderProcess, LoaderSettings, Protocol, SiteServer,
};

/// Bytes of a packet, the shortest wait before it is sent again, and how often it is lost at most, as
/// links are emulated.
const PACKET_BYTES: u64 = 1448;
const RESEND_AFTER: Duration = Duration::from_millis(200);
const MOST_LOSSES: i32 = 6;

/// The settings that all page loads of a run share: the web site, the order of visits, the
/// directories of disk caches, and the loader.
pub(crate) struct PageRun<'a> {
    pub(crate) site: &'a Site,
    pub(crate) site_name: &'a str,
    /// The name in results of each page of the site: several pages may be visits to one.
    pub(crate) names: &'a [String],
    pub(crate) visits: &'a Visits,
    pub(crate) disks: &'a [Disk],
    pub(crate) loader: LoaderSettings<'a>,
    pub(crate) run: Run,
    pub(crate) host: &'a dyn Host,
    pub(crate) time: Option<TimeLimit>,
    /// The number of passes over each network link: two if the recorded site has waits, with and
    /// without them, otherwise one.
    pub(crate) passes: u32,
}

/// The limit on the total time of a run's page loads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimit {
    limit: Duration,
    begin: Instant,
}

impl TimeLimit {
    /// Creates a time limit for all page loads of a run, which begins now.
    pub(crate) fn begin(limit: Duration) -> Self {
        Self { limit, begin: Instant::now() }
    }

    /// Returns an error if the next page loads would take longer, by this estimate, than the rest
    /// of the time limit.
    pub(crate) fn check(self, estimate: Duration) -> anyhow::Result<()> {
        let left = self.limit.saturating_sub(self.begin.elapsed());
        if estimate > left {
            bail!(
                "page loads over the emulated links would take about {}, and --time allows {}, of \
                 which {} are left; allow more time, or choose fewer links, sizes or pages",
                humantime::format_duration(estimate),
                humantime::format_duration(self.limit),
                humantime::format_duration(Duration::from_secs(left.as_secs()))
            );
        }
        Ok(())
    }

    /// Returns an error if the time limit for all page loads of the run is over.
    pub(super) fn check_left(
        self,
        link: &LinkProfile,
        (done, all): (u64, u64),
    ) -> anyhow::Result<()> {
        if self.begin.elapsed() > self.limit {
            bail!(
                "the page loads took too long: --time allows {}; over the link {link}, {done} \
                 of {all} cache configurations were measured, and their results are kept; allow \
                 more time, or choose fewer links, sizes or pages",
                humantime::format_duration(self.limit)
            );
        }
        Ok(())
    }
}

/// The page loads with one cache configuration over one network link in one block, or the reason
/// why there are none.
pub(crate) type Measured = Result<Vec<CountedLoad>, String>;

impl PageRun<'_> {
    /// Loads a page, and verifies the number of its requests that the origin and the cache
    /// answered.
    pub(crate) fn load(
        &self,
        loader: &mut LoaderProcess,
        server: &SiteServer,
        column: &Column,
        page: usize,
    ) -> Result<CountedLoad, LoaderError> {
        let before = server.requests_by_resource();
        let (report, origin) = loader.load(page, server, &|| self.host.is_interrupted())?;
        let after = server.requests_by_resource();
        let asked =
            |load: &haypile_pages::site::PageLoad| after[load.resource] > before[load.resource];
        let was_asked = self.site.pages[page].loads.iter().map(asked).collect();
        let load = CountedLoad { page, report, origin, was_asked };
        verify::load(self.site, column, &load).map_err(LoaderError::Failed)?;
        if self.loader.protocol == Protocol::H2 {
            verify::one_connection(self.site, &load).map_err(LoaderError::Failed)?;
        }
        Ok(load)
    }

    /// Returns the directory in which a disk cache on this storage medium has its files.
    pub(crate) fn directory(&self, medium: Option<&str>) -> &Path {
        let disk = self.disks.iter().find(|disk| disk.name.as_deref() == medium);
        // Caches without a file work where the first one does.
        &disk.unwrap_or(&self.disks[0]).directory
    }

    /// Returns a result row for each measured page load, or one row with the error; `row` makes a
    /// blank row for a page and a visit.
    pub(crate) fn rows(
        &self,
        measured: &Measured,
        row: impl Fn(Value, Value) -> Sample,
    ) -> Vec<Sample> {
        match measured {
            Err(error) => {
                vec![Sample { error: Some(error.clone()), ..row(json!(null), json!(null)) }]
            }
            Ok(loads) => {
                let visits = loads.iter().zip(self.visits);
                let sample = |(load, visit): (&CountedLoad, &Visit)| {
                    let page = &self.site.pages[visit.page];
                    let row = row(self.names[visit.page].as_str().into(), visit.number.into());
                    let mut sample = filled(row, load);
                    let waits_ns = page.waits().as_nanos().try_into().unwrap_or(u64::MAX);
                    if waits_ns > 0 {
                        sample.counts.insert(WAITS.to_owned(), waits_ns);
                    }
                    sample
                };
                visits.map(sample).collect()
            }
        }
    }
}

impl ColumnLoader for PageRun<'_> {
    type Column = Column;

    fn pages(&self) -> &PageRun<'_> {
        self
    }

    fn is_alike(one: &Column, other: &Column) -> bool {
        let alike = |column: &Column| (column.kind, column.medium.clone(), column.no_vary_search);
        alike(one) == alike(other)
    }

    fn column(
        &self,
        server: &SiteServer,
        column: &Column,
        is_verified_after: bool,
    ) -> Result<Vec<CountedLoad>, LoaderError> {
        let failed = |error: std::io::Error| LoaderError::Failed(error.to_string());
        let places = Places::new(self.directory(column.medium.as_deref())).map_err(failed)?;
        let place = places.next().map_err(failed)?;
        let is_interrupted = || self.host.is_interrupted();
        let start = |is_kept| {
            LoaderProcess::start(self.loader, server, column, &place, is_kept, &is_interrupted)
        };
        let mut loader = start(false)?;
        let mut loads = Vec::with_capacity(self.visits.len());
        for visit in self.visits {
            loads.push(self.load(&mut loader, server, column, visit.page)?);
        }
        loader.end(&is_interrupted)?;
        let wrong = LoaderError::Failed;
        for pass in passes(self.names, self.visits.as_slice()) {
            verify::size(self.site, column, &loads[pass]).map_err(wrong)?;
        }
        if is_verified_after
            && let (Some(last), Some(visit)) = (loads.last(), self.visits.iter().last())
        {
            let mut loader = start(true)?;
            let after = self.load(&mut loader, server, column, visit.page)?;
            loader.end(&is_interrupted)?;
            verify::place(self.site, column, last, &after).map_err(wrong)?;
        }
        Ok(loads)
    }

    fn samples(&self, link: &LinkProfile, column: &Column, measured: &Measured) -> Vec<Sample> {
        let row = |page: Value, visit: Value| {
            let parameters = parameters([
                ("site", self.site_name.into()),
                ("link", link.name.as_str().into()),
                ("page", page),
                ("visit", visit),
                ("protocol", self.loader.protocol.name().into()),
                ("connections", self.loader.connections.into()),
                ("partitioned", self.loader.is_partitioned.into()),
            ]);
            Sample::blank(&self.run, &*self.run.experiment, LOAD, parameters, subject(column))
        };
        self.rows(measured, row)
    }
}

/// Returns the name of a cache configuration in results.
pub(crate) fn subject(column: &Column) -> SubjectId {
    let medium = column.medium.as_ref().map_or_else(String::new, |name| format!(" on {name}"));
    SubjectId {
        name: format!("{}{medium}", column.subject()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        language: "rust".to_owned(),
        program: haypile_measure::measure::OWN_LABEL.to_owned(),
    }
}

/// Names of the counts of requests that came over TLS, and over HTTP/2 there.
pub(crate) const TLS_REQUESTS: &str = "origin_tls_requests";
pub(crate) const HTTP2_REQUESTS: &str = "origin_http2_requests";

/// Completes a row of results with the times and counts of a page load.
pub(crate) fn filled(sample: Sample, load: &CountedLoad) -> Sample {
    let LoadReport { wall_ns, cpu_ns, requests, hits, ref by_level, revalidated, .. } = load.report;
    let mut counts = sample.counts.clone();
    for (name, count) in [
        ("origin_requests", load.origin.requests),
        ("origin_body_bytes", load.origin.body_bytes),
        ("origin_not_modified", load.origin.not_modified),
        ("origin_connections", load.origin.connections),
        ("origin_rests", load.origin.rests),
        ("again", load.report.again),
        ("revalidated", revalidated),
        ("body_bytes", load.report.body_bytes),
        ("hit_bytes", load.report.hit_bytes),
    ] {
        counts.insert(name.to_owned(), count);
    }
    if load.origin.tls_requests > 0 {
        counts.insert(TLS_REQUESTS.to_owned(), load.origin.tls_requests);
        counts.insert(HTTP2_REQUESTS.to_owned(), load.origin.http2_requests);
    }
    counts.extend(by_level.iter().map(|(level, hits)| (format!("hits_{level}"), *hits)));
    Sample { operations: 1, wall_ns, cpu_ns, hits, misses: requests - hits, counts, ..sample }
}

/// Divides the page visits into consecutive ranges in which no page occurs twice.
pub(crate) fn passes(names: &[String], visits: &[Visit]) -> Vec<std::ops::Range<usize>> {
    let name = |visit: &Visit| &names[visit.page];
    let mut passes: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, visit) in visits.iter().enumerate() {
        match passes.last_mut() {
            Some(pass) if !visits[pass.clone()].iter().any(|other| name(other) == name(visit)) => {
                pass.end = at + 1;
            }
            _ => passes.push(at..at + 1),
        }
    }
    passes
}

/// Estimates the time that page loads take over a network link, from their times over no link.
pub(crate) fn estimate(site: &Site, link: &LinkProfile, loads: &[CountedLoad]) -> Duration {
    let of_load = |load: &CountedLoad| {
        let bits = load.origin.body_bytes.saturating_mul(8);
        let transfer = link.down_bits_per_second.map_or(Duration::ZERO, |rate| {
            Duration::from_micros(bits.saturating_mul(1_000_000) / rate.max(1))
        });
        let depth = depth(site, load);
        let trips = depth + u32::from(load.origin.connections > 0);
        let packets = load.origin.body_bytes / PACKET_BYTES / u64::from(depth.max(1)) + 1;
        // Of requests at the same time, the one with the most jitter and losses is waited for.
        let trip = link.round_trip + link.jitter + resent(link, 1) + resent(link, packets);
        Duration::from_nanos(load.report.wall_ns) + transfer + trip * trips
    };
    loads.iter().map(of_load).sum()
}

/// The time that losses add on average to what comes in this many packets: of the one that is lost most
/// often, each time a wait that doubles.
fn resent(link: &LinkProfile, packets: u64) -> Duration {
    let packets = i32::try_from(packets).unwrap_or(i32::MAX);
    let lost_often = |times: i32| 1.0 - (1.0 - link.loss.powi(times)).powi(packets);
    let waits = (1..=MOST_LOSSES).map(|times| lost_often(times) * 2.0_f64.powi(times - 1));
    link.round_trip.max(RESEND_AFTER).mul_f64(waits.sum())
}

/// The most requests to the origin that wait for each other in one load.
fn depth(site: &Site, load: &CountedLoad) -> u32 {
    let mut depths: Vec<u32> = Vec::with_capacity(load.was_asked.len());
    for (place, was_asked) in site.pages[load.page].loads.iter().zip(&load.was_asked) {
        let before = place.after.map_or(0, |after| depths[after]);
        depths.push(before + u32::from(*was_asked));
    }
    depths.into_iter().max().unwrap_or(0)
}

/// Returns the page loader's settings with a time limit of at least `limit` for each load.
pub(crate) fn patient(settings: LoaderSettings<'_>, limit: Duration) -> LoaderSettings<'_> {
    LoaderSettings { limit: settings.limit.max(limit), ..settings }
}

/// Whether this network link is the one over which the origin's requests are counted.
pub(crate) fn is_counting(link: &LinkProfile) -> bool {
    link.name == UNSHAPED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_add_what_the_emulator_adds() {
        let link = |loss: f64| {
            let mut link = LinkProfile::unshaped();
            (link.loss, link.round_trip) = (loss, Duration::from_millis(100));
            link
        };
        assert_eq!(resent(&link(0.0), 1000), Duration::ZERO);
        // One packet in a hundred waits 200 ms.
        let one = resent(&link(0.01), 1);
        assert!((Duration::from_millis(2)..Duration::from_micros(2_100)).contains(&one), "{one:?}");
        // Of many packets, one is lost as often as it can be.
        let most = resent(&link(0.5), 10_000);
        assert!((Duration::from_secs(12)..Duration::from_secs(13)).contains(&most), "{most:?}");
    }

    #[test]
    fn a_time_that_is_over_is_named_with_what_is_done() {
        let time = TimeLimit::begin(Duration::from_mins(1));
        time.check(Duration::from_secs(59)).unwrap();
        assert!(time.check(Duration::from_secs(61)).unwrap_err().to_string().contains("--time"));
        time.check_left(&LinkProfile::unshaped(), (1, 2)).unwrap();
        let over = TimeLimit { limit: Duration::ZERO, ..time };
        let error = over.check_left(&LinkProfile::unshaped(), (1, 2)).unwrap_err().to_string();
        assert!(
            error.contains("1 of 2 cache configurations were measured, and their results are kept"),
            "{error}"
        );
    }

    #[test]
    fn a_pass_has_each_page_once() {
        let ranges = |visits: &Visits| {
            let names: Vec<String> = (0..5).map(|page| page.to_string()).collect();
            let passes = passes(&names, visits.as_slice());
            passes.into_iter().map(|pass| (pass.start, pass.end)).collect::<Vec<_>>()
        };
        // Groups of four, three times; then the last page alone, three times.
        assert_eq!(ranges(&Visits::in_groups(5)), [(0, 4), (4, 8), (8, 13), (13, 14), (14, 15)]);
        assert_eq!(ranges(&Visits::of_pages([0, 0, 1])), [(0, 1), (1, 3)]);
        assert!(ranges(&Visits::of_pages([])).is_empty());
    }
}
