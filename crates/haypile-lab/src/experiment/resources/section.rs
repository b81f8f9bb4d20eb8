//! The section of `resources` in the report.

use haypile_measure::figure::Estimate;
use haypile_measure::result::{Sample, Samples};
use haypile_number::Quantity;

use super::super::on_pages::improvement::{
    ColumnLoads, ColumnName, LinkLoads, View, links_of, loaders,
};
use crate::report::body::details;
use crate::report::body::figures::of_columns;
use crate::report::case::{Case, varying};
use crate::report::chart::{Bar, Picture};
use crate::report::section::Body;
use crate::report::table::{NOTHING, Table};

/// The loads of a list over one network link, by our own loader and by browsers.
pub(super) struct ListLoads {
    /// The loads of each loader, after its name; our own loader comes first, and its name is empty.
    loaders: Vec<(String, LinkLoads)>,
}

impl ListLoads {
    /// Groups the loads in results by list and network link, in the order of the rows.
    pub(super) fn all<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Vec<Self> {
        let samples: Samples<'a> = samples.into_iter().collect();
        let mut names = loaders(&samples);
        names.remove(OURS);
        let mut all: Vec<Self> = Vec::new();
        for name in std::iter::once(OURS).chain(names) {
            for link in links_of(name, samples.iter().copied()) {
                let title = if name == OURS { String::new() } else { name.to_owned() };
                let is_same = |other: &&mut Self| {
                    let other = other.link();
                    (&other.site, &other.link) == (&link.site, &link.link)
                };
                match all.iter_mut().find(is_same) {
                    Some(found) => found.loaders.push((title, link)),
                    None => all.push(Self { loaders: vec![(title, link)] }),
                }
            }
        }
        all
    }

    /// Returns the loads of the first loader, which is ours unless it loaded nothing.
    pub(super) fn link(&self) -> &LinkLoads {
        &self.loaders[0].1
    }

    /// Returns the loads of each loader with each cache configuration, after the name of both.
    pub(super) fn columns(
        &self,
    ) -> impl Iterator<Item = (String, &LinkLoads, &ColumnName, &ColumnLoads)> {
        self.loaders.iter().flat_map(|(loader, link)| {
            link.columns.iter().map(move |(name, loads)| {
                (format!("{loader} {name}").trim_start().to_owned(), link, name, loads)
            })
        })
    }

    /// Returns the same without cache configurations whose loads failed.
    fn good(&self) -> impl Iterator<Item = (String, &LinkLoads, &ColumnName, &ColumnLoads)> {
        self.columns().filter(|(.., loads)| loads.error.is_none())
    }
}

/// The name of our own loader in results.
const OURS: &str = "http";

pub(super) fn body(samples: &Samples<'_>, cases: &[Case<'_>]) -> Body {
    let all = ListLoads::all(samples.iter().copied());
    let mut body = Body { answer: answer(&all), ..Body::default() };
    for (figure, left_out) in all.iter().map(bars) {
        body.figures.extend(figure);
        body.left_out.extend(left_out);
    }
    body.tables.extend(all.iter().map(table));
    details::details(&mut body, cases, &varying(cases));
    body
}

/// The time of a repeated load without a cache, and with each.
fn answer(all: &[ListLoads]) -> String {
    let of_link = |list: &ListLoads| {
        let time = |(label, link, name, loads): (String, &LinkLoads, &ColumnName, &ColumnLoads)| {
            let mean = Quantity::Time.write(loads.mean_ns(View::Repeat)?);
            let none = link.baseline("none").filter(|_| name.kind != "none");
            let saved = none.and_then(|none| loads.saved(none, View::Repeat));
            let saved =
                saved.map_or_else(String::new, |saved| format!(", less time in sum {saved}"));
            Some(format!("{label} {mean}{saved}"))
        };
        let times: Vec<String> = list.columns().filter_map(time).collect();
        (!times.is_empty()).then(|| format!("{}: {}", list.link().link, times.join("; ")))
    };
    let found: Vec<String> = all.iter().filter_map(of_link).collect();
    if found.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    format!("Mean time of the second load over {}.", found.join(". Over "))
}

/// Returns a chart of the mean times of the first and of the second load.
fn bars(list: &ListLoads) -> (Option<Picture>, Option<String>) {
    let views = [View::First, View::Repeat];
    let bar = |(label, _, _, loads): (String, &LinkLoads, &ColumnName, &ColumnLoads)| {
        let value = |view| loads.mean_ns(view).map(Estimate::exact);
        Bar::new(label, views.map(value).to_vec())
    };
    let bars: Vec<Bar> = list.good().map(bar).collect();
    let measures = views.map(|view| format!("{view} loads")).to_vec();
    let link = list.link();
    let title = format!("Mean time of all resources over {}, {}", link.link, link.site);
    of_columns(title, Quantity::Time, measures, bars)
}

/// Returns the table of a network link: loading times and requests of the resources with each cache
/// configuration of each loader. A cache is compared with no cache of the same loader.
pub(super) fn table(list: &ListLoads) -> Table {
    let row = |(label, link, name, loads): (String, &LinkLoads, &ColumnName, &ColumnLoads)| {
        let saved = |view| {
            let none = link.baseline("none").filter(|_| name.kind != "none")?;
            Some(loads.saved(none, view)?.to_string())
        };
        let saved = |view| saved(view).unwrap_or_else(|| NOTHING.to_owned());
        let count = |name: &str| loads.count(name).to_string();
        vec![
            label,
            loads.mean(View::First),
            loads.mean(View::Repeat),
            saved(View::First),
            saved(View::Repeat),
            count("hits"),
            count("origin_requests"),
        ]
    };
    let names = [
        "Cache",
        "First",
        "Repeat",
        "Less time, first",
        "Repeat",
        "Hits",
        "Requests to the origin",
    ];
    let link = list.link();
    let caption = format!("{}, {}: mean time of all resources", link.site, link.link);
    Table::of_numbers(caption, &names, list.good().map(row).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample(subject: &str, (link, visit): (&str, u64), ms: u64) -> Sample {
        serde_json::from_value(json!({
            "schema": 1, "run": "r", "experiment": "resources", "case": "load", "seed": 1,
            "parameters": { "site": "page.txt", "link": link, "page": "list", "visit": visit },
            "subject": { "name": subject, "program": "haypile", "language": "", "version": "" },
            "block": 0, "position": 0, "operations": 1, "wall_ns": ms * 1_000_000, "cpu_ns": 1,
            "hits": 0, "misses": 0,
        }))
        .unwrap()
    }

    /// Our cache takes a tenth of the time without it, and that of the browser half.
    #[test]
    fn each_cache_is_compared_with_none_of_its_own_loader() {
        let columns = [
            ("necko:none", 200),
            ("necko:file:size=6MB", 100),
            ("http:none", 50),
            ("http:file:size=6MB", 5),
        ];
        let samples: Vec<Sample> = ["unshaped", "wifi"]
            .into_iter()
            .flat_map(|link| columns.map(|(subject, ms)| (link, subject, ms)))
            .flat_map(|(link, subject, ms)| [1, 2].map(|visit| sample(subject, (link, visit), ms)))
            .collect();
        let all = ListLoads::all(&samples);
        let names = |list: &ListLoads| list.columns().map(|(name, ..)| name).collect::<Vec<_>>();
        assert_eq!(all.len(), 2);
        for list in &all {
            assert_eq!(names(list), ["none", "disk 6MB", "necko none", "necko disk 6MB"]);
        }
        let shown = answer(&all).replace('\u{a0}', " ");
        assert!(shown.contains("; disk 6MB 5.00 ms, less time in sum 90 %"), "{shown}");
        assert!(shown.contains("; necko disk 6MB 100 ms, less time in sum 50 %"), "{shown}");
    }
}
