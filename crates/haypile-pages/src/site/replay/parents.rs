//! The file that requests each load of a page.

use std::collections::{HashMap, HashSet};

use super::pages::{PlayedPage, Redirects, has_body};
use crate::site::body::BodyFormat;
use crate::site::model::Site;
use crate::site::resource::ResourceKind;

/// The resources that each file of a replayed site makes a browser request. They are the same in all pages, except that
/// a page's document, which no other page loads, requests all of the page that no other file does.
pub(super) struct Parents<'a> {
    recorded: &'a Site,
    /// The resources that each resource requests, in the order of the first page that loads it.
    children: Vec<Vec<usize>>,
    /// The kind as which each resource is loaded.
    kinds: Vec<ResourceKind>,
    redirects: Redirects,
    is_loaded: Vec<bool>,
    /// The document of each page, and the redirects that lead to it.
    heads: HashSet<usize>,
}

/// The header lines of a replayed resource that depend on its body, such as the media type.
pub(super) struct ResourceHeaders {
    pub(super) kind: ResourceKind,
    pub(super) media_type: &'static str,
    pub(super) location: Option<String>,
    /// Whether the resource is a font, or redirects to one.
    pub(super) is_of_fonts: bool,
}

impl<'a> Parents<'a> {
    pub(super) fn of(recorded: &'a Site, pages: &[PlayedPage<'_>]) -> Self {
        let count = recorded.resources.len();
        let mut parents = Self {
            recorded,
            children: vec![Vec::new(); count],
            kinds: recorded.resources.iter().map(|resource| resource.kind).collect(),
            redirects: Redirects::of(recorded),
            is_loaded: vec![false; count],
            heads: HashSet::new(),
        };
        let mut common: Vec<Option<Vec<usize>>> = vec![None; count];
        for page in pages {
            let mut own: HashMap<usize, Vec<usize>> = HashMap::new();
            parents.heads.extend(page.loads[..page.head].iter().map(|load| load.resource));
            for load in &page.loads {
                parents.is_loaded[load.resource] = true;
                if let Some(initiator) = load.initiator {
                    own.entry(page.loads[initiator].resource).or_default().push(load.resource);
                }
            }
            for load in &page.loads {
                let requested = own.remove(&load.resource).unwrap_or_default();
                match &mut common[load.resource] {
                    Some(common) => common.retain(|child| requested.contains(child)),
                    first => *first = Some(requested),
                }
            }
        }
        parents.children = common.into_iter().map(Option::unwrap_or_default).collect();
        for resource in (0..count).filter(|&resource| recorded.resources[resource].is_redirect()) {
            let target = parents.redirects.target(resource);
            let is_head = parents.heads.contains(&resource);
            parents.children[resource].retain(|child| Some(*child) == target && !is_head);
        }
        for resource in 0..count {
            parents.kinds[resource] = parents.kind_at_end(resource);
        }
        for resource in 0..count {
            let children = parents.children[resource].iter().copied();
            let children = children.filter(|&child| parents.can_request(resource, child)).collect();
            parents.children[resource] = children;
        }
        parents
    }

    /// The kind of what a resource is, or leads to.
    fn kind_at_end(&self, resource: usize) -> ResourceKind {
        let mut end = resource;
        // A redirect that leads back to one before it has no end.
        for _ in 0..self.children.len() {
            let recorded = &self.recorded.resources[end];
            match self.target(end) {
                Some(target) => end = target,
                None if recorded.is_redirect() => return ResourceKind::Other,
                None if recorded.kind == ResourceKind::Html && !has_body(recorded) => {
                    return ResourceKind::Other;
                }
                None => return recorded.kind,
            }
        }
        ResourceKind::Other
    }

    /// The resource that a redirect leads to.
    fn target(&self, resource: usize) -> Option<usize> {
        let target = self.redirects.target(resource)?;
        let is_followed =
            self.heads.contains(&resource) || self.children[resource].contains(&target);
        is_followed.then_some(target)
    }

    fn can_request(&self, resource: usize, child: usize) -> bool {
        let recorded = &self.recorded.resources[resource];
        if recorded.is_redirect() {
            return self.target(resource) == Some(child);
        }
        // A browser takes a style sheet or a script from a successful answer alone, and shows any document.
        let is_used =
            matches!(recorded.status, 200..300) || self.kinds[resource] == ResourceKind::Html;
        is_used && has_body(recorded) && self.format(resource).loads(self.child_kind(child))
    }

    /// Returns the kind (such as an image) as which another file of the replayed site requests the resource.
    pub(super) fn child_kind(&self, resource: usize) -> ResourceKind {
        match self.kinds[resource] {
            ResourceKind::Other => ResourceKind::Script,
            kind => kind,
        }
    }

    pub(super) fn kind(&self, resource: usize) -> ResourceKind {
        self.kinds[resource]
    }

    /// Returns the file format of a resource's generated body.
    pub(super) fn format(&self, resource: usize) -> BodyFormat {
        if !has_body(&self.recorded.resources[resource]) {
            return BodyFormat::Blank;
        }
        match self.kinds[resource] {
            ResourceKind::Html => BodyFormat::Html,
            ResourceKind::Css => BodyFormat::Css,
            ResourceKind::Script | ResourceKind::Other => BodyFormat::Script,
            ResourceKind::Image => BodyFormat::Gif,
            ResourceKind::Font => BodyFormat::Woff2,
        }
    }

    pub(super) fn is_loaded(&self, resource: usize) -> bool {
        self.is_loaded[resource]
    }

    pub(super) fn children(&self, resource: usize) -> &[usize] {
        &self.children[resource]
    }

    /// Moves the request that a resource's body makes last to the document of each page.
    pub(super) fn move_last_child(&mut self, resource: usize) {
        self.children[resource].pop();
    }

    /// Returns, for each load of a page, the index of the load that requests it; `None` for the first.
    pub(super) fn within(&self, page: &PlayedPage<'_>) -> Vec<Option<usize>> {
        let document = page.document();
        let of = |(at, load): (usize, &super::pages::PlayedLoad)| {
            if at < page.head {
                return at.checked_sub(1);
            }
            let initiator = load.initiator.filter(|&initiator| {
                self.children[page.loads[initiator].resource].contains(&load.resource)
            });
            Some(initiator.unwrap_or(document))
        };
        page.loads.iter().enumerate().map(of).collect()
    }

    /// Returns the number of a page's loads that the document requests instead of their initiator (cause) in the
    /// recording.
    pub(super) fn moved(&self, page: &PlayedPage<'_>) -> usize {
        let within = self.within(page);
        let loads = page.loads.iter().enumerate().skip(page.head);
        loads.filter(|(at, load)| within[*at] != load.initiator).count()
    }

    /// Returns the number of redirects of a replayed site that lead nowhere, because their target is not loaded.
    pub(super) fn unfollowed(&self) -> usize {
        let all = 0..self.recorded.resources.len();
        let is_one = |&resource: &usize| {
            self.is_loaded[resource]
                && self.recorded.resources[resource].is_redirect()
                && self.target(resource).is_none()
        };
        all.filter(is_one).count()
    }

    pub(super) fn headers(&self, resource: usize) -> ResourceHeaders {
        let kind = self.kinds[resource];
        let target = self.target(resource);
        let media_type = match self.format(resource) {
            BodyFormat::Blank => BodyFormat::Html.media_type(),
            format => format.media_type(),
        };
        ResourceHeaders {
            kind,
            media_type,
            location: target.map(|target| self.recorded.resources[target].url.clone()),
            is_of_fonts: kind == ResourceKind::Font,
        }
    }
}
