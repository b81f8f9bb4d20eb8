//! Measures the ways of getting icons, by processes that get them at the same time.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use haypile_icons::cache_url_at;
use haypile_measure::measure::{Child, Deadline, Failure, OWN_LABEL, Runner, Turns};
use haypile_measure::meter::{LoadWatch, Residency};
use haypile_measure::result::{Load, Parameters, Run, Sample, SubjectId};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::NAME;
use super::options::IconsOptions;
use super::orders::{IconOrders, IconReport, LoaderOrders};
use super::theme::{Theme, Wanted};
use super::way::Way;
use crate::experiment::cold::{Cold, ColdFiles};
use crate::experiment::session::{Session, attempt};
use crate::experiment::{Host, parameters};

/// The most attempts to fill the cache: files of a theme that was just written are too
/// young to be kept.
const PRIMINGS: u32 = 200;

/// Everything that the cases of a run have in common.
pub(super) struct IconRun<'a> {
    pub(super) options: &'a IconsOptions,
    pub(super) runner: &'a Runner,
    pub(super) run: Run,
    pub(super) host: &'a dyn Host,
    pub(super) scratch: &'a Path,
}

/// The outcome of one measurement.
pub(super) struct Measured<R = IconReport> {
    pub(super) reports: Vec<R>,
    /// Proportional set sizes that were added by the icons, of all processes.
    pss_bytes: u64,
    residency: Option<Residency>,
    pub(super) load: Load,
}

impl IconRun<'_> {
    /// Measures all ways of getting a number of icons of a theme.
    ///
    /// # Errors
    ///
    /// Results cannot be written, the theme has no icons, or the user has stopped it.
    pub(super) fn case(
        &self,
        theme: &Theme,
        number: u32,
        session: &mut Session<'_>,
    ) -> anyhow::Result<()> {
        let wanted = theme.wanted(number, self.options.size, self.options.run.seed)?;
        let cache = self.scratch.join(format!("{}-{number}.haypile", theme.name));
        let url = cache_url_at(&cache)?.to_string();
        let orders = |way| IconOrders {
            way,
            theme: theme.name.clone(),
            base: theme.base.clone(),
            names: wanted.names.clone(),
            size: self.options.size,
            cache: url.clone(),
        };
        self.prime(&orders)?;
        let mut cold = ColdFiles::default();
        if self.options.cold {
            cold.add(&theme.folders);
            cold.add(&[cache]);
        }
        for &processes in &self.options.processes {
            for is_cold in [false, true].into_iter().take(1 + usize::from(self.options.cold)) {
                let mut turns =
                    Turns::new(self.options.run.seed, number as usize, theme.ways.len());
                for block in 0..self.options.blocks {
                    for (position, turn) in turns.next_block().into_iter().enumerate() {
                        let way = theme.ways[turn];
                        let page_cache = if is_cold { "cold" } else { "warm" };
                        let parameters = parameters([
                            ("theme", json!(theme.name)),
                            ("icons", json!(number)),
                            ("processes", json!(processes)),
                            ("page_cache", json!(page_cache)),
                            ("size_px", json!(self.options.size)),
                        ]);
                        let cold = is_cold.then_some(&cold);
                        let sample = match attempt(self.measure(&orders(way), processes, cold))? {
                            Ok(measured) => self.sample(way, &wanted, parameters, &measured),
                            Err(text) => {
                                Sample { error: Some(text), ..self.blank(way.name(), parameters) }
                            }
                        };
                        session.keep(Sample { block, position: position as u64, ..sample })?;
                        self.host.advance(1);
                    }
                }
            }
        }
        Ok(())
    }

    /// Fills the cache.
    fn prime(&self, orders: &dyn Fn(Way) -> IconOrders) -> anyhow::Result<()> {
        for _ in 0..PRIMINGS {
            let mut rendered = 0;
            for way in [Way::Png, Way::Both] {
                let measured = attempt(self.measure(&orders(way), 1, None))?;
                rendered = measured.map_err(anyhow::Error::msg)?.reports[0].rendered;
            }
            if rendered == 0 {
                return Ok(());
            }
        }
        anyhow::bail!(
            "the cache of icons does not fill: are the theme's files written all the time?"
        )
    }

    fn measure(
        &self,
        orders: &IconOrders,
        processes: u32,
        cold: Option<&ColdFiles>,
    ) -> Result<Measured, Failure> {
        self.tell(&LoaderOrders::Icons(orders.clone()), processes, cold)
    }

    /// Gives processes their orders, and collects what they report.
    pub(super) fn tell<R: DeserializeOwned>(
        &self,
        orders: &LoaderOrders,
        processes: u32,
        cold: Option<&ColdFiles>,
    ) -> Result<Measured<R>, Failure> {
        let is_interrupted = || self.host.is_interrupted();
        let failed = |error: anyhow::Error| Failure::Failed(format!("{error:#}"));
        let line = serde_json::to_string(orders).map_err(|error| failed(error.into()))? + "\n";
        let limit = Deadline::after(self.options.run.timeout);
        let mut loaders = Vec::new();
        for _ in 0..processes {
            let command = self.runner.command("run-icons");
            loaders.push(Child::spawn(command, "the loader of icons")?);
        }
        for loader in &mut loaders {
            loader.say(&line);
            loader.line(limit, &is_interrupted)?;
        }
        let residency = cold.map(|cold| cold.drop(Cold::Fadvise)).transpose().map_err(failed)?;
        let pss = |loaders: &[Child]| loaders.iter().map(pss_bytes).sum::<u64>();
        let before = pss(&loaders);
        let watch = LoadWatch::begin();
        for loader in &mut loaders {
            loader.say("go\n");
        }
        let mut reports = Vec::new();
        for loader in &mut loaders {
            let said = loader.line(limit, &is_interrupted)?;
            let report = serde_json::from_str(&said).context("the loader's report");
            reports.push(report.map_err(failed)?);
        }
        let load = watch.end(None);
        let pss_bytes = pss(&loaders).saturating_sub(before);
        for mut loader in loaders {
            loader.finish(Deadline::after(Duration::from_secs(10)), &is_interrupted)?;
        }
        Ok(Measured { reports, pss_bytes, residency, load })
    }

    pub(super) fn blank(&self, name: &str, parameters: Parameters) -> Sample {
        let subject = SubjectId {
            name: name.to_owned(),
            version: String::new(),
            language: String::new(),
            program: OWN_LABEL.to_owned(),
        };
        Sample::blank(&self.run, NAME, "load", parameters, subject)
    }

    fn sample(
        &self,
        way: Way,
        wanted: &Wanted,
        parameters: Parameters,
        measured: &Measured,
    ) -> Sample {
        let mut sample = self.blank(way.name(), parameters);
        let Measured { reports, pss_bytes, residency, load } = measured;
        sample.load = Some(load.clone());
        let sum = |of: fn(&IconReport) -> u64| reports.iter().map(of).sum::<u64>();
        sample.operations = wanted.names.len() as u64 * reports.len() as u64;
        sample.wall_ns = reports.iter().map(|report| report.wall_ns).max().unwrap_or(0);
        sample.cpu_ns = sum(|report| report.cpu_ns);
        sample.memory_bytes = Some(*pss_bytes);
        sample.hits = sum(|report| report.found);
        sample.misses = sum(|report| report.negative);
        let counts = [
            ("again_ns", reports.iter().map(|report| report.again_ns).max()),
            ("rendered", Some(sum(|report| report.rendered))),
            ("cached", Some(sum(|report| report.cached))),
            ("stat_calls", Some(sum(|report| report.stats))),
            ("cache_failures", Some(sum(|report| report.failures))),
            ("cold_file_bytes", residency.map(|it| it.file_bytes)),
            ("cold_resident_bytes", residency.map(|it| it.resident_bytes)),
        ];
        let known = counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?)));
        sample.counts = known.collect();
        sample.error = reports.iter().find_map(|report| wrong(way, wanted, report));
        sample
    }
}

/// Returns an error about a loader's answers, if they are wrong.
fn wrong(way: Way, wanted: &Wanted, report: &IconReport) -> Option<String> {
    let expected = if way == Way::Png { wanted.png_checksum } else { wanted.checksum };
    let missing = wanted.names.len() as u64 - wanted.found;
    if report.found != wanted.found || report.negative < missing {
        return Some(format!("it found {} icons, and not {}", report.found, wanted.found));
    }
    if report.checksum != expected {
        return Some("the pictures are not those of the theme".to_owned());
    }
    let rendered = match way {
        Way::Probe | Way::Scan | Way::Gtk | Way::Index => wanted.found,
        Way::Pixmaps | Way::Png | Way::Copied | Way::Both => 0,
    };
    let is_right = report.rendered == rendered || (rendered > 0 && report.rendered > rendered);
    (!is_right).then(|| format!("it rendered {} icons, and not {rendered}", report.rendered))
}

/// The memory of a process, in which pages that several share count in part for each.
fn pss_bytes(loader: &Child) -> u64 {
    let path = format!("/proc/{}/smaps_rollup", loader.pid());
    let text = fs::read_to_string(path).unwrap_or_default();
    let pss = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = pss.and_then(|pss| pss.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loader_that_lies_is_caught() {
        let names = vec![String::new(); 10];
        let wanted = Wanted { names, found: 9, checksum: 5, png_checksum: 6 };
        let honest = IconReport { found: 9, negative: 1, checksum: 5, ..IconReport::default() };
        let is = |way, report: IconReport| wrong(way, &wanted, &report);
        assert_eq!(is(Way::Both, honest), None);
        assert_eq!(is(Way::Png, IconReport { checksum: 6, ..honest }), None);
        assert_eq!(is(Way::Scan, IconReport { rendered: 9, ..honest }), None);
        assert!(
            is(Way::Both, IconReport { rendered: 1, ..honest }).unwrap().contains("rendered 1")
        );
        assert!(is(Way::Both, IconReport { checksum: 4, ..honest }).unwrap().contains("pictures"));
        assert!(is(Way::Both, IconReport { found: 8, ..honest }).unwrap().contains("found 8"));
        assert!(is(Way::Scan, honest).unwrap().contains("and not 9"));
        assert!(is(Way::Both, IconReport { negative: 0, ..honest }).is_some());
    }
}
