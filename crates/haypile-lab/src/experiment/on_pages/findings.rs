//! The figures of page loads: the mean time of a load, and how much less time a cache takes.

use std::collections::BTreeMap;

use haypile_measure::figure::{Estimate, FIGURES, Finding, Findings, count, quantity_of_count};
use haypile_measure::result::{Samples, SubjectId};
use haypile_number::Quantity;

use super::improvement::{
    ColumnLoads, ColumnName, LOAD, LinkLoads, View, links_of, loaders, place_of,
};

/// Rows of loads by site and link, and by the name of the subject.
type Rows<'a> = BTreeMap<(Option<(String, &'a str)>, &'a str), Samples<'a>>;

/// Returns the results of page loads for each cache configuration and link, and the results of all
/// other rows. Page loads are those of our loader and of browsers.
pub(crate) fn findings(samples: &Samples<'_>) -> Findings {
    let of = |is_load: bool| -> Samples<'_> {
        samples.iter().copied().filter(|sample| (sample.case == LOAD) == is_load).collect()
    };
    let (loads, others) = (of(true), of(false));
    let rows = loads.grouped(|sample| (place_of(sample), sample.subject.name.as_str()));
    let rows: Rows<'_> = rows.into_iter().collect();
    let mut findings = Vec::new();
    for loader in loaders(&loads) {
        for link in links_of(loader, loads.iter().copied()) {
            for (name, loads) in link.columns.iter().chain(&link.without_no_vary_search) {
                add(&mut findings, &rows, &link, (name, loads));
            }
        }
    }
    findings.append(&mut Findings::of(&others, FIGURES).0);
    Findings(findings)
}

/// Returns the rows of a column over a link.
fn rows_of<'a>(
    rows: &'a Rows<'a>,
    link: &'a LinkLoads,
    name: &'a ColumnName,
) -> Option<&'a Samples<'a>> {
    rows.get(&(Some((link.site.clone(), &*link.link)), &*name.subject))
}

/// Adds the figures of a column.
fn add(
    findings: &mut Vec<Finding>,
    rows: &Rows<'_>,
    link: &LinkLoads,
    (name, loads): (&ColumnName, &ColumnLoads),
) {
    let Some(own) = rows_of(rows, link, name) else { return };
    let Some(blank) = Finding::of(own) else { return };
    let mut push = |figure: String, quantity, estimate, over: Option<&SubjectId>| {
        findings.push(blank.clone().with(figure, quantity, estimate, over));
    };
    for view in View::ALL {
        if let Some(mean_ns) = loads.mean_ns(view) {
            push(format!("load:{}", view.key()), Quantity::Time, Estimate::exact(mean_ns), None);
        }
        if let Some(share) = loads.waits(view) {
            push(format!("waits:{}", view.key()), Quantity::Share, Estimate::exact(share), None);
        }
    }
    for baseline in name.baselines() {
        let from = link.columns.iter().find(|(other, _)| other.kind == *baseline);
        let Some((other, from)) = from else { continue };
        let over = rows_of(rows, link, other).and_then(Finding::of).map(|finding| finding.subject);
        for view in View::ALL {
            if let Some(saved) = loads.saved(from, view) {
                let key = view.key();
                push(format!("saved:{key}"), Quantity::Share, saved.estimate(), over.as_ref());
                if let Some(others) = saved.of_pages_like_these() {
                    let name = format!("saved-like-these:{key}");
                    push(name, Quantity::Share, others, over.as_ref());
                }
            }
        }
    }
    for name in loads.counts.keys() {
        if let Some(sum) = count(own, name) {
            push(
                format!("count:{name}"),
                quantity_of_count(name),
                Estimate::exact(sum as f64),
                None,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use haypile_measure::result::Sample;
    use serde_json::json;

    use super::*;

    /// Loads of 20 pages, three times each, which take 100 ms without a cache and 40 ms with one.
    #[test]
    fn what_a_cache_saves_is_found_over_its_baseline() {
        let sample = |subject: &str, page: u64, visit: u64, ms: u64| -> Sample {
            serde_json::from_value(json!({
                "schema": 1, "run": "r", "experiment": "pages", "case": "load", "seed": 1,
                "parameters": { "site": "s", "link": "wifi", "page": page.to_string(), "visit": visit },
                "subject": { "name": subject, "program": "haypile", "language": "", "version": "" },
                "block": 0, "position": 0, "operations": 1, "wall_ns": ms * 1_000_000, "cpu_ns": 1,
                "hits": 0, "misses": 0, "counts": { "origin_requests": 3 },
            }))
            .unwrap()
        };
        let mut samples = Vec::new();
        for (page, visit) in (1..=20).flat_map(|page| [(page, 1), (page, 2), (page, 3)]) {
            samples.push(sample("http:none", page, visit, 100));
            samples.push(sample("http:memory:size=1MB", page, visit, 40));
            samples.push(sample("chromium:none", page, visit, 80));
        }
        let findings = findings(&samples.iter().collect()).0;
        let found = |subject: &str, figure: &str| {
            let mut found = findings
                .iter()
                .filter(|it| (it.subject.name.as_str(), it.figure.as_str()) == (subject, figure));
            let first = found.next().unwrap();
            assert_eq!(found.count(), 0, "{figure} of {subject} is there once");
            first
        };
        let saved = found("http:memory:size=1MB", "saved:repeat");
        assert!((saved.estimate.value - 0.6).abs() < 1e-9, "{saved:?}");
        assert_eq!(saved.over.as_ref().unwrap().name, "http:none");
        let names: Vec<&String> = saved.parameters.keys().collect();
        assert_eq!(names, ["link", "site"], "page and visit differ");
        assert_eq!(saved.estimate.interval, None, "a block alone says nothing of its noise");
        let others = found("http:memory:size=1MB", "saved-like-these:repeat");
        assert!((others.estimate.interval.unwrap().high - 0.6).abs() < 1e-9);
        let load = found("chromium:none", "load:first");
        assert!((load.estimate.value - 80e6).abs() < 1e-3, "{load:?}");
        let requests = found("http:none", "count:origin_requests");
        assert!((requests.estimate.value - 180.0).abs() < 1e-9, "{requests:?}");
        assert!(
            !findings.iter().any(|it| it.figure == "saved:all" && it.subject.name == "http:none")
        );
    }
}
