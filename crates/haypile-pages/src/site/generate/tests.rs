use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::UNIX_EPOCH;

use xxhash_rust::xxh3::xxh3_64;

use super::*;
use crate::site::BodyFormat;

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_600_000_000)
}

fn site(seed: u64, pages: usize, percentile: Percentile) -> Site {
    Generator::at_percentile(seed, pages, percentile).generate(now()).unwrap()
}

/// The URLs of a site in a file, in their order, found without knowledge of its recipe.
fn urls_in(text: &str) -> Vec<String> {
    let quoted = text.split('"').skip(1).step_by(2);
    quoted
        .filter(|text| text.starts_with("http://") && text.contains("site.test"))
        .map(str::to_owned)
        .collect()
}

/// The part of the resources for which something holds, in per cent.
fn percent(site: &Site, holds: impl Fn(&Resource) -> bool) -> usize {
    let count = site.resources.iter().filter(|resource| holds(resource)).count();
    (count * 1000 / site.resources.len() + 5) / 10
}

#[test]
fn a_page_has_the_requests_and_the_weight_of_its_percentile() {
    for percentile in Percentile::ALL {
        for seed in 0..5 {
            let site = site(seed, 3, percentile);
            for (index, page) in site.pages.iter().enumerate() {
                assert_eq!(page.loads.len(), percentile.requests() as usize);
                assert_eq!(site.page_weight_bytes(index), percentile.page_bytes(), "{seed}");
            }
        }
    }
}

#[test]
fn a_median_page_has_the_published_types() {
    let site = site(1, 1, Percentile::P50);
    let by_kind = ResourceKind::ALL.into_iter().zip(site.counts().by_kind);
    let by_kind: BTreeMap<_, _> = by_kind.map(|(kind, count)| (kind.name(), count)).collect();
    assert_eq!((by_kind["script"], by_kind["image"], by_kind["css"]), (24, 18, 8));
    assert_eq!((by_kind["font"], by_kind["html"], by_kind["other"]), (4, 2, 15));
}

#[test]
fn headers_have_the_published_frequencies() {
    let site = site(1, 12, Percentile::P25);
    let control = |wanted: &'static str| {
        move |resource: &Resource| {
            let mut lines = resource.header_values("cache-control");
            lines.any(|line| line.split(", ").any(|directive| directive.starts_with(wanted)))
        }
    };
    let has = |name: &'static str| {
        move |resource: &Resource| resource.header_values(name).next().is_some()
    };
    let neither =
        |resource: &Resource| !has("cache-control")(resource) && !has("expires")(resource);
    for (found, published) in [
        (percent(&site, control("max-age=")), 60),
        (percent(&site, control("no-cache")), 14),
        (percent(&site, control("no-store")), 9),
        (percent(&site, neither), 26),
        (percent(&site, has("etag")), 48),
        (percent(&site, has("last-modified")), 73),
    ] {
        assert!(usize::abs_diff(found, published) <= 1, "{found} for {published}");
    }
    let documents = site.resources.iter().filter(|resource| resource.kind == ResourceKind::Html);
    let mut controls = documents.flat_map(|resource| resource.header_values("cache-control"));
    assert!(controls.all(|line| line.starts_with("no-cache")));
}

#[test]
fn sizes_are_spread_as_published() {
    let site = site(1, 40, Percentile::P50);
    for (kind, low_kb, high_kb) in [(ResourceKind::Script, 1, 165), (ResourceKind::Image, 0, 183)] {
        let of_kind = site.resources.iter().filter(|resource| resource.kind == kind);
        let mut sizes: Vec<_> = of_kind.map(Resource::body_len).collect();
        sizes.sort_unstable();
        let (low, high) = (sizes[sizes.len() / 10] / 1024, sizes[sizes.len() * 9 / 10] / 1024);
        println!("{kind}: {low} KB to {high} KB of {low_kb} to {high_kb}");
        assert!(low <= low_kb + 1 && high * 2 >= high_kb && high <= high_kb * 2, "{kind}: {high}");
    }
}

#[test]
fn pages_by_https_have_the_same_sizes_and_urls_of_that_scheme_alone() {
    let plain = Generator::at_percentile(1, 2, Percentile::P10);
    let https = Generator { is_https: true, ..plain.clone() };
    let (plain, https) = (plain.generate(now()).unwrap(), https.generate(now()).unwrap());
    assert!(!plain.has_https() && https.resources.iter().all(Resource::is_https));
    assert_eq!(plain.pages, https.pages);
    for page in 0..2 {
        assert_eq!(plain.page_weight_bytes(page), https.page_weight_bytes(page));
    }
    for resource in &https.resources {
        let body = resource.body_bytes();
        assert!(
            !body.windows(22).any(|part| part == b"http://static.site.tes"),
            "{}",
            resource.url
        );
    }
}

#[test]
fn pages_share_the_stated_resources() {
    let site = site(3, 4, Percentile::P50);
    let sets = site.pages.iter().map(|page| page.loads.iter().map(|load| load.resource));
    let sets: Vec<HashSet<_>> = sets.map(Iterator::collect).collect();
    // Half of 8 and of 24, all of 4, a quarter of 18 rounded up.
    for (one, other) in [(0, 1), (0, 3), (2, 3)] {
        assert_eq!(sets[one].intersection(&sets[other]).count(), 4 + 12 + 4 + 5);
    }
    assert!(site.working_set_bytes() < 4 * Percentile::P50.page_bytes());
    assert_eq!(site.counts().hosts, 3);
}

#[test]
fn bodies_load_what_the_page_loads() {
    let site = site(2, 2, Percentile::P50);
    let index: HashMap<_, _> = site.resources.iter().map(|r| r.url.as_str()).zip(0..).collect();
    for page in &site.pages {
        for (number, load) in page.loads.iter().enumerate() {
            let resource = &site.resources[load.resource];
            let children = page.loads.iter().filter(|child| child.after == Some(number));
            let expected: Vec<usize> = children.map(|child| child.resource).collect();
            let bytes = resource.body_bytes();
            assert_eq!(bytes.len() as u64, resource.body_len(), "{}", resource.url);
            let found = match resource.kind {
                ResourceKind::Html | ResourceKind::Css | ResourceKind::Script => {
                    urls_in(&String::from_utf8(bytes).unwrap())
                }
                _ => Vec::new(),
            };
            let found: Vec<usize> = found.iter().map(|url| index[url.as_str()]).collect();
            assert_eq!(found, expected, "{}", resource.url);
        }
    }
}

#[test]
fn a_document_has_an_element_for_each_mark_of_its_style_sheets() {
    let site = site(2, 2, Percentile::P50);
    for page in &site.pages {
        let bodies = page.loads.iter().map(|load| &site.resources[load.resource].body);
        let typed = bodies.map(|body| match body {
            SiteBody::Typed(typed) => typed,
            _ => unreachable!("all are typed"),
        });
        let typed: Vec<_> = typed.collect();
        let sheets = typed.iter().filter(|body| body.format == BodyFormat::Css);
        let marks = sheets.flat_map(|body| &body.children).map(|child| child.mark);
        let mut marks: Vec<_> = marks.filter(|&mark| mark > 0).collect();
        marks.sort_unstable();
        assert_eq!(marks, (1..=typed[0].marks).collect::<Vec<_>>());
        assert!(marks.len() >= 4, "{marks:?}");
    }
}

#[test]
fn a_site_is_the_same_permanently() {
    let generated = site(7, 2, Percentile::P10);
    let mut all = Vec::new();
    for resource in &generated.resources {
        let Resource { url, status, headers, .. } = resource;
        all.extend(format!("{url} {status} {headers:?}\n").bytes());
        all.extend(resource.body_bytes());
    }
    for load in generated.pages.iter().flat_map(|page| &page.loads) {
        let PageLoad { resource, after, wait, .. } = load;
        all.extend(format!("{resource} {after:?} {}\n", wait.as_millis()).bytes());
    }
    // Results name sites by their seeds: if this number changes, sites need other names. It has changed
    // once, before any results were kept: scripts read the data that they fetch, or its load never ends.
    assert_eq!(xxh3_64(&all), PINNED);
    assert_ne!(site(8, 2, Percentile::P10), generated);
}

const PINNED: u64 = 7_345_864_058_216_189_032;

#[test]
fn a_large_site_is_small_until_its_bodies_are_made() {
    let site = site(1, 150, Percentile::P90);
    let bytes: u64 = site.resources.iter().map(Resource::body_len).sum();
    assert!(bytes > 600 << 20, "{bytes}");
    let json = serde_json::to_string(&site).unwrap();
    assert!(json.len() < 20 << 20, "{}", json.len());
    assert_eq!(serde_json::from_str::<Site>(&json).unwrap(), site);
}

#[test]
fn a_weight_of_ones_own_is_kept() {
    let generator = Generator::of_weight(1, 2, 900_000);
    let site = generator.generate(now()).unwrap();
    assert_eq!(site.page_weight_bytes(1), 900_000);
    assert!((25..42).contains(&generator.requests));
    let few = Generator {
        seed: 1,
        pages: 1,
        requests: MIN_REQUESTS,
        page_bytes: 20_000,
        is_https: false,
    };
    assert_eq!(few.generate(now()).unwrap().page_weight_bytes(0), 20_000);
}

#[test]
fn settings_that_no_site_can_have_are_refused() {
    let good = Generator::at_percentile(1, 1, Percentile::P10);
    for (generator, part) in [
        (Generator { pages: 0, ..good.clone() }, "1 to 10000"),
        (Generator { requests: 7, ..good.clone() }, "8 to 10000"),
        (Generator { page_bytes: 1000, ..good.clone() }, "at least about"),
        (Generator { page_bytes: MAX_PAGE_BYTES + 1, ..good.clone() }, "at most"),
    ] {
        let error = generator.generate(now()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
