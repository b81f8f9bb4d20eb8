//! Real browsers as loaders: a program that drives a browser, and a proxy of ours in front of the origin.
//!
//! ```text
//!   ScriptedOrigin <── LinkEmulator <──[haypile proxy]<── Chromium <──(CDP)──────── rivals/chromium/run.py
//!        └ counts what came                           └── Firefox  <──(Marionette)── rivals/firefox/run.py
//!                                                                   lines of JSON <──┘
//! ```
//!
//! The program follows the orders of any loader ([`crate::PageOrders`]). The caches are the browser's own,
//! and the counts of the origin decide whether a switch of the browser did what it is for.

use std::env;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use haypile::ByteSize;
use haypile_measure::measure::{Child, Deadline, Failure, MeasureError, Runner};
use haypile_measure::rival::Rivals;

use super::column::Column;
use super::orders::Protocol;
use super::process::{LoaderError, LoaderProcess, LoaderSettings};
use super::site_server::SiteServer;
use super::verify::{CountedLoad, is_revalidated_later};
use crate::site::{Resource, Site};

/// Name of the browser Chromium, which the loader in rivals/chromium of a checkout drives.
pub const CHROMIUM: &str = "chromium";
/// Name of the browser Firefox, which the loader in rivals/firefox of a checkout drives.
pub const FIREFOX: &str = "firefox";
/// The name in results of Firefox's HTTP cache that is used by requests, without a page.
pub const NECKO: &str = "necko";
/// Its loader, from the checkout's root on.
const CHROMIUM_LOADER: &str = "rivals/chromium/run.py";
/// Python with the package that drives it, in Cargo's folder.
const CHROMIUM_PYTHON: &str = "report-test/bin/python";
/// The command that installs both.
const CHROMIUM_INSTALL: &str = "apt-get install chromium && make target/report-test/ready";
/// The loader of Firefox, from the checkout's root on, which needs only Python's standard library.
const FIREFOX_LOADER: &str = "rivals/firefox/run.py";
/// The loader of lists in Firefox, from the checkout's root on.
const LISTS_LOADER: &str = "rivals/firefox/lists.py";
/// The command that installs the browser.
const FIREFOX_INSTALL: &str = "apt-get install firefox-esr";
/// The longest wait for what a loader says about itself.
const LIST_LIMIT: Duration = Duration::from_mins(1);

/// A browser that loads the pages of a site, and the program (loader) that drives it.
#[derive(Clone, Debug)]
pub struct Browser {
    /// The program (loader) that drives the browser, and reads orders, such as to load a page, on its standard input.
    pub runner: Runner,
    /// The name of the browser, with which the names of its cache configurations in results begin.
    pub name: String,
    /// The version of the browser.
    pub version: String,
    /// The language that the browser is written in.
    pub language: String,
}

/// The reason why a browser cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// The browser, or the program that drives it, is not installed.
    #[error("{0}")]
    Missing(String),
    /// Another reason.
    #[error("{0}")]
    Failed(String),
}

impl Browser {
    /// Finds the loader that drives a browser: `chromium` and `firefox` are in the checkout, any
    /// other name is a program.
    pub fn find(named: &str) -> Result<Self, BrowserError> {
        let runner = match named {
            CHROMIUM => chromium()?,
            FIREFOX => firefox(FIREFOX_LOADER, FIREFOX)?,
            program => Runner::rival(program),
        };
        Self::of_runner(named, runner)
    }

    /// Finds the loader that loads lists of resources in a browser, by requests without a page: that of `firefox` is in
    /// the checkout, any other name is a program.
    pub fn find_for_lists(named: &str) -> Result<Self, BrowserError> {
        let runner = match named {
            CHROMIUM => {
                let why = "chromium requests nothing without a page, and a list is not one; take firefox, as in haypile lab \
                           resources page.txt --browser firefox, or load pages, as in haypile lab pages --browser chromium";
                return Err(BrowserError::Failed(why.to_owned()));
            }
            FIREFOX => firefox(LISTS_LOADER, NECKO)?,
            program => Runner::rival(program),
        };
        Self::of_runner(named, runner)
    }

    fn of_runner(named: &str, runner: Runner) -> Result<Self, BrowserError> {
        let listed = runner.subjects(LIST_LIMIT).map_err(|error| match error {
            MeasureError::Refused { why, .. } => {
                let why = why.split("; run:").next().unwrap_or(&why);
                BrowserError::Missing(how_to_get(named, why))
            }
            other => BrowserError::Failed(other.to_string()),
        })?;
        let Some(listed) = listed.into_iter().next() else {
            return Err(BrowserError::Failed(format!("{named} lists no subject")));
        };
        let (name, version, language) = (listed.name, listed.version, listed.language);
        Ok(Self { runner, name, version, language })
    }

    /// Whether the size of the browser's memory cache can be set, as in Firefox.
    pub fn sets_memory_size(&self) -> bool {
        [FIREFOX, NECKO].contains(&&*self.name)
    }

    /// Whether the browser's loader can load pages recorded in a HAR file, for which it follows redirects and checks compressed
    /// bodies by their checksums (Firefox only).
    pub fn loads_recordings(&self) -> bool {
        self.name == FIREFOX
    }

    /// Whether the loader loads pages by `https`, in HTTP/1.1 and HTTP/2.
    pub fn speaks_https(&self) -> bool {
        self.name == FIREFOX
    }

    /// Whether the browser's loader can be killed, restarted with the cache files that are left, and report the state
    /// of these.
    pub fn reports_remains(&self) -> bool {
        self.name == FIREFOX
    }
}

fn rivals() -> Result<Rivals, BrowserError> {
    Rivals::find(None).map_err(|error| BrowserError::Failed(error.to_string()))
}

/// A loader of Firefox in the checkout, and its name in results.
fn firefox(loader: &str, label: &str) -> Result<Runner, BrowserError> {
    let loader = rivals()?.checkout().join(loader);
    // Python writes no folder of compiled files into the checkout.
    let arguments = vec!["-B".into(), loader.into()];
    Ok(Runner {
        program: PathBuf::from("python3"),
        arguments,
        label: label.to_owned(),
        several_jobs: false,
    })
}

fn chromium() -> Result<Runner, BrowserError> {
    let rivals = rivals()?;
    let target = env::var_os("CARGO_TARGET_DIR").filter(|target| !target.is_empty());
    let target = target.map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let python = rivals.checkout().join(target).join(CHROMIUM_PYTHON);
    if !python.exists() {
        let why = format!("there is no {}", python.display());
        return Err(BrowserError::Missing(how_to_get(CHROMIUM, &why)));
    }
    let loader = rivals.checkout().join(CHROMIUM_LOADER);
    let arguments = vec!["-B".into(), loader.into()];
    Ok(Runner { program: python, arguments, label: CHROMIUM.to_owned(), several_jobs: false })
}

fn how_to_get(named: &str, why: &str) -> String {
    let install = match named {
        CHROMIUM => format!("; in the checkout: {CHROMIUM_INSTALL}"),
        FIREFOX => format!("; run: {FIREFOX_INSTALL}"),
        _ => String::new(),
    };
    format!("{named} does not run here ({why}){install}")
}

/// The kind of cache that a browser is measured with: none, memory, disk, both, or a proxy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BrowserCache {
    /// No cache: the browser stores nothing.
    None,
    /// The browser's HTTP cache in memory.
    Memory,
    /// The browser's HTTP cache on disk.
    Disk,
    /// The browser's HTTP cache on disk, behind the memory of the page's process.
    Both,
    /// The cache of a proxy of ours between the browser and the link, with the browser's own off.
    Proxy,
}

/// A cache configuration of a browser, which is one column of the table of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserColumn {
    /// The kind of cache that the browser uses.
    pub cache: BrowserCache,
    /// The size of the browser's or the proxy's memory cache in bytes; 0 if the browser chooses it.
    pub memory_bytes: u64,
    /// The size of the browser's disk cache in bytes, if there is one.
    pub disk_bytes: u64,
    /// The name of the storage medium (disk) that holds the browser's disk cache, if there is one.
    pub medium: Option<String>,
}

impl BrowserColumn {
    /// Returns the name of the browser's cache configuration in results, such as `memory:size=32MiB`.
    pub fn label(&self) -> String {
        let (memory, disk) = (ByteSize(self.memory_bytes), ByteSize(self.disk_bytes));
        match self.cache {
            BrowserCache::None => "none".to_owned(),
            BrowserCache::Memory if self.memory_bytes == 0 => "memory".to_owned(),
            BrowserCache::Memory => format!("memory:size={memory}"),
            BrowserCache::Disk => format!("file:size={disk}"),
            BrowserCache::Both => format!("memory+file:size={disk}"),
            BrowserCache::Proxy => format!("proxy:size={memory}"),
        }
    }

    /// The cache as orders name it.
    fn ordered(&self) -> String {
        match self.cache {
            // With the cache switched off a browser asks caches on the way for new responses as well.
            BrowserCache::Proxy => "fresh".to_owned(),
            _ => self.label(),
        }
    }

    fn is_on_disk(&self) -> bool {
        matches!(self.cache, BrowserCache::Disk | BrowserCache::Both)
    }

    /// The most that the cache may hold, where that can be stated.
    fn capacity_bytes(&self) -> Option<u64> {
        match self.cache {
            BrowserCache::None => Some(0),
            BrowserCache::Proxy => Some(self.memory_bytes),
            BrowserCache::Disk => Some(self.disk_bytes),
            BrowserCache::Memory => (self.memory_bytes > 0).then_some(self.memory_bytes),
            // What the process of a page keeps has no size that a switch sets.
            BrowserCache::Both => None,
        }
    }
}

impl fmt::Display for BrowserColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.label())
    }
}

/// A running browser with its cache, the loader that drives it, and any proxy in front of it.
pub struct BrowserProcess {
    /// The loader process that drives the browser.
    pub loader: LoaderProcess,
    /// The proxy, which ends after the browser.
    _proxy: Option<Proxy>,
}

impl BrowserProcess {
    /// Starts a browser in `directory`, with a new cache or with the existing one. Its loader compares the bytes of
    /// bodies if `compares_bodies`, for loads whose time is not measured.
    pub fn start(
        settings: LoaderSettings<'_>,
        server: &SiteServer,
        column: &BrowserColumn,
        directory: &Path,
        (is_kept, compares_bodies): (bool, bool),
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, LoaderError> {
        let largest_body_bytes = column.memory_bytes.max(column.disk_bytes);
        let mut orders = settings.orders(server, column.ordered(), largest_body_bytes, is_kept);
        orders.compares_bodies = compares_bodies;
        let proxy = match column.cache {
            BrowserCache::Proxy => {
                let limit = settings.limit;
                Some(Proxy::start(column.memory_bytes, orders.plain, limit, is_interrupted)?)
            }
            _ => None,
        };
        if let Some(proxy) = &proxy {
            orders.plain = proxy.address;
        }
        let loader = LoaderProcess::with_orders(settings, &orders, directory, is_interrupted)?;
        Ok(Self { loader, _proxy: proxy })
    }
}

/// `haypile proxy` with a cache in memory, in front of one origin. It is killed when this is dropped.
struct Proxy {
    _process: Child,
    address: SocketAddr,
}

impl Proxy {
    fn start(
        size_bytes: u64,
        origin: SocketAddr,
        limit: Duration,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, LoaderError> {
        let failed =
            |error: &dyn fmt::Display| LoaderError::Failed(format!("haypile proxy: {error}"));
        let own = Runner::own().map_err(|error| failed(&error))?;
        let mut command = Command::new(own.program);
        command.args(["proxy", "--listen", "127.0.0.1:0", "--cache"]);
        command.arg(format!("memory:size={size_bytes}"));
        command.args(["--origin", &format!("http://{origin}")]);
        let mut process = Child::spawn_server(command, "haypile proxy")?;
        let deadline = Deadline::after(limit);
        let mut said = String::new();
        loop {
            let line = process.line(deadline, is_interrupted).map_err(|failure| match failure {
                Failure::Failed(text) => failed(&format!("{text}; it said '{said}'")),
                other => other.into(),
            })?;
            if let Some(address) = listening(&line) {
                return Ok(Self { _process: process, address });
            }
            said = line;
        }
    }
}

/// The address in the line by which a proxy says that it listens.
fn listening(line: &str) -> Option<SocketAddr> {
    line.trim().rsplit_once("listening on http://")?.1.parse().ok()
}

/// Checks that a browser loaded all resources of a page, and used no cache if its configuration is `none`; `asked` is
/// the number of requests to the origin for each of the page's resources.
///
/// # Errors
///
/// A response that is not the site's, a resource that the browser requests never or twice, or counts
/// that contradict each other.
pub fn verify_load(
    site: &Site,
    column: &BrowserColumn,
    load: &CountedLoad,
    asked: &[u64],
) -> Result<(), String> {
    let CountedLoad { page, report, .. } = load;
    let (name, loads) = (&site.pages[*page].name, &site.pages[*page].loads);
    let wrong = |text: String| Err(format!("page '{name}': {text}"));
    if let Some(failure) = &report.first_failure {
        return wrong(format!("{} loads failed: {failure}", report.failed));
    }
    if report.wrong > 0 {
        return wrong(format!("{} responses were not those of the site", report.wrong));
    }
    let resource = |at: usize| &site.resources[loads[at].resource];
    let url = |at: usize| &resource(at).url;
    let is_own = column.cache != BrowserCache::Proxy;
    // A proxy asks again for what its cache has evicted while it was read, and a browser, in the background, for what it
    // may serve in the meantime.
    let is_twice = |&at: &usize| asked[at] > 1 && !is_revalidated_later(resource(at));
    if is_own && let Some(at) = (0..asked.len()).find(is_twice) {
        return wrong(format!("the origin was asked {} times for {}", asked[at], url(at)));
    }
    if report.again > 0 {
        return wrong(format!("{} resources were requested twice", report.again));
    }
    if column.cache == BrowserCache::None
        && let Some(at) = asked.iter().position(|&times| times == 0)
    {
        return wrong(format!("without a cache, the origin was not asked for {}", url(at)));
    }
    let (hits, sum, all) = (report.hits, asked.iter().sum::<u64>(), loads.len() as u64);
    let is_exact = !site.resources.iter().any(is_revalidated_later);
    if is_own && (hits + sum < all || is_exact && hits + sum > all) {
        return wrong(format!("{hits} hits and {sum} requests to the origin, of {all} resources"));
    }
    if !is_own && hits > 0 {
        return wrong(format!("{hits} hits in the browser, whose only cache is the proxy's"));
    }
    Ok(())
}

/// Checks that all requests for `https` came over TLS and no others, and in the version of HTTP that was asked for;
/// `asked` has the number of requests to the origin for each load of the page.
///
/// # Errors
///
/// Requests that came by another protocol.
pub fn verify_protocols(
    site: &Site,
    protocol: Protocol,
    load: &CountedLoad,
    asked: &[u64],
) -> Result<(), String> {
    let page = &site.pages[load.page];
    let is_https = |resource: usize| site.resources[resource].is_https();
    let of_https = page.loads.iter().zip(asked).filter(|(load, _)| is_https(load.resource));
    let expected: u64 = of_https.map(|(_, times)| times).sum();
    let (tls, http2) = (load.origin.tls_requests, load.origin.http2_requests);
    if tls != expected {
        return Err(format!(
            "page '{}': {tls} requests came over TLS, and {expected} were for https",
            page.name
        ));
    }
    let expected = if protocol == Protocol::H2 { tls } else { 0 };
    if http2 != expected {
        return Err(format!(
            "page '{}': {http2} of {tls} requests over TLS came over HTTP/2, and not {expected}",
            page.name
        ));
    }
    Ok(())
}

/// Checks that a cache answered some requests on repeat views, if it has room for a whole page, and if these
/// pages have a resource that a cache answers without the origin.
///
/// # Errors
///
/// The number of repeat views, for all of which the origin was asked as without a cache.
pub fn verify_warm(
    site: &Site,
    column: &BrowserColumn,
    loads: &[CountedLoad],
) -> Result<(), String> {
    let heaviest = (0..site.pages.len()).map(|page| site.page_weight_bytes(page)).max();
    let has_room = column.capacity_bytes().is_none_or(|bytes| Some(bytes) >= heaviest);
    if column.cache == BrowserCache::None || !has_room {
        return Ok(());
    }
    let is_repeat = |at: &usize| loads[..*at].iter().any(|other| other.page == loads[*at].page);
    let repeats: Vec<usize> = (0..loads.len()).filter(is_repeat).collect();
    let is_warm = repeats.iter().any(|&at| loads[at].was_asked.contains(&false));
    let has_fresh = |&at: &usize| {
        let of_page = site.pages[loads[at].page].loads.iter();
        of_page.map(|load| &site.resources[load.resource]).any(|resource| {
            let is_small = column.capacity_bytes().is_none_or(|bytes| {
                resource.body_len() + resource.head_bytes() <= bytes / Column::LARGEST_BODIES
            });
            is_small && is_fresh_for_long(resource)
        })
    };
    if is_warm || !repeats.iter().any(has_fresh) {
        return Ok(());
    }
    Err(format!("in {} repeat views the origin was asked for everything", repeats.len()))
}

/// Whether a stored response answers requests for a minute and more, without a question to the origin.
fn is_fresh_for_long(resource: &Resource) -> bool {
    let is_long = |(name, value): (&str, &str)| {
        name.eq_ignore_ascii_case("max-age")
            && value.parse().is_ok_and(|seconds: u64| seconds >= 60)
    };
    resource.is_cacheable()
        && resource.directives().any(is_long)
        && !resource.directives().any(|(name, _)| name.eq_ignore_ascii_case("no-cache"))
        && ["vary", "age"].iter().all(|name| resource.header_values(name).next().is_none())
}

/// Checks that a browser's cache held no more bytes than its size allows, as [`super::verify::size`] does.
///
/// # Errors
///
/// The bytes that came from a cache of fewer.
pub fn verify_size(
    site: &Site,
    column: &BrowserColumn,
    pass: &[CountedLoad],
) -> Result<(), String> {
    match column.capacity_bytes() {
        Some(bytes) => super::verify::size_of(site, bytes, pass),
        None => Ok(()),
    }
}

/// Checks that a browser's cache is in memory or on disk as its configuration says, by a page load in a new process.
///
/// # Errors
///
/// A memory cache that outlives its process, or a disk that has nothing.
pub fn verify_place(
    column: &BrowserColumn,
    last: &CountedLoad,
    after: &CountedLoad,
) -> Result<(), String> {
    let unasked = |load: &CountedLoad| load.was_asked.iter().filter(|asked| !**asked).count();
    let (before, now) = (unasked(last), unasked(after));
    if !column.is_on_disk() && now > 0 {
        return Err(format!("{now} hits in a new process, and the cache is not on disk"));
    }
    if column.is_on_disk() && before > 0 && now == 0 {
        return Err(format!("no hits in a new process, and {before} in the last one"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::orders::LoadReport;
    use crate::site::generate::{Generator, MIN_REQUESTS};
    use crate::site_server::LoadCounts;

    fn column(cache: BrowserCache) -> BrowserColumn {
        BrowserColumn { cache, memory_bytes: 1 << 20, disk_bytes: 1 << 20, medium: None }
    }

    fn site() -> Site {
        generated(false)
    }

    fn generated(is_https: bool) -> Site {
        let generator =
            Generator { seed: 1, pages: 1, requests: MIN_REQUESTS, page_bytes: 20_000, is_https };
        generator.generate(UNIX_EPOCH).unwrap()
    }

    /// A load of the page with this number of hits, the others asked for once.
    fn load(site: &Site, hits: usize) -> (CountedLoad, Vec<u64>) {
        let all = site.pages[0].loads.len();
        let asked: Vec<u64> = (0..all).map(|at| u64::from(at >= hits)).collect();
        let report = LoadReport { requests: all as u64, hits: hits as u64, ..Default::default() };
        let was_asked = asked.iter().map(|&times| times > 0).collect();
        (CountedLoad { page: 0, report, origin: LoadCounts::default(), was_asked }, asked)
    }

    #[test]
    fn caches_that_did_not_do_what_they_are_for_are_noticed() {
        let site = site();
        let verify = |cache, hits| {
            let (load, asked) = load(&site, hits);
            verify_load(&site, &column(cache), &load, &asked)
        };
        for cache in [BrowserCache::Memory, BrowserCache::Disk, BrowserCache::Both] {
            assert_eq!(verify(cache, 0), Ok(()));
            assert_eq!(verify(cache, 3), Ok(()));
        }
        assert_eq!(verify(BrowserCache::None, 0), Ok(()));
        assert!(verify(BrowserCache::None, 1).unwrap_err().contains("was not asked for"));
        assert!(verify(BrowserCache::Proxy, 1).unwrap_err().contains("only cache is the proxy's"));
        let (mut twice, mut asked) = load(&site, 2);
        asked[5] = 2;
        let disk = column(BrowserCache::Disk);
        assert!(verify_load(&site, &disk, &twice, &asked).unwrap_err().contains("asked 2 times"));
        asked[5] = 1;
        twice.report.hits = 3;
        let error = verify_load(&site, &disk, &twice, &asked).unwrap_err();
        assert!(error.contains("3 hits and 6 requests"), "{error}");
        // One of the hits is also revalidated in the background.
        let mut later = site.clone();
        let stale = ("cache-control".to_owned(), "max-age=0, stale-while-revalidate=60".to_owned());
        later.resources[0].headers.push(stale);
        assert_eq!(verify_load(&later, &disk, &twice, &asked), Ok(()));
        twice.report.hits = 1;
        assert!(verify_load(&later, &disk, &twice, &asked).is_err(), "one resource is missing");
    }

    #[test]
    fn requests_by_another_protocol_than_their_url_has_are_noticed() {
        let (plain, https) = (site(), generated(true));
        let verify = |site: &Site, protocol, tls_requests, http2_requests| {
            let (mut load, asked) = load(site, 3);
            load.origin = LoadCounts { tls_requests, http2_requests, ..LoadCounts::default() };
            verify_protocols(site, protocol, &load, &asked)
        };
        let asked = u64::from(MIN_REQUESTS) - 3;
        assert_eq!(verify(&plain, Protocol::H1, 0, 0), Ok(()));
        assert_eq!(verify(&plain, Protocol::H2, 0, 0), Ok(()));
        assert_eq!(verify(&https, Protocol::H1, asked, 0), Ok(()));
        assert_eq!(verify(&https, Protocol::H2, asked, asked), Ok(()));
        for (site, protocol, tls, http2) in [
            (&plain, Protocol::H1, 1, 0),
            (&https, Protocol::H1, 0, 0),
            (&https, Protocol::H1, asked, asked),
            (&https, Protocol::H2, asked, asked - 1),
        ] {
            assert!(verify(site, protocol, tls, http2).is_err(), "{tls} {http2}");
        }
    }

    #[test]
    fn repeat_views_and_new_processes_show_where_a_cache_is() {
        let site = site();
        let (cold, warm) = (load(&site, 0).0, load(&site, 4).0);
        let (memory, disk) = (column(BrowserCache::Memory), column(BrowserCache::Disk));
        let (twice_cold, repeated) = ([cold.clone(), cold.clone()], [cold.clone(), warm.clone()]);
        for column in [&memory, &disk, &column(BrowserCache::Proxy)] {
            assert!(verify_warm(&site, column, &twice_cold).is_err(), "{column}");
            assert_eq!(verify_warm(&site, column, &repeated), Ok(()), "{column}");
        }
        assert_eq!(verify_warm(&site, &column(BrowserCache::None), &twice_cold), Ok(()));
        // A site all of whose resources the origin has to confirm is never answered without it.
        let mut confirmed = site.clone();
        for resource in &mut confirmed.resources {
            resource.headers =
                vec![("cache-control".to_owned(), "no-cache, max-age=3600".to_owned())];
        }
        assert_eq!(verify_warm(&confirmed, &memory, &twice_cold), Ok(()));
        confirmed.resources[1].headers[0].1 = "max-age=3600".to_owned();
        assert!(verify_warm(&confirmed, &memory, &twice_cold).is_err());
        assert_eq!(verify_place(&disk, &warm, &warm), Ok(()));
        assert!(verify_place(&disk, &warm, &cold).is_err());
        assert_eq!(verify_place(&memory, &warm, &cold), Ok(()));
        assert!(verify_place(&memory, &warm, &warm).is_err());
    }

    #[test]
    fn a_cache_in_memory_has_the_size_that_was_set_or_none() {
        let memory = |memory_bytes| BrowserColumn { memory_bytes, ..column(BrowserCache::Memory) };
        assert_eq!((memory(0).label(), memory(0).capacity_bytes()), ("memory".to_owned(), None));
        assert_eq!(memory(50 << 20).label(), "memory:size=50MiB");
        assert_eq!(memory(50 << 20).capacity_bytes(), Some(50 << 20));
        // What came from the cache at once was all in it.
        let (site, all) = (site(), load(&site(), MIN_REQUESTS as usize).0);
        let small = memory(10_000);
        let error = verify_size(&site, &small, std::slice::from_ref(&all)).unwrap_err();
        assert!(error.ends_with("came from a cache of 10000"), "{error}");
        assert_eq!(verify_size(&site, &memory(0), &[all]), Ok(()));
    }

    #[test]
    fn a_missing_browser_is_named_with_its_package() {
        let of = |named| how_to_get(named, "there is none");
        assert_eq!(
            of(FIREFOX),
            "firefox does not run here (there is none); run: apt-get install firefox-esr"
        );
        assert!(of(CHROMIUM).contains("apt-get install chromium"));
        assert_eq!(of("./mine"), "./mine does not run here (there is none)");
    }

    #[test]
    fn lists_are_loaded_by_requests_of_firefox_and_not_by_chromium() {
        let error = Browser::find_for_lists(CHROMIUM).unwrap_err().to_string();
        assert!(error.contains("--browser firefox"), "{error}");
        let runner = firefox(LISTS_LOADER, NECKO).unwrap();
        assert_eq!(runner.label, NECKO);
        assert!(
            runner
                .arguments
                .iter()
                .any(|argument| argument.to_string_lossy().ends_with("/lists.py"))
        );
    }

    #[test]
    fn the_address_of_a_proxy_is_in_what_it_says() {
        let address = listening("haypile: listening on http://127.0.0.1:39301\n");
        assert_eq!(address, Some("127.0.0.1:39301".parse().unwrap()));
        assert_eq!(listening("haypile: it cannot listen"), None);
    }
}
