//! Sites as a whole: their rules and their sizes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use super::error::SiteError;
use super::names::PageNames;
use super::page::{MAX_WAIT, Page};
use super::resource::{Resource, ResourceKind, beginning_of};

/// The largest number of resources that a site may have.
pub const MAX_RESOURCES: usize = 1_000_000;

/// The largest number of pages that a site may have.
pub const MAX_PAGES: usize = 10_000;

/// The largest number of resources that a page may load.
pub const MAX_LOADS_PER_PAGE: usize = 10_000;

/// The longest name of a page in a site, in bytes.
pub const MAX_NAME_BYTES: usize = 1 << 10;

/// A web site: pages, and the resources that they load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The resources of the site, no two with the same URL.
    pub resources: Vec<Resource>,
    /// The pages of the site, no two with the same name.
    pub pages: Vec<Page>,
}

/// Counts of a site's pages, resources, hosts and loads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SiteCounts {
    /// The number of pages of the site.
    pub pages: usize,
    /// The number of resources of the site, over all pages.
    pub resources: usize,
    /// The number of resources of each kind, in the order of [`ResourceKind::ALL`].
    pub by_kind: [usize; ResourceKind::ALL.len()],
    /// The number of the site's resources that a browser's cache may store.
    pub cacheable: usize,
    /// The number of hosts in the URLs of the site, each with its port.
    pub hosts: usize,
    /// The number of resources that are loaded if each page is visited once.
    pub loads: usize,
    /// The number of loads, of all pages, whose initiator (the load that causes them) was inferred,
    /// because the source does not name it.
    pub inferred: usize,
}

impl Site {
    /// Checks that the site obeys the rules for sites, pages and resources, which their types'
    /// documentation states.
    ///
    /// # Errors
    ///
    /// [`SiteError::Count`], [`SiteError::Resource`] or [`SiteError::Page`]: the first broken rule.
    pub fn validate(&self) -> Result<(), SiteError> {
        count_is("resources", self.resources.len(), MAX_RESOURCES)?;
        count_is("pages", self.pages.len(), MAX_PAGES)?;
        let mut urls = HashSet::new();
        for (index, resource) in self.resources.iter().enumerate() {
            let checked = if urls.insert(resource.url.as_str()) {
                resource.check()
            } else {
                Err("another resource has the same URL".to_owned())
            };
            checked.map_err(|wrong| SiteError::Resource {
                index,
                url: beginning_of(&resource.url).into_owned(),
                wrong,
            })?;
        }
        let mut names = HashSet::new();
        for page in &self.pages {
            let checked = if names.insert(page.name.as_str()) {
                self.check_page(page)
            } else {
                Err("another page has the same name".to_owned())
            };
            checked.map_err(|wrong| SiteError::Page {
                name: beginning_of(&page.name).into_owned(),
                wrong,
            })?;
        }
        Ok(())
    }

    fn check_page(&self, page: &Page) -> Result<(), String> {
        if page.name.is_empty() || page.name.len() > MAX_NAME_BYTES {
            let bytes = page.name.len();
            return Err(format!("a name of {bytes} bytes; it has 1 to {MAX_NAME_BYTES}"));
        }
        if page.loads.is_empty() || page.loads.len() > MAX_LOADS_PER_PAGE {
            let count = page.loads.len();
            return Err(format!("{count} loads; it has 1 to {MAX_LOADS_PER_PAGE}"));
        }
        let mut seen = HashSet::new();
        for (index, load) in page.loads.iter().enumerate() {
            if load.resource >= self.resources.len() {
                return Err(format!("load {index} is of the unknown resource {}", load.resource));
            }
            if !seen.insert(load.resource) {
                return Err(format!("load {index} is of a resource that the page loads already"));
            }
            if load.after.is_some_and(|after| after >= index) {
                return Err(format!("load {index} comes after one that is not before it"));
            }
            if load.wait > MAX_WAIT {
                return Err(format!("load {index} waits for more than {} s", MAX_WAIT.as_secs()));
            }
        }
        Ok(())
    }

    /// Returns the working set of the site in bytes: the bodies, and approximately the heads, of
    /// all cacheable resources that a page loads. A cache of this size evicts nothing; a larger one
    /// makes no difference.
    pub fn working_set_bytes(&self) -> u64 {
        self.cacheable().map(|resource| resource.body_len() + resource.head_bytes()).sum()
    }

    /// Whether a URL of the site is `https`.
    pub fn has_https(&self) -> bool {
        self.resources.iter().any(Resource::is_https)
    }

    /// Removes, from all pages of the site, the waits between the end of a load and the requests
    /// that it causes.
    pub fn drop_waits(&mut self) {
        let loads = self.pages.iter_mut().flat_map(|page| &mut page.loads);
        loads.for_each(|load| load.wait = Duration::ZERO);
    }

    /// Returns all cacheable resources that a page of the site loads, each once.
    pub fn cacheable(&self) -> impl Iterator<Item = &Resource> {
        let loads = self.pages.iter().flat_map(|page| &page.loads);
        let distinct: BTreeSet<_> = loads.map(|load| load.resource).collect();
        let resources = distinct.into_iter().filter_map(|index| self.resources.get(index));
        resources.filter(|resource| resource.is_cacheable())
    }

    /// Returns the index, among the loads of a page, of its document: the first resource that does not redirect.
    pub(crate) fn document_of(&self, page: &Page) -> Option<usize> {
        page.loads.iter().position(|load| !self.resources[load.resource].is_redirect())
    }

    /// Returns the weight of a page in bytes: the bodies of its resources, cached or not; 0 for an
    /// unknown page.
    pub fn page_weight_bytes(&self, page: usize) -> u64 {
        let loads = self.pages.get(page).into_iter().flat_map(|page| &page.loads);
        loads.filter_map(|load| self.resources.get(load.resource)).map(Resource::body_len).sum()
    }

    /// Counts the pages, resources, hosts and loads of the site.
    pub fn counts(&self) -> SiteCounts {
        let host = |resource: &Resource| {
            let url = Url::parse(&resource.url).ok()?;
            Some((url.host_str()?.to_owned(), url.port_or_known_default()))
        };
        let of_kind = |kind| self.resources.iter().filter(|other| other.kind == kind).count();
        let loads = || self.pages.iter().flat_map(|page| &page.loads);
        SiteCounts {
            pages: self.pages.len(),
            resources: self.resources.len(),
            by_kind: ResourceKind::ALL.map(of_kind),
            cacheable: self.resources.iter().filter(|resource| resource.is_cacheable()).count(),
            hosts: self.resources.iter().filter_map(host).collect::<HashSet<_>>().len(),
            loads: loads().count(),
            inferred: loads().filter(|load| load.is_inferred).count(),
        }
    }

    /// Adds the pages of another site, as when several HAR files are one visit. Of two resources
    /// with the same URL, this site's is kept; a page whose name is taken gets a number added to
    /// it.
    pub fn append(&mut self, other: Self) {
        let mut known: HashMap<_, _> =
            self.resources.iter().map(|r| r.url.clone()).zip(0..).collect();
        let mut moved_to = Vec::with_capacity(other.resources.len());
        for resource in other.resources {
            let index = *known.entry(resource.url.clone()).or_insert(self.resources.len());
            if index == self.resources.len() {
                self.resources.push(resource);
            }
            moved_to.push(index);
        }
        let mut names = PageNames::of(&self.pages);
        for mut page in other.pages {
            for load in &mut page.loads {
                load.resource = moved_to.get(load.resource).copied().unwrap_or(usize::MAX);
            }
            page.name = names.unused(&page.name);
            self.pages.push(page);
        }
    }
}

fn count_is(what: &'static str, count: usize, limit: usize) -> Result<(), SiteError> {
    if count == 0 || count > limit {
        return Err(SiteError::Count { what, count, limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::site::{PageLoad, SiteBody};

    fn load(resource: usize, after: Option<usize>) -> PageLoad {
        PageLoad::new(resource, after, Duration::ZERO)
    }

    fn site(urls: &[&str]) -> Site {
        let resources = urls.iter().map(|url| Resource {
            url: format!("http://{url}"),
            kind: ResourceKind::Other,
            status: 200,
            headers: Vec::new(),
            body: SiteBody::Generated { bytes: 1000, seed: 1 },
            coding: None,
        });
        let resources: Vec<_> = resources.collect();
        let loads = (0..resources.len()).map(|index| load(index, index.checked_sub(1)));
        let pages = vec![Page { name: "a".into(), loads: loads.collect() }];
        Site { resources, pages }
    }

    #[test]
    fn a_site_that_breaks_a_rule_is_refused() {
        let good = site(&["a/", "a/b"]);
        good.validate().unwrap();
        let broken = |change: &dyn Fn(&mut Site), part: &str| {
            let mut site = good.clone();
            change(&mut site);
            let error = site.validate().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        broken(&|site| site.pages.clear(), "1 to 10000 pages");
        broken(&|site| site.resources.clear(), "1 to 1000000 resources");
        broken(
            &|site| site.resources[1].url = "http://a/".into(),
            "resource 1 of the site ('http://a/')",
        );
        broken(&|site| site.pages.push(site.pages[0].clone()), "same name");
        broken(&|site| site.pages[0].name.clear(), "a name of 0 bytes");
        broken(&|site| site.pages[0].loads.clear(), "page 'a' of the site is invalid: 0 loads");
        broken(&|site| site.pages[0].loads[1].resource = 2, "unknown resource 2");
        broken(&|site| site.pages[0].loads[1].resource = 0, "loads already");
        broken(&|site| site.pages[0].loads[1].after = Some(1), "not before it");
        broken(&|site| site.pages[0].loads[1].wait = MAX_WAIT * 2, "more than 3600 s");
    }

    #[test]
    fn the_working_set_has_each_cacheable_resource_once() {
        let mut site = site(&["a/", "a/b", "b:8080/"]);
        site.pages.push(Page { name: "b".into(), loads: vec![load(0, None)] });
        assert_eq!(site.working_set_bytes(), 3 * 1019);
        site.resources[1].headers.push(("cache-control".into(), "no-store".into()));
        assert_eq!(site.working_set_bytes(), 2 * 1019);
        assert_eq!([0, 1, 2].map(|page| site.page_weight_bytes(page)), [3000, 1000, 0]);
        let counts = site.counts();
        assert_eq!((counts.pages, counts.resources, counts.hosts), (2, 3, 2));
        assert_eq!((counts.cacheable, counts.loads, counts.inferred), (2, 4, 0));
        assert_eq!(counts.by_kind, [0, 0, 0, 0, 0, 3]);
    }

    #[test]
    fn a_site_comes_back_from_json() {
        let site = site(&["a/", "a/b"]);
        let json = serde_json::to_string(&site).unwrap();
        assert_eq!(serde_json::from_str::<Site>(&json).unwrap(), site);
    }

    #[test]
    fn appended_sites_share_resources_and_keep_their_pages() {
        let mut one = site(&["a/", "a/b"]);
        one.append(site(&["a/b", "a/c"]));
        one.append(site(&["a/c"]));
        one.validate().unwrap();
        assert_eq!(one.resources.len(), 3);
        let names: Vec<_> = one.pages.iter().map(|page| page.name.as_str()).collect();
        assert_eq!(names, ["a", "a (2)", "a (3)"]);
        let loads: Vec<_> = one.pages[1].loads.iter().map(|load| load.resource).collect();
        assert_eq!(loads, [1, 2]);
    }
}
