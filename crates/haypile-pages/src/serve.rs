//! The loader's side of the protocol: reads orders, and reports on each.

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};
use haypile_measure::meter::{Meter, SystemMeter};
use haypile_measure::subject::{Found, Room, StoreSubject, complete};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Builder;

use super::loader::{Hosts, Loader};
use super::orders::{FlushReport, Order, PageOrders};
use super::wire::WireNames;
use crate::site::Site;

/// The longest line of an order, in bytes.
const MAX_LINE_BYTES: u64 = 64 << 10;
/// The largest file of a site, in bytes.
const MAX_SITE_BYTES: u64 = 1 << 30;
/// The size of a cache that states none.
const CAPACITY_BYTES: u64 = 64 << 20;

/// Runs a page loader: obeys the orders in the lines of `input`, such as to load a page, and writes
/// a line to `output` for each, until the end of `input`.
///
/// # Errors
///
/// Orders that cannot be followed, and a cache that cannot be opened or closed.
pub fn serve(input: &mut dyn BufRead, output: &mut dyn Write) -> anyhow::Result<()> {
    let first = line(input)?.context("no orders have come")?;
    let orders: PageOrders = serde_json::from_str(&first).context("these are not orders")?;
    let site: Site = read(&orders.site)?;
    site.validate().with_context(|| orders.site.display().to_string())?;
    let checksums: Vec<u64> = read(&orders.checksums)?;
    if checksums.len() != site.resources.len() {
        bail!(
            "the file of checksums {} does not have one for each resource of the site",
            orders.checksums.display()
        );
    }
    let directory = env::current_dir().context("there is no working directory")?;
    let found = if orders.is_kept { Found::Cache } else { Found::Nothing };
    let room = Room { found, ..Room::new(CAPACITY_BYTES, 1 << 16) };
    let spec = orders.cache.parse().map_err(anyhow::Error::msg)?;
    let url = complete(&spec, &room, &directory)?;
    let subject = StoreSubject::open(&url, &room, &directory).map_err(anyhow::Error::from_boxed)?;
    let cache = subject.cache().clone();
    let addresses = (orders.plain, orders.tls);
    let names = WireNames::of(&site);
    let connections = (orders.protocol, orders.connections);
    let hosts = Hosts::new(addresses, names, connections, orders.no_vary_search);
    let loader = Loader::new(
        &site,
        &checksums,
        cache.clone(),
        (orders.is_partitioned, orders.largest_body_bytes),
        hosts,
    );
    let runtime = Builder::new_current_thread().enable_all().build()?;
    say(output, &"ready")?;
    while let Some(order) = line(input)? {
        let order = serde_json::from_str(&order).with_context(|| format!("unknown '{order}'"))?;
        match order {
            Order::Load(page) if page >= site.pages.len() => {
                bail!("the site has no page with the number {page}; its pages are numbered from 0")
            }
            Order::Load(page) => {
                let cpu_ns = SystemMeter.cpu_ns();
                let mut report = runtime.block_on(loader.load(page));
                report.cpu_ns = SystemMeter.cpu_ns() - cpu_ns;
                say(output, &report)?;
            }
            Order::Remains => {
                bail!(
                    "this loader cannot report what a killed process left of its cache; only the \
                     loader of a browser can"
                )
            }
            Order::Flush => {
                let begin = Instant::now();
                subject.flush_last_level()?;
                let wall_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
                say(output, &FlushReport { wall_ns })?;
            }
        }
    }
    cache.store().close()?;
    Ok(())
}

/// Reads a line; `None` at the end.
fn line(input: &mut dyn BufRead) -> anyhow::Result<Option<String>> {
    let mut line = String::new();
    input.take(MAX_LINE_BYTES).read_line(&mut line).context("orders cannot be read")?;
    if line.len() as u64 == MAX_LINE_BYTES {
        bail!("an order to the page loader is longer than {MAX_LINE_BYTES} bytes, the limit");
    }
    Ok((!line.is_empty()).then(|| line.trim_end().to_owned()))
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let file = BufReader::new(file.take(MAX_SITE_BYTES));
    serde_json::from_reader(file).with_context(|| path.display().to_string())
}

fn say<T: Serialize>(output: &mut dyn Write, said: &T) -> anyhow::Result<()> {
    let mut text = serde_json::to_string(said)?;
    text.push('\n');
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).context("nobody listens")
}
