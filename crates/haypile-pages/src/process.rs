//! The process of a loader, as this process sees it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use haypile_measure::measure::{Child, Deadline, Failure, Runner};
use serde::de::DeserializeOwned;

use super::column::Column;
use super::orders::{
    FlushReport, LoadReport, NoVarySearch, Order, PageOrders, Protocol, RemainsReport,
};
use super::site_server::{LoadCounts, SiteServer};

/// A running process of a page loader, with its open HTTP cache.
pub struct LoaderProcess {
    child: Child,
    limit: Duration,
}

/// The reason why a page loader sent no report.
#[derive(Debug, thiserror::Error)]
pub enum LoaderError {
    /// The user has asked to stop.
    #[error("loading the page was interrupted")]
    Interrupted,
    /// Another failure, in words.
    #[error("{0}")]
    Failed(String),
}

impl From<Failure> for LoaderError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Interrupted => Self::Interrupted,
            Failure::Late(text) | Failure::Failed(text) => Self::Failed(text),
        }
    }
}

impl From<LoaderError> for Failure {
    fn from(error: LoaderError) -> Self {
        match error {
            LoaderError::Interrupted => Self::Interrupted,
            LoaderError::Failed(text) => Self::Failed(text),
        }
    }
}

/// The settings that all page loaders of a run share.
#[derive(Clone, Copy)]
pub struct LoaderSettings<'a> {
    /// The program of the page loaders, which reads orders (such as to load a page) on its standard
    /// input.
    pub runner: &'a Runner,
    /// The version of HTTP between the loaders and the origin.
    pub protocol: Protocol,
    /// The largest number of connections that a loader opens to a host.
    pub connections: usize,
    /// Whether the HTTP cache is partitioned by the site of the page, as in browsers.
    pub is_partitioned: bool,
    /// The longest time that loading a page may take.
    pub limit: Duration,
}

impl LoaderSettings<'_> {
    /// Returns the settings, for a page loader process, of loading pages from the site's server
    /// with a cache of this configuration.
    pub(super) fn orders(
        &self,
        server: &SiteServer,
        cache: String,
        largest_body_bytes: u64,
        is_kept: bool,
    ) -> PageOrders {
        let (plain, tls) = server.addresses();
        PageOrders {
            site: server.site_file(),
            checksums: server.checksums_file(),
            crc32: server.crc32_file(),
            compares_bodies: false,
            cache,
            largest_body_bytes,
            no_vary_search: NoVarySearch::Heeded,
            is_kept,
            plain,
            tls,
            protocol: self.protocol,
            https: server.https().cloned(),
            connections: self.connections,
            is_partitioned: self.is_partitioned,
        }
    }
}

impl LoaderProcess {
    /// Starts a page loader in `directory`, with a new HTTP cache, or with the file that another
    /// loader has left there.
    pub fn start(
        settings: LoaderSettings<'_>,
        server: &SiteServer,
        column: &Column,
        directory: &Path,
        is_kept: bool,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, LoaderError> {
        let orders = settings.orders(server, column.cache(), column.largest_body_bytes(), is_kept);
        let orders = PageOrders { no_vary_search: column.no_vary_search, ..orders };
        Self::with_orders(settings, &orders, directory, is_interrupted)
    }

    /// Starts a page loader in `directory`, and sends it these settings.
    pub(super) fn with_orders(
        settings: LoaderSettings<'_>,
        orders: &PageOrders,
        directory: &Path,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, LoaderError> {
        let failed = |error: std::io::Error| {
            LoaderError::Failed(format!("{}: {error}", directory.display()))
        };
        fs::create_dir_all(directory).map_err(failed)?;
        let mut command: Command = settings.runner.command("run-pages");
        command.current_dir(directory);
        let child = Child::spawn(command, &settings.runner.label)?;
        let mut loader = Self { child, limit: settings.limit };
        let said: String = loader.ask(orders, is_interrupted)?;
        if said != "ready" {
            return Err(LoaderError::Failed(format!("the loader said '{said}', and not 'ready'")));
        }
        Ok(loader)
    }

    /// Orders the loader process to load the page with this index, and returns its report with the
    /// counts of the requests that reached the server.
    pub fn load(
        &mut self,
        page: usize,
        server: &SiteServer,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(LoadReport, LoadCounts), LoaderError> {
        let before = server.counts();
        let report = self.ask(&Order::Load(page), is_interrupted)?;
        Ok((report, (server.counts() - before).into()))
    }

    /// Orders the loader process to load the page with this index, without waiting for its report.
    pub fn begin_load(&mut self, page: usize) {
        self.say(&Order::Load(page));
    }

    /// Waits for the loader's report on a page load in progress, up to a time limit; `None` if the
    /// report does not come.
    pub fn report_within(
        &mut self,
        limit: Duration,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<LoadReport>, LoaderError> {
        match self.child.line(Deadline::after(limit), is_interrupted) {
            Ok(line) => parse(&line).map(Some),
            Err(Failure::Late(_)) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Orders the loader to write its HTTP cache to disk; returns the time that this took.
    pub fn flush(&mut self, is_interrupted: &dyn Fn() -> bool) -> Result<Duration, LoaderError> {
        let report: FlushReport = self.ask(&Order::Flush, is_interrupted)?;
        Ok(Duration::from_nanos(report.wall_ns))
    }

    /// Asks a browser's loader for the state of the disk cache that the browser found when it
    /// started.
    pub fn remains(
        &mut self,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<RemainsReport, LoaderError> {
        self.ask(&Order::Remains, is_interrupted)
    }

    /// Orders the loader to close its HTTP cache, and waits for the end of its process.
    pub fn end(mut self, is_interrupted: &dyn Fn() -> bool) -> Result<(), LoaderError> {
        Ok(self.child.finish(Deadline::after(self.limit), is_interrupted)?)
    }

    /// Kills the loader process at once.
    pub fn kill(self) {
        drop(self.child);
    }

    fn say(&mut self, order: &impl serde::Serialize) {
        let mut text = serde_json::to_string(order).expect("orders are texts and numbers");
        text.push('\n');
        self.child.say(&text);
    }

    fn ask<T: DeserializeOwned>(
        &mut self,
        order: &impl serde::Serialize,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<T, LoaderError> {
        self.say(order);
        let line = self.child.line(Deadline::after(self.limit), is_interrupted)?;
        parse(&line)
    }
}

fn parse<T: DeserializeOwned>(line: &str) -> Result<T, LoaderError> {
    serde_json::from_str(line).map_err(|error| {
        let shown: String = line.chars().take(80).collect();
        LoaderError::Failed(format!("the loader said '{}': {error}", shown.escape_debug()))
    })
}
