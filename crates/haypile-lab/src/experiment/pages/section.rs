//! The section of `pages` in the report.

use haypile::ByteSize;
use haypile_measure::figure::Estimate;
use haypile_measure::result::Samples;
use haypile_number::{NBSP, Quantity};
use haypile_plot::Unit;
use haypile_plot::drawing::text::printable;

use super::browser;
use super::left;
use super::queries;
use super::tp4m::{self, Tp4mTable};
use crate::experiment::on_pages::improvement::{
    ColumnLoads, ColumnName, LinkLoads, UNSHAPED, View, links, links_of, loaders, noticed,
};
use crate::experiment::on_pages::saved::Saved;
use crate::report::body::curves::{Over, picture};
use crate::report::body::details;
use crate::report::body::figures::of_columns;
use crate::report::case::{Case, varying};
use crate::report::chart::{Bar, Picture, Series};
use crate::report::number::list;
use crate::report::section::Body;
use crate::report::table::{NOTHING, Table};

/// The size of the disk cache, along which lines go.
const SIZE: Over =
    Over { parameter: "disk_bytes", label: "size of the disk cache", unit: Unit::Bytes };

pub(super) fn body(samples: &Samples<'_>, cases: &[Case<'_>]) -> Body {
    let links = links(samples.iter().copied());
    let counted = |site: &str| links.iter().find(|link| link.link == UNSHAPED && link.site == site);
    let mut body = Body { answer: answer(&links), ..Body::default() };
    for link in noticed(&links) {
        let counted = counted(&link.site);
        let (figure, left_out) = saved(link, counted);
        body.figures.extend(figure);
        body.left_out.extend(left_out);
        body.figures.extend(times(link, counted));
        body.tables.push(matrix(link, counted));
        let rows = queries::rows(link, counted);
        if !rows.is_empty() {
            body.tables.push(Table::of_numbers(queries::title(link), &queries::COLUMNS, rows));
        }
        body.notes.extend(link.waits().map(|waits| format!("{waits}.")));
    }
    for browser in browsers(samples) {
        body.tables.extend(browser_tables(browser, samples));
    }
    body.tables.extend(of_source(samples));
    body.tables.extend(of_kills(samples));
    body.notes.push(
        "Less time is 1 − (sum of times with the cache) / (sum of times without it), over the same visits to \
         the same pages: disk alone over no cache, both over memory alone. Its 95 % interval is of these pages, over \
         blocks, from two on; “like these” is that of pages like these, from 20 pages on. \
         “=” marks a column that asked the origin for the same as a \
         smaller one, and went over the link once."
            .to_owned(),
    );
    // A case is a single load of a page: its effect says nothing of the cache.
    details::notes(&mut body, cases, &varying(cases));
    body
}

/// The browsers whose own caches were measured, by their names.
fn browsers<'a>(samples: &Samples<'a>) -> Vec<&'a str> {
    loaders(samples).into_iter().filter(|name| *name != "http").collect()
}

/// A browser's matrix over each link.
fn browser_tables(browser: &str, samples: &Samples<'_>) -> Vec<Table> {
    let links = links_of(browser, samples.iter().copied());
    let counted = |site: &str| links.iter().find(|link| link.link == UNSHAPED && link.site == site);
    let table = |link: &LinkLoads| {
        let caption = format!(
            "The caches of {}: {} over {}, less load time with 95 % intervals",
            printable(browser),
            printable(&link.site),
            printable(&link.link)
        );
        let rows = browser::rows(link, counted(&link.site));
        Table::of_numbers(caption, &browser::COLUMNS, rows).with_text_in(&[1])
    };
    links.iter().map(table).collect()
}

/// The largest improvement of disk alone over each link.
fn answer(links: &[LinkLoads]) -> String {
    let of_link = |link: &LinkLoads| {
        let none = link.baseline("none")?;
        let disks = link
            .columns
            .iter()
            .filter(|(name, loads)| name.kind == "disk" && loads.error.is_none());
        let all =
            disks.filter_map(|(name, loads)| Some((name, loads, loads.saved(none, View::All)?)));
        let part = |saved: &Saved| saved.estimate().value;
        let (name, loads, best) =
            all.max_by(|(.., one), (.., other)| part(one).total_cmp(&part(other)))?;
        let (link, size) = (&link.link, ByteSize(name.disk_bytes));
        let parts: Vec<String> = [View::First, View::Repeat]
            .into_iter()
            .filter_map(|view| Some(format!("{} of {view} views", loads.saved(none, view)?)))
            .collect();
        let saved = format!("{best} of the load time of all visits, {}", list(&parts));
        Some(if best.may_be_nothing() {
            format!(
                "over {link} no disk cache is shown to save time: the best, of {size}, saves {saved}"
            )
        } else {
            format!("over {link} a disk cache of {size} saves {saved}")
        })
    };
    let found: Vec<String> = noticed(links).filter_map(of_link).collect();
    match found.as_slice() {
        [] => "No cache on disk was measured.".to_owned(),
        found => {
            let mut text = found.join("; ");
            if let Some(first) = text.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            format!("{text}.")
        }
    }
}

/// Mean time of a load by the size of the disk cache.
fn times(link: &LinkLoads, counted: Option<&LinkLoads>) -> Option<Picture> {
    let names: Vec<&ColumnName> =
        counted.unwrap_or(link).columns.iter().map(|(name, _)| name).collect();
    let mut series: Vec<Series> = Vec::new();
    for kind in ["disk", "both"] {
        for view in [View::First, View::Repeat] {
            let point = |name: &&ColumnName| {
                let (loads, _) = link.or_equal(name, counted)?;
                let mean_ns = loads.mean_ns(view).filter(|_| name.kind == kind)?;
                Some((name.disk_bytes, Estimate::exact(mean_ns)))
            };
            let points: Vec<_> = names.iter().filter_map(point).collect();
            if points.len() > 1 {
                let place = series.len();
                let name = format!("{kind}, {view}");
                series.push(Series { name, points, knows_future: false, place });
            }
        }
    }
    let title = format!("Load time over {}", link.link);
    picture(title, SIZE, ("mean time of a load", Quantity::Time), series, Vec::new()).0
}

/// Returns a chart of the part of the load time that each cache saves over none.
fn saved(link: &LinkLoads, counted: Option<&LinkLoads>) -> (Option<Picture>, Option<String>) {
    let Some(none) = link.baseline("none") else { return (None, None) };
    let views = [View::First, View::Repeat];
    let bar = |(name, _): &(ColumnName, ColumnLoads)| {
        let (loads, _) = link.or_equal(name, counted).filter(|_| name.kind != "none")?;
        let value = |view| loads.saved(none, view).map(|saved| saved.estimate());
        Some(Bar::new(name.to_string(), views.map(value).to_vec()))
    };
    let columns = &counted.unwrap_or(link).columns;
    let bars: Vec<Bar> = columns.iter().filter_map(bar).collect();
    let measures = views.map(|view| format!("{view} views")).to_vec();
    let title = format!("Less load time over {}, {}", link.link, link.site);
    of_columns(title, Quantity::Share, measures, bars)
}

fn matrix(link: &LinkLoads, counted: Option<&LinkLoads>) -> Table {
    let columns = &counted.unwrap_or(link).columns;
    let row = |(name, _): &(ColumnName, ColumnLoads)| {
        let Some((loads, equal)) = link.or_equal(name, counted) else {
            return vec![name.to_string(); 1]
                .into_iter()
                .chain(std::iter::repeat_n(NOTHING.to_owned(), 6))
                .collect();
        };
        let over = |baseline: &str, view| {
            let saved = link.baseline(baseline).and_then(|from| loads.saved(from, view));
            saved.map_or_else(|| NOTHING.to_owned(), |saved| saved.to_string())
        };
        let baseline = match name.kind {
            "none" => None,
            "both" => Some("memory"),
            _ => Some("none"),
        };
        let improvement =
            |view| baseline.map_or_else(|| NOTHING.to_owned(), |baseline| over(baseline, view));
        let mark = if equal.is_some() { "= " } else { "" };
        vec![
            format!("{mark}{name}"),
            loads.mean(View::First),
            loads.mean(View::Repeat),
            improvement(View::First),
            improvement(View::Repeat),
            improvement(View::All),
            Quantity::Bytes.write(loads.count("origin_body_bytes") as f64),
        ]
    };
    let names = [
        "Column",
        "First view",
        "Repeat view",
        "Less time, first",
        "repeat",
        "all visits",
        "From the origin",
    ];
    let caption = format!(
        "{} over {}: mean time of a load, and how much less that is in sum",
        link.site, link.link
    );
    Table::of_numbers(caption, &names, columns.iter().map(row).collect())
}

/// Returns the table of the source over each link, with today's caches in it: one row for each size and device, because a
/// page is not as wide as all of them.
fn of_source(samples: &Samples<'_>) -> Vec<Table> {
    let of_link = |table: Tp4mTable| {
        let caption = format!(
            "Less load time of all visits by a disk cache: {} over {}, and the source’s devices, with disk caches of \
             100{NBSP}MB and 1{NBSP}GB; it takes the number with the asterisk for an error of its own",
            printable(&table.site),
            printable(&table.link)
        );
        let names = ["Browser", "Disk cache", "Disk alone, over none", "Both, over memory"];
        Table::of_numbers(caption, &names, table.by_column()).with_text_in(&[1])
    };
    tp4m::tables(samples.iter().copied()).into_iter().map(of_link).collect()
}

/// Returns the table of killed caches, if any was killed.
fn of_kills(samples: &Samples<'_>) -> Option<Table> {
    let rows = left::rows(samples.iter().copied());
    let table = |rows| Table::of_numbers(left::CAPTION.to_owned(), &left::COLUMNS, rows);
    (!rows.is_empty()).then(|| table(rows).with_text_in(&[1, 6]))
}

#[cfg(test)]
mod tests {
    use haypile_measure::result::Sample;
    use serde_json::json;

    use super::*;

    /// Two visits to each of eight pages in each of two blocks, without a cache and with one on disk, which takes a
    /// number of thousandths of the time of a page.
    fn loads(part: fn(u64, u64) -> u64) -> Vec<Sample> {
        let sample = |subject: &str,
                      (page, visit, block): (u64, u64, u64),
                      thousandths: u64|
         -> Sample {
            serde_json::from_value(json!({
                "schema": 1, "run": "r", "experiment": "pages", "case": "load", "seed": 1,
                "parameters": { "site": "s", "link": "wifi", "page": page.to_string(), "visit": visit },
                "subject": { "name": subject, "program": "haypile", "language": "", "version": "" },
                "block": block, "position": 0, "operations": 1, "wall_ns": thousandths * 100_000,
                "cpu_ns": 1, "hits": 0, "misses": 0,
            }))
            .unwrap()
        };
        let of = |page| {
            let of_visit = move |(visit, block)| {
                let disk = sample("http:file:size=10MB", (page, visit, block), part(page, block));
                [sample("http:none", (page, visit, block), 1000), disk]
            };
            [(1, 0), (2, 0), (1, 1), (2, 1)].into_iter().flat_map(of_visit)
        };
        (1..9).flat_map(of).collect()
    }

    #[test]
    fn what_is_not_shown_to_be_saved_is_said_to_be_not_shown() {
        let answer = |part| body(&loads(part).iter().collect(), &[]).answer;
        let shown = answer(|page, block| 496 + page + block);
        let saved = "saves 50 % (49 to 51) of the load time of all visits, 50 % (49 to 51) of first views and";
        assert!(shown.contains(saved), "{shown}");
        let open = answer(|page, block| if block == 0 { 900 + page } else { 1000 });
        assert!(open.contains("no disk cache is shown to save time"), "{open}");
        let wild = answer(|_, block| if block == 1 { 9000 } else { 10 });
        assert!(wild.contains("no interval: too few loads"), "{wild}");
        assert!(wild.contains("no disk cache is shown to save time"), "{wild}");
    }

    #[test]
    fn the_caches_of_a_browser_have_a_table_of_their_own() {
        let sample = |subject: &str, visit: u64, wall_ns: u64| -> Sample {
            serde_json::from_value(json!({
                "schema": 1, "run": "r", "experiment": "pages", "case": "load", "seed": 1,
                "parameters": { "site": "<s>", "link": "wifi", "page": "p", "visit": visit },
                "subject": { "name": subject, "program": "haypile", "language": "", "version": "" },
                "block": 0, "position": 0, "operations": 1, "wall_ns": wall_ns, "cpu_ns": 1,
                "hits": 0, "misses": 0,
            }))
            .unwrap()
        };
        let samples: Vec<Sample> = (1..9)
            .flat_map(|visit| {
                let of = |subject, ms: u64| sample(subject, visit, ms * 1_000_000);
                [of("chromium:none", 100), of("chromium:memory", 40), of("http:none", 90)]
            })
            .collect();
        let body = body(&samples.iter().collect(), &[]);
        let own = body.tables.iter().find(|table| table.caption.contains("caches of chromium"));
        let rows = &own.unwrap().rows;
        assert_eq!(rows[0][..2], ["memory", "none"]);
        assert!(rows[0][2].contains("60 %"), "{rows:?}");
        let tables = body.tables.iter().filter(|table| table.caption.contains("http")).count();
        assert_eq!(tables, 0, "our own loader is not a browser");
    }
}
