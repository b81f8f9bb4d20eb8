//! Visits to pages by links that add a query parameter, as those of campaigns and searches do.
//!
//! The parameter makes no difference to the page, and its document says so (`No-Vary-Search`). A cache that does not
//! know the field takes the document of each visit for another one.

use std::collections::HashMap;

use url::Url;

use super::manifest::{Visit, Visits};
use super::model::Site;
use super::page::Page;
use super::resource::Resource;

/// The name of the query parameter, whose value is the number of the visit among those to the same page.
const PARAMETER: &str = "haypile-visit";
const FIELD: &str = "no-vary-search";

/// A site in which each visit to a page asks for its document by another URL.
#[derive(Clone, Debug)]
pub struct QueriedSite {
    /// The site, with one page for each visit. All pages of one original page load the same resources, except their
    /// documents.
    pub site: Site,
    /// The visits, in the order of the original ones, with their numbers.
    pub visits: Visits,
    /// The name of the original page of each page of the site.
    pub names: Vec<String>,
}

impl Site {
    /// Returns the names of the pages, in their order.
    pub fn page_names(&self) -> Vec<String> {
        self.pages.iter().map(|page| page.name.clone()).collect()
    }

    /// Returns a site in which each of these visits has a query parameter of its own in the URL of its document, the
    /// response to which says by `No-Vary-Search` that the parameter makes no difference. Pages that are not visited are
    /// left out.
    ///
    /// The result may be larger than a site may be: [`validate`](Self::validate) says so.
    pub fn with_query_per_visit(&self, visits: &Visits) -> QueriedSite {
        let mut site = Self { resources: self.resources.clone(), pages: Vec::new() };
        let (mut names, mut new_visits) = (Vec::new(), Vec::new());
        let mut documents: HashMap<(usize, u32), usize> = HashMap::new();
        for visit in visits {
            let original_page = &self.pages[visit.page];
            let Page { name, mut loads } = original_page.clone();
            if let Some(place) = self.document_of(original_page) {
                let load = &mut loads[place];
                let original = &self.resources[load.resource];
                load.resource =
                    *documents.entry((load.resource, visit.number)).or_insert_with(|| {
                        site.resources.push(with_query(original, visit.number));
                        site.resources.len() - 1
                    });
            }
            let page = site.pages.len();
            new_visits.push(Visit { page, number: visit.number });
            site.pages.push(Page { name: format!("{name}, visit {}", visit.number), loads });
            names.push(name);
        }
        QueriedSite { site, visits: Visits::of(new_visits), names }
    }
}

/// Returns a document at the URL of one visit.
fn with_query(original: &Resource, visit: u32) -> Resource {
    let mut resource = original.clone();
    if let Ok(mut url) = Url::parse(&original.url) {
        url.query_pairs_mut().append_pair(PARAMETER, &visit.to_string());
        resource.url = url.into();
    }
    resource.headers.retain(|(name, _)| !name.eq_ignore_ascii_case(FIELD));
    resource.headers.push((FIELD.to_owned(), format!("params=(\"{PARAMETER}\")")));
    resource
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::site::list;

    #[test]
    fn each_visit_has_a_document_of_its_own_and_shares_all_else() {
        let text = "[a]\nhttp://a.test/ 1KB\n  http://a.test/i?b=1 1KB\n[c]\nhttp://a.test/i?b=1\n";
        let site = list::parse(Path::new("l"), text.as_bytes()).unwrap().site;
        let visits = Visits::of_pages([0, 1, 0, 1]);
        let QueriedSite { site, visits, names } = site.with_query_per_visit(&visits);
        site.validate().unwrap();
        assert_eq!(names, ["a", "c", "a", "c"]);
        let numbers: Vec<_> = visits.iter().map(|visit| (visit.page, visit.number)).collect();
        assert_eq!(numbers, [(0, 1), (1, 1), (2, 2), (3, 2)]);
        let urls = |page: usize| -> Vec<&str> {
            let loads = site.pages[page].loads.iter();
            loads.map(|load| site.resources[load.resource].url.as_str()).collect()
        };
        assert_eq!(urls(0), ["http://a.test/?haypile-visit=1", "http://a.test/i?b=1"]);
        assert_eq!(urls(2), ["http://a.test/?haypile-visit=2", "http://a.test/i?b=1"]);
        assert_eq!(urls(3), ["http://a.test/i?b=1&haypile-visit=2"]);
        let document = &site.resources[site.pages[3].loads[0].resource];
        let values: Vec<_> = document.header_values(FIELD).collect();
        assert_eq!(values, ["params=(\"haypile-visit\")"]);
    }
}
