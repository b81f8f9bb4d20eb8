//! Manifests: the order in which a run visits pages.
//!
//! The format is the source's (Tp4m page loads): a text with the URL of one page per line, as often
//! as it is visited. Its own manifest has groups of four pages, and loads each group three times
//! before the next one. Blank lines and lines that begin with `#` count for nothing, and neither
//! does a `%` before a URL.
//!
//! ```text
//! http://localhost/a/index.html
//! http://localhost/b/index.html
//! http://localhost/a/index.html
//! http://localhost/b/index.html
//! ```

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::SiteError;
use super::model::{MAX_NAME_BYTES, Site};
use super::resource::{MAX_URL_BYTES, beginning_of};
use super::source::{read_bounded, text_of};

/// The largest size of a manifest (a list of visits), in bytes.
pub const MAX_MANIFEST_BYTES: u64 = 16 << 20;

/// The largest number of visits in a manifest.
pub const MAX_VISITS: usize = 1_000_000;

/// Number of pages in a group whose pages are visited repeatedly, in the manifest of the Tp4m page
/// loads.
pub const GROUP_PAGES: usize = 4;

/// Number of loads of each group of pages before the next group, in the manifest of the Tp4m page
/// loads.
pub const GROUP_VISITS: u32 = 3;

/// A visit to a page of a site, with its number among the visits to this page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Visit {
    /// The index in the site of the visited page.
    pub page: usize,
    /// The number of the visit among those to the same page, from 1: 1 is the first view, others
    /// are repeat views.
    pub number: u32,
}

/// A list of visits to a site's pages, in the order in which they are loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Visits(Vec<Visit>);

impl Visits {
    /// Returns these visits.
    pub(super) fn of(visits: Vec<Visit>) -> Self {
        Self(visits)
    }

    /// Returns visits to the pages with these indices, in this order.
    pub fn of_pages(pages: impl IntoIterator<Item = usize>) -> Self {
        let mut numbers: HashMap<usize, u32> = HashMap::new();
        let visit = |page| {
            let number = numbers.entry(page).or_default();
            *number += 1;
            Visit { page, number: *number }
        };
        Self(pages.into_iter().map(visit).collect())
    }

    /// Returns visits to this number of pages in the order of the Tp4m page loads: groups of
    /// [`GROUP_PAGES`], each loaded [`GROUP_VISITS`] times before the next. The last group may have
    /// fewer pages.
    pub fn in_groups(pages: usize) -> Self {
        let pages: Vec<_> = (0..pages).collect();
        let repeated = |group: &[usize]| group.repeat(GROUP_VISITS as usize);
        Self::of_pages(pages.chunks(GROUP_PAGES).flat_map(repeated))
    }

    /// Returns the visits to pages as a slice, in the order in which they are loaded.
    pub fn as_slice(&self) -> &[Visit] {
        &self.0
    }

    /// Returns the number of visits to pages.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the list has no visits to pages.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns an iterator over the visits to pages.
    pub fn iter(&self) -> std::slice::Iter<'_, Visit> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Visits {
    type Item = &'a Visit;
    type IntoIter = std::slice::Iter<'a, Visit>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A manifest: the names or URLs of the pages to visit, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    pages: Vec<String>,
}

impl Manifest {
    /// Reads a manifest (a list of pages to visit) of at most [`MAX_MANIFEST_BYTES`].
    ///
    /// # Errors
    ///
    /// [`SiteError::Io`], [`SiteError::TooLarge`], and those of [`Self::parse`].
    pub fn read(path: &Path) -> Result<Self, SiteError> {
        let bytes = read_bounded(path, MAX_MANIFEST_BYTES, "a manifest has one page URL per line")?;
        Self::parse(path, &bytes)
    }

    /// Parses the contents of a manifest (a list of pages to visit); `path` is its name in
    /// messages.
    ///
    /// # Errors
    ///
    /// [`SiteError::Line`] for a line that is too long, more than [`MAX_VISITS`] lines, or other
    /// text than UTF-8; [`SiteError::Empty`] without a page.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, SiteError> {
        let mut pages = Vec::new();
        for (line, text) in (1..).zip(text_of(path, bytes)?.lines()) {
            let text = text.trim();
            let text = text.strip_prefix('%').unwrap_or(text).trim_start();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let wrong = |wrong| SiteError::Line { path: path.into(), line, wrong };
            if text.len() > MAX_URL_BYTES {
                let bytes = text.len();
                return Err(wrong(format!("{bytes} bytes; a page has at most {MAX_URL_BYTES}")));
            }
            if pages.len() == MAX_VISITS {
                return Err(wrong(format!("more than {MAX_VISITS} visits; split the manifest")));
            }
            pages.push(text.to_owned());
        }
        if pages.is_empty() {
            let wrong = "no page; write one page URL per line, as in http://site.test/index.html";
            return Err(SiteError::Empty { path: path.into(), wrong });
        }
        Ok(Self { pages })
    }

    /// Returns the names or URLs of the pages to visit, in order.
    pub fn pages(&self) -> impl ExactSizeIterator<Item = &str> {
        self.pages.iter().map(String::as_str)
    }

    /// Returns the visits to the manifest's pages in a site, which are found by their names or by
    /// the URLs of their documents.
    ///
    /// # Errors
    ///
    /// [`SiteError::UnknownPage`] for a page that the site does not have.
    pub fn visits(&self, site: &Site) -> Result<Visits, SiteError> {
        let mut known = HashMap::new();
        for (index, page) in site.pages.iter().enumerate() {
            let root = page.loads.first().and_then(|load| site.resources.get(load.resource));
            if let Some(root) = root {
                known.entry(root.url.as_str()).or_insert(index);
            }
        }
        // A name precedes a URL, as it belongs to one page alone.
        known.extend(site.pages.iter().map(|page| page.name.as_str()).zip(0..));
        let find = |name: &String| {
            known.get(name.as_str()).copied().ok_or_else(|| SiteError::UnknownPage {
                name: beginning_of(name).into_owned(),
                known: some_names(site),
            })
        };
        let pages: Result<Vec<_>, _> = self.pages.iter().map(find).collect();
        Ok(Visits::of_pages(pages?))
    }
}

fn some_names(site: &Site) -> String {
    const SHOWN: usize = 5;
    const _: () = assert!(MAX_NAME_BYTES <= MAX_URL_BYTES, "a name is a line of a manifest");
    let names = site.pages.iter().take(SHOWN).map(|page| beginning_of(&page.name));
    let more = if site.pages.len() > SHOWN { ", …" } else { "" };
    format!("its pages: {}{more}", names.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::site::list;

    fn parse(text: &str) -> Result<Manifest, SiteError> {
        Manifest::parse(Path::new("m.txt"), text.as_bytes())
    }

    fn pairs(visits: &Visits) -> Vec<(usize, u32)> {
        visits.iter().map(|visit| (visit.page, visit.number)).collect()
    }

    #[test]
    fn the_default_order_has_groups_of_four_three_times() {
        let visits = Visits::in_groups(5);
        let first = [1, 2, 3].into_iter().flat_map(|number| (0..4).map(move |page| (page, number)));
        let expected: Vec<_> = first.chain([(4, 1), (4, 2), (4, 3)]).collect();
        assert_eq!(pairs(&visits), expected);
        // The source's own manifest: 12 pages, 36 visits.
        assert_eq!(Visits::in_groups(12).len(), 36);
        assert!(Visits::in_groups(0).is_empty());
    }

    #[test]
    fn pages_are_found_by_name_and_by_url() {
        let list = "[one]\n/a.html\n[two]\n/b.html\n";
        let site = list::parse(Path::new("l"), list.as_bytes()).unwrap().site;
        let manifest =
            parse("# visits\ntwo\n\n % http://site.test/a.html \r\n\ttwo\none\n").unwrap();
        assert_eq!(manifest.pages().len(), 4);
        let visits = manifest.visits(&site).unwrap();
        assert_eq!(pairs(&visits), [(1, 1), (0, 1), (1, 2), (0, 2)]);
        let json = serde_json::to_string(&visits).unwrap();
        assert_eq!(serde_json::from_str::<Visits>(&json).unwrap(), visits);
        let error = parse("three").unwrap().visits(&site).unwrap_err().to_string();
        assert!(error.contains("'three'") && error.contains("its pages: one, two"), "{error}");
    }

    #[test]
    fn manifests_without_pages_are_refused() {
        assert!(parse("# nothing\n").unwrap_err().to_string().contains("one page URL per line"));
        let long = format!("a\n{}", "x".repeat(MAX_URL_BYTES + 1));
        assert!(
            parse(&long)
                .unwrap_err()
                .to_string()
                .starts_with("m.txt: line 2 cannot be used: 8193 bytes")
        );
        assert!(Manifest::read(Path::new("none")).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Manifest::parse(Path::new("m"), &bytes);
        }

        #[test]
        fn visits_number_themselves(pages in prop::collection::vec(0..4_usize, 0..50)) {
            let visits = Visits::of_pages(pages.iter().copied());
            for (index, visit) in visits.iter().enumerate() {
                let earlier = pages[..=index].iter().filter(|&&page| page == visit.page).count();
                prop_assert_eq!(visit.number as usize, earlier);
            }
        }
    }
}
