//! The results of `pages` for people.

use haypile::ByteSize;
use haypile_measure::result::Sample;
use haypile_number::{Quantity, grouped};

use super::advice::advice;
use super::tp4m::{self, Tp4mTable};
use super::{killed, left, queries, source};
use crate::experiment::Printout;
use crate::experiment::on_pages::improvement::{
    ColumnLoads, ColumnName, LinkLoads, UNSHAPED, View, links, noticed,
};
use crate::report::table::NOTHING;

/// Returns the tables of the experiment `pages`: the load time that caches save over each network
/// link, the times behind it, advice on sizes, and the entries that survived kills.
pub(crate) fn printout(samples: &[Sample], memory_bytes: u64, is_advised: bool) -> Printout {
    let links = links(samples);
    let counted = links.iter().find(|link| link.link == UNSHAPED);
    let mut printout = Printout::default();
    for link in noticed(&links) {
        printout.gap().append(matrix(link, counted));
    }
    let is_generated = links.iter().any(LinkLoads::is_generated);
    for link in noticed(&links) {
        let rows = queries::rows(link, counted);
        if !rows.is_empty() {
            let header = queries::COLUMNS.map(str::to_owned).to_vec();
            printout.gap().text(format!("{}\n", queries::title(link))).table(header, 1, 1, rows);
        }
    }
    if !links.is_empty() {
        printout.gap().append(explanation(memory_bytes));
    }
    if is_generated {
        printout.gap().append(of_source(samples));
    }
    let shaped: Vec<&LinkLoads> = links.iter().filter(|link| link.link != UNSHAPED).collect();
    if !shaped.is_empty() {
        printout.gap().append(times(&shaped, counted));
    }
    for link in noticed(&links).filter(|link| link.is_generated()) {
        printout.append(round_2(link, counted));
    }
    if let Some(counted) = counted {
        printout.gap().append(requests(counted));
    }
    if is_advised {
        printout.gap().append(advised(&links, counted));
    }
    if killed(samples).next().is_some() {
        printout.gap().append(kills(samples));
    }
    printout
}

/// The improvements that a link shows, by size, next to those of the source.
fn matrix(link: &LinkLoads, counted: Option<&LinkLoads>) -> Printout {
    let mut printout = Printout::default();
    let names: Vec<&ColumnName> =
        counted.unwrap_or(link).columns.iter().map(|(name, _)| name).collect();
    let mut media: Vec<&str> =
        names.iter().filter(|name| name.disk_bytes > 0).map(|name| name.medium.as_str()).collect();
    media.sort_unstable();
    media.dedup();
    printout.text(format!(
        "{}, {}: improvement from enabling the disk cache (less load time, 95 % interval)\n",
        link.site, link.link
    ));
    for medium in media {
        let mut sizes: Vec<u64> = names
            .iter()
            .filter(|name| name.disk_bytes > 0 && name.medium == medium)
            .map(|name| name.disk_bytes)
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut header =
            vec![if medium.is_empty() { "Cache" } else { medium }.to_owned(), "Visits".to_owned()];
        header.extend(sizes.iter().map(|size| ByteSize(*size).to_string()));
        let find = |kind: &str, size: u64| {
            let name = names.iter().find(|name| {
                (name.kind, name.disk_bytes, name.medium.as_str()) == (kind, size, medium)
            })?;
            link.or_equal(name, counted)
        };
        let mut rows = Vec::new();
        for (label, kind, baseline) in [
            ("Disk Cache Only", "disk", "none"),
            ("Both Caches", "both", "memory"),
            // As the source's browser had it: what is on disk was not written to memory.
            ("Both, memory unused", "disk", "memory"),
        ] {
            for view in View::ALL {
                let cell = |size: &u64| cell(link.baseline(baseline), find(kind, *size), view);
                let mut row = vec![label.to_owned(), view.to_string()];
                row.extend(sizes.iter().map(cell));
                rows.push(row);
            }
        }
        printout.table(header, 2, 2, rows);
    }
    if let Some(waits) = link.waits() {
        printout.text(format!("{waits}.\n"));
    }
    printout
}

/// The meaning of the rows.
fn explanation(memory_bytes: u64) -> Printout {
    let mut printout = Printout::default();
    printout.text(format!(
        "An improvement is 1 - (sum of times with the cache) / (sum of times without it), over the same visits\n\
         to the same pages. Its interval is of these pages, over blocks (--blocks, from two on); 'like these' is that\n\
         of pages like these, from 20 pages on. Disk Cache Only: over no cache. Both Caches:\n\
         over the memory cache alone ({}). Both, memory unused: the disk cache over the memory cache, for in\n\
         the source's browser what was on disk was not written to memory. '=' marks a column that asked the\n\
         origin for the same as a smaller one, and went over the link once. Unshaped, a load takes what the\n\
         machine takes, without a network.\n",
        ByteSize(memory_bytes)
    ));
    printout
}

/// The table of the source, with today's caches in it.
fn of_source(samples: &[Sample]) -> Printout {
    let mut printout = Printout::default();
    for Tp4mTable { site, link, header, rows } in tp4m::tables(samples) {
        printout.text(format!("Tp4m, {site} over {link}: less load time of all visits\n"));
        printout.table(header, 2, 2, rows);
    }
    printout.text("* The source takes this number for an error of its own.\n");
    printout
}

/// Returns the share of the load time that one cache configuration saves compared with another, as
/// the text of a table's cell.
pub(super) fn cell(
    baseline: Option<&ColumnLoads>,
    found: Option<(&ColumnLoads, Option<&ColumnName>)>,
    view: View,
) -> String {
    let (Some(baseline), Some((loads, equal))) = (baseline, found) else {
        return NOTHING.to_owned();
    };
    if loads.error.is_some() || baseline.error.is_some() {
        return "error".to_owned();
    }
    let mark = if equal.is_some() { "= " } else { "" };
    let saved = loads.saved(baseline, view);
    saved.map_or_else(|| NOTHING.to_owned(), |saved| format!("{mark}{saved}"))
}

/// The source's second round, in which the memory cache was off, where its sizes were measured.
fn round_2(link: &LinkLoads, counted: Option<&LinkLoads>) -> Printout {
    let mut printout = Printout::default();
    let names = counted.unwrap_or(link).columns.iter().map(|(name, _)| name);
    let disks: Vec<&ColumnName> = names.filter(|name| name.kind == "disk").collect();
    let mut rows = Vec::new();
    for (size, improvements) in source::ROUND_2 {
        for name in disks.iter().filter(|name| name.disk_bytes == size) {
            let own = cell(link.baseline("none"), link.or_equal(name, counted), View::All);
            let mut row = vec![name.to_string(), own];
            row.extend(improvements.map(str::to_owned));
            rows.push(row);
        }
    }
    if !rows.is_empty() {
        let mut header = vec![format!("Round 2, memory off: {}", link.link), "here".to_owned()];
        header.extend(source::ROUND_2_DEVICES.map(str::to_owned));
        printout.gap().table(header, 1, 1, rows);
    }
    printout
}

/// The mean load times of each column over each link.
fn times(links: &[&LinkLoads], counted: Option<&LinkLoads>) -> Printout {
    let columns = &counted.unwrap_or(links[0]).columns;
    let views = [View::First, View::Repeat];
    let row = |(name, _): &(ColumnName, ColumnLoads)| {
        let of_link = |link: &&LinkLoads| {
            let own = link.or_equal(name, counted);
            views.map(|view| own.map_or_else(|| NOTHING.to_owned(), |(loads, _)| loads.mean(view)))
        };
        [name.to_string()].into_iter().chain(links.iter().flat_map(of_link)).collect()
    };
    let name = |link: &&LinkLoads| views.map(|view| format!("{}, {view}", link.link));
    let header = ["Column".to_owned()].into_iter().chain(links.iter().flat_map(name));
    let mut printout = Printout::default();
    printout.text("Mean time of a load\n").table(header, 1, 1, columns.iter().map(row).collect());
    printout
}

/// Returns the table of requests that reached the origin with each cache configuration, and the
/// errors of these loads.
pub(super) fn requests(counted: &LinkLoads) -> Printout {
    let mut printout = Printout::default();
    printout.text("Counted by the origin, over no link\n");
    let row = |(name, loads): &(ColumnName, ColumnLoads)| {
        vec![
            name.to_string(),
            grouped(loads.count("origin_requests")),
            grouped(loads.count("origin_not_modified")),
            Quantity::Bytes.write(loads.count("origin_body_bytes") as f64),
            grouped(loads.count("hits")),
            grouped(loads.count("hits_memory")),
            grouped(loads.count("hits_file")),
            loads.mean(View::First),
            loads.mean(View::Repeat),
        ]
    };
    let good = counted.columns.iter().filter(|(_, loads)| loads.error.is_none());
    let header = [
        "Column",
        "Requests",
        "304",
        "From the origin",
        "Hits",
        "in memory",
        "on disk",
        "First view",
        "Repeat view",
    ];
    printout.table(header, 1, 1, good.map(row).collect());
    for (name, loads) in counted.columns.iter().chain(&counted.without_no_vary_search) {
        if let Some(error) = &loads.error {
            printout.text(format!("error: {name}: {error}\n"));
        }
    }
    printout
}

fn advised(links: &[LinkLoads], counted: Option<&LinkLoads>) -> Printout {
    let mut printout = Printout::default();
    for link in links {
        for found in advice(link, counted) {
            let on = if found.medium.is_empty() {
                String::new()
            } else {
                format!(" on {}", found.medium)
            };
            printout.text(format!(
                "{}{on}: take {}, the smallest within 2 % of the best ({}; {:+.1} %)\n",
                link.link,
                ByteSize(found.smallest.disk_bytes),
                ByteSize(found.best.disk_bytes),
                found.slower * 100.0
            ));
        }
    }
    printout
}

/// The remains of caches whose process was killed.
fn kills(samples: &[Sample]) -> Printout {
    let mut printout = Printout::default();
    printout.text(format!("{}\n", left::CAPTION));
    printout.table(left::COLUMNS, 2, 2, left::rows(samples));
    for sample in killed(samples).filter(|sample| sample.error.is_some()).take(3) {
        printout.text(format!("error: {}\n", sample.error.as_deref().unwrap_or_default()));
    }
    printout
}
