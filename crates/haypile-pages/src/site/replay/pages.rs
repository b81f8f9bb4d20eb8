//! The pages and loads of a recording that a browser can be made to request.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use url::{Host, Url};

use super::Reach;
use crate::site::model::Site;
use crate::site::page::Page;
use crate::site::resource::{Resource, ResourceKind};

/// The reason why a recorded page or load is left out of the site that browsers load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LeftOut {
    /// A load by `https`, which the origin does not serve.
    Https,
    /// A load from an address, which a browser asks without a name to resolve.
    Address,
    /// A load from a second port of a host, which the origin cannot tell from the first.
    Port,
    /// A load of the document of another page.
    Document,
    /// A page whose document is that of an earlier page.
    RepeatView,
    /// A page that does not begin with a document, or whose document is left out.
    NoDocument,
}

impl LeftOut {
    /// Returns the reason for users, as words that follow a count of loads or pages.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Https => "loads left out: their URL is https",
            Self::Address => {
                "loads left out: the host of their URL is an address, which a browser would ask itself"
            }
            Self::Port => "loads left out: another URL of their host has another port",
            Self::Document => "loads left out: another page begins with them",
            Self::RepeatView => {
                "pages left out: they are views of the document of an earlier page, as visits to that are"
            }
            Self::NoDocument => "pages left out: they do not begin with a document",
        }
    }
}

/// A recorded page as browsers load it. First come the redirects that lead to the document, and the document.
pub(super) struct PlayedPage<'a> {
    pub(super) name: &'a str,
    pub(super) loads: Vec<PlayedLoad>,
    /// The number of the page's loads up to and including its document.
    pub(super) head: usize,
}

pub(super) struct PlayedLoad {
    /// The index in the recorded site of the loaded resource.
    pub(super) resource: usize,
    /// The index, among the page's loads, of the load that caused this one in the recording; `None` if there is none,
    /// or if it is left out.
    pub(super) initiator: Option<usize>,
    /// The time at which the request begins, after the page's start: the sum of the recorded waits before it.
    pub(super) began: Duration,
    pub(super) is_inferred: bool,
    pub(super) is_needed: bool,
}

impl PlayedPage<'_> {
    /// Returns the index of the page's document among its loads.
    pub(super) fn document(&self) -> usize {
        self.head - 1
    }
}

/// Selects the recorded pages and loads that a browser can be made to request; counts the others in `left_out`.
pub(super) fn select<'a>(
    recorded: &'a Site,
    reach: Reach,
    left_out: &mut BTreeMap<LeftOut, usize>,
) -> Vec<PlayedPage<'a>> {
    let redirects = Redirects::of(recorded);
    let mut count = |why| *left_out.entry(why).or_default() += 1;
    let unreachable = unreachable(recorded, reach);
    let mut known = HashSet::new();
    let mut chosen = Vec::new();
    for page in &recorded.pages {
        let head = redirects.head(recorded, page);
        let head = head
            .filter(|head| head.iter().all(|&at| unreachable[page.loads[at].resource].is_none()));
        let Some(head) = head else {
            count(LeftOut::NoDocument);
            continue;
        };
        let document = page.loads[head[head.len() - 1]].resource;
        if known.insert(document) {
            chosen.push((page, head));
        } else {
            count(LeftOut::RepeatView);
        }
    }
    let heads: HashSet<usize> = chosen
        .iter()
        .flat_map(|(page, head)| head.iter().map(|&at| page.loads[at].resource))
        .collect();
    chosen
        .into_iter()
        .map(|(page, head)| {
            let mut is_played = |at: usize| {
                let resource = page.loads[at].resource;
                let why = unreachable[resource].or_else(|| {
                    (!head.contains(&at) && heads.contains(&resource)).then_some(LeftOut::Document)
                });
                why.map(&mut count).is_none()
            };
            let rest = (0..page.loads.len()).filter(|at| !head.contains(at));
            let order: Vec<usize> =
                head.iter().copied().chain(rest).filter(|&at| is_played(at)).collect();
            played(page, &order, head.len())
        })
        .collect()
}

fn played<'a>(page: &'a Page, order: &[usize], head: usize) -> PlayedPage<'a> {
    let place: HashMap<usize, usize> = order.iter().copied().zip(0..).collect();
    let mut began: Vec<Duration> = Vec::with_capacity(page.loads.len());
    for load in &page.loads {
        let before = load.after.map_or(Duration::ZERO, |after| began[after]);
        began.push(before.saturating_add(load.wait));
    }
    let loads = order.iter().map(|&at| {
        let load = &page.loads[at];
        PlayedLoad {
            resource: load.resource,
            initiator: load.after.and_then(|after| place.get(&after)).copied(),
            began: began[at],
            is_inferred: load.is_inferred,
            is_needed: load.is_needed,
        }
    });
    PlayedPage { name: &page.name, loads: loads.collect(), head }
}

/// The target of each redirect of a site: for each resource, the index of the resource that it redirects to.
pub(super) struct Redirects(Vec<Option<usize>>);

impl Redirects {
    pub(super) fn of(recorded: &Site) -> Self {
        let known: HashMap<&str, usize> =
            recorded.resources.iter().map(|resource| resource.url.as_str()).zip(0..).collect();
        let target = |resource: &Resource| {
            let location = resource.header_values("location").next()?;
            let mut url = Url::parse(&resource.url).ok()?.join(location).ok()?;
            url.set_fragment(None);
            let target = *known.get(url.as_str())?;
            (resource.is_redirect() && recorded.resources[target].url != resource.url)
                .then_some(target)
        };
        Self(recorded.resources.iter().map(target).collect())
    }

    pub(super) fn target(&self, resource: usize) -> Option<usize> {
        self.0[resource]
    }

    /// Returns the redirects to a page's document and the document, by their indices in its loads; `None` if the page
    /// does not begin with them.
    fn head(&self, recorded: &Site, page: &Page) -> Option<Vec<usize>> {
        let mut head = vec![0];
        let mut resource = page.loads.first()?.resource;
        while let Some(target) = self.target(resource) {
            let at = page.loads.iter().position(|load| load.resource == target)?;
            if head.contains(&at) {
                return None;
            }
            head.push(at);
            resource = target;
        }
        let document = &recorded.resources[resource];
        let is_document = document.kind == ResourceKind::Html && has_body(document);
        is_document.then_some(head)
    }
}

/// Whether the response has a body that a browser shows or runs.
pub(super) fn has_body(resource: &Resource) -> bool {
    !resource.is_redirect() && !matches!(resource.status, 204 | 205)
}

/// Returns the reason why each resource cannot be reached.
pub(super) fn unreachable(recorded: &Site, reach: Reach) -> Vec<Option<LeftOut>> {
    // By the host and whether it is by TLS: the port of the first resource.
    let mut ports: HashMap<(String, bool), u16> = HashMap::new();
    let mut why = |resource: &Resource| {
        let url = Url::parse(&resource.url).ok()?;
        let is_https = url.scheme() == "https";
        if is_https && !reach.https {
            return Some(LeftOut::Https);
        }
        let Some(Host::Domain(host)) = url.host() else { return Some(LeftOut::Address) };
        let port = url.port_or_known_default()?;
        let first = *ports.entry((host.to_owned(), is_https)).or_insert(port);
        (first != port).then_some(LeftOut::Port)
    };
    recorded.resources.iter().map(&mut why).collect()
}
