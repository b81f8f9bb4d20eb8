//! Measures the ways of loading icons, by processes that load them at the same time.

use std::collections::BTreeSet;
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
use super::full::scatter;
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

/// Programs that are started in a full cache before anything is measured: the first finds that icons lie apart, the
/// second stores them again, and the third changes nothing.
const STARTS_IN_A_FULL_CACHE: u32 = 3;

/// The settings that all cases of a run of the experiment `icons` share: its options, the program
/// that loads icons, and the scratch folder.
pub(super) struct IconRun<'a> {
    pub(super) options: &'a IconsOptions,
    pub(super) runner: &'a Runner,
    pub(super) run: Run,
    pub(super) host: &'a dyn Host,
    pub(super) scratch: &'a Path,
}

/// The outcome of one measurement of the experiment `icons`: the reports of its processes.
pub(super) struct Measured<R = IconReport> {
    pub(super) reports: Vec<R>,
    /// Proportional set sizes that the icons added, of all processes, in bytes.
    pss_bytes: u64,
    residency: Option<Residency>,
    pub(super) load: Load,
}

impl IconRun<'_> {
    /// Measures each way of loading icons (such as by probing folders, or from a cache) for one
    /// theme and number of icons.
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
        if self.options.full {
            scatter(&url)?;
            for _ in 0..STARTS_IN_A_FULL_CACHE {
                attempt(self.measure(&orders(Way::Shared), 1, None))?
                    .map_err(anyhow::Error::msg)?;
            }
        }
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
                        let mut parameters = parameters([
                            ("theme", json!(theme.name)),
                            ("icons", json!(number)),
                            ("processes", json!(processes)),
                            ("page_cache", json!(page_cache)),
                            ("size_px", json!(self.options.size)),
                        ]);
                        if self.options.full {
                            parameters.insert("cache".to_owned(), json!("full"));
                        }
                        let cold = is_cold.then_some(&cold);
                        if way.shares_checks() {
                            // The check that is taken over; it is not measured.
                            attempt(self.measure(&orders(Way::Both), 1, None))?
                                .map_err(anyhow::Error::msg)?;
                        }
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
            "the icon cache did not store all icons; check whether the theme's files are being \
             changed"
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

    /// Starts processes that load icons or draw a game, sends them their orders, and collects their
    /// reports.
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
            ("copied", Some(sum(|report| report.copied))),
            ("gathered", Some(sum(|report| report.gathered))),
            ("stat_calls", Some(sum(|report| report.stats))),
            ("cache_failures", Some(sum(|report| report.failures))),
            ("shared_checks", Some(sum(|report| report.shared_checks))),
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
        Way::Pixmaps | Way::Png | Way::Copied | Way::Both | Way::Shared => 0,
    };
    if way.shares_checks() != (report.shared_checks > 0) {
        return Some(format!("it took over {} checks", report.shared_checks));
    }
    let is_right = report.rendered == rendered || (rendered > 0 && report.rendered > rendered);
    (!is_right).then(|| format!("it rendered {} icons, and not {rendered}", report.rendered))
}

/// The memory of a process, in which pages that several share count in part for each: without the program itself and
/// its libraries, whose pages come in as a process uses them, and which a program has once for whatever it does.
fn pss_bytes(loader: &Child) -> u64 {
    let path = format!("/proc/{}/smaps", loader.pid());
    pss_without_code(&fs::read_to_string(path).unwrap_or_default())
}

fn pss_without_code(smaps: &str) -> u64 {
    let mut programs: BTreeSet<&str> = BTreeSet::new();
    let (mut name, mut sizes_kib) = ("", Vec::new());
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        match (words.next(), words.next()) {
            (Some("Pss:"), Some(kib)) => sizes_kib.push((name, kib.parse::<u64>().unwrap_or(0))),
            (Some(field), _) if field.ends_with(':') => {}
            // A mapping: its addresses, rights, place in the file, device, inode and path.
            (Some(_), Some(rights)) => {
                name = line.split_once('/').map_or("", |(_, path)| path);
                if rights.contains('x') {
                    programs.insert(name);
                }
            }
            _ => {}
        }
    }
    programs.remove("");
    let counted = sizes_kib.iter().filter(|(name, _)| !programs.contains(name));
    counted.map(|(_, kib)| kib * 1024).sum()
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

    #[test]
    fn a_process_that_does_not_take_over_a_check_is_not_shared() {
        let wanted = Wanted { names: Vec::new(), found: 0, checksum: 0, png_checksum: 0 };
        let taken = IconReport { shared_checks: 1, ..IconReport::default() };
        assert_eq!(wrong(Way::Shared, &wanted, &taken), None);
        for (way, report) in [(Way::Shared, IconReport::default()), (Way::Both, taken)] {
            assert!(wrong(way, &wanted, &report).unwrap().contains("took over"));
        }
    }

    #[test]
    fn memory_is_that_of_all_mappings_but_programs() {
        let smaps = "\
55d0-55d1 r--p 00000000 fe:00 12 /usr/bin/a program
Rss: 9 kB
Pss: 1 kB
55d1-55d2 r-xp 00001000 fe:00 12 /usr/bin/a program
Pss: 2 kB
SwapPss: 7 kB
VmFlags: rd ex mr
55d2-55d3 rw-p 00002000 fe:00 12 /usr/bin/a program
Pss: 4 kB
55d3-55d4 rw-p 00000000 00:00 0 [heap]
Pss: 16 kB
7f00-7f01 rw-s 00000000 fe:00 13 /home/me/icons.haypile
Pss: 32 kB
7f01-7f02 rw-p 00000000 00:00 0
Pss: 64 kB
7f02-7f03 r-xp 00000000 00:00 0 [vdso]
Pss: 0 kB
";
        assert_eq!(pss_without_code(smaps), (16 + 32 + 64) * 1024);
        let own = fs::read_to_string("/proc/self/smaps").unwrap();
        assert!(pss_without_code(&own) > 0);
    }
}
