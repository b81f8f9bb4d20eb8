//! The bodies of recorded resources, which request their children in the recorded number of bytes.

use std::collections::{HashMap, HashSet};

use super::pages::PlayedPage;
use super::parents::Parents;
use crate::site::body::{
    BodyChild, BodyFormat, ContentCoding, EncodedBody, RecordedCoding, SiteBody, TypedBody,
};
use crate::site::model::Site;
use crate::site::resource::ResourceKind;

/// The bodies of a recorded site's resources, while the requests that each of them has to make in a browser are
/// decided.
pub(super) struct Bodies<'a> {
    recorded: &'a Site,
    documents: HashSet<usize>,
}

/// The marks of images and fonts: the element of the document that uses each, by the resource that requests it and by
/// itself.
struct Marks {
    of: HashMap<(usize, usize), u32>,
    /// The number of elements that a document has to have.
    in_document: HashMap<usize, u32>,
}

impl<'a> Bodies<'a> {
    pub(super) fn new(recorded: &'a Site, pages: &[PlayedPage<'_>]) -> Self {
        let documents = pages.iter().map(|page| page.loads[page.document()].resource).collect();
        Self { recorded, documents }
    }

    /// Moves requests from bodies that are too small for them to the pages' documents; returns whether any were moved.
    pub(super) fn has_too_many(
        &mut self,
        parents: &mut Parents<'_>,
        pages: &[PlayedPage<'_>],
    ) -> bool {
        let marks = Marks::of(parents, pages);
        let mut has_moved = false;
        for resource in 0..self.recorded.resources.len() {
            if self.documents.contains(&resource) {
                continue;
            }
            while !parents.children(resource).is_empty()
                && !is_blank(parents.format(resource))
                && self.body(resource, parents.children(resource), parents, &marks).is_none()
            {
                parents.move_last_child(resource);
                has_moved = true;
            }
        }
        has_moved
    }

    /// Generates the bodies of all resources that browsers load, each with the requests that it has to make.
    pub(super) fn make(
        &self,
        parents: &Parents<'_>,
        pages: &[PlayedPage<'_>],
    ) -> Vec<Option<SiteBody>> {
        let marks = Marks::of(parents, pages);
        let mut requested: Vec<Vec<usize>> = (0..self.recorded.resources.len())
            .map(|resource| parents.children(resource).to_vec())
            .collect();
        for page in pages {
            let document = page.document();
            let within = parents.within(page);
            let of_document =
                (page.head..page.loads.len()).filter(|&at| within[at] == Some(document));
            requested[page.loads[document].resource] =
                of_document.map(|at| page.loads[at].resource).collect();
        }
        let make = |resource: usize| {
            let children = &requested[resource];
            let made = self.body(resource, children, parents, &marks);
            made.unwrap_or_else(|| self.enlarged(resource, children, parents, &marks))
        };
        (0..self.recorded.resources.len())
            .map(|resource| parents.is_loaded(resource).then(|| make(resource)))
            .collect()
    }

    /// Makes a body of the recorded size; `None` if that is too small for these children.
    fn body(
        &self,
        resource: usize,
        children: &[usize],
        parents: &Parents<'_>,
        marks: &Marks,
    ) -> Option<SiteBody> {
        let recorded = &self.recorded.resources[resource];
        let bytes = recorded.body.len();
        let mut content = self.content(resource, children, parents, marks);
        if let Some(RecordedCoding { coding, decoded_bytes }) = recorded.coding {
            // Browsers accept br over TLS alone.
            let coding = if recorded.is_https() { coding } else { ContentCoding::Gzip };
            let encoded = EncodedBody::fit(coding, bytes, decoded_bytes, &content);
            if encoded.is_some() {
                return encoded.map(SiteBody::Encoded);
            }
        }
        if content.format == BodyFormat::Gif {
            let png = TypedBody { format: BodyFormat::Png, ..content.clone() };
            if png.min_bytes() <= bytes {
                content = png;
            }
        }
        if content.min_bytes() > bytes {
            if !children.is_empty() {
                return None;
            }
            content = TypedBody { format: BodyFormat::Blank, marks: 0, ..content };
        }
        Some(SiteBody::Typed(TypedBody { bytes, ..content }))
    }

    /// Makes the smallest body with these children.
    fn enlarged(
        &self,
        resource: usize,
        children: &[usize],
        parents: &Parents<'_>,
        marks: &Marks,
    ) -> SiteBody {
        let content = self.content(resource, children, parents, marks);
        let gzip = |_| {
            let coding = ContentCoding::Gzip;
            let bytes = EncodedBody::min_bytes(coding, &content);
            EncodedBody::fit(coding, bytes, None, &content).map(SiteBody::Encoded)
        };
        let coded = self.recorded.resources[resource].coding.and_then(gzip);
        coded.unwrap_or_else(|| {
            SiteBody::Typed(TypedBody { bytes: content.min_bytes(), ..content.clone() })
        })
    }

    fn content(
        &self,
        resource: usize,
        children: &[usize],
        parents: &Parents<'_>,
        marks: &Marks,
    ) -> TypedBody {
        let format = parents.format(resource);
        let child = |&child: &usize| BodyChild {
            url: self.recorded.resources[child].url.clone(),
            kind: parents.child_kind(child),
            mark: marks.of.get(&(resource, child)).copied().unwrap_or(0),
        };
        let seed = match self.recorded.resources[resource].body {
            SiteBody::Generated { seed, .. } => seed,
            _ => 0,
        };
        let mut children: Vec<BodyChild> = children.iter().map(child).collect();
        if is_blank(format) {
            children.clear();
        }
        // The rules of a style sheet come after its imports.
        if format == BodyFormat::Css {
            children.sort_by_key(|child| child.kind != ResourceKind::Css);
        }
        let marks = marks.in_document.get(&resource).copied().unwrap_or(0);
        TypedBody { format, bytes: 0, seed, children, marks }
    }
}

/// Whether a body of this format requests nothing; what its resource leads to is in its header.
fn is_blank(format: BodyFormat) -> bool {
    format == BodyFormat::Blank
}

impl Marks {
    fn of(parents: &Parents<'_>, pages: &[PlayedPage<'_>]) -> Self {
        // The documents in which each image or font of a style sheet is used, in the order of the loads.
        let mut order = Vec::new();
        let mut documents: HashMap<(usize, usize), HashSet<usize>> = HashMap::new();
        for page in pages {
            let within = parents.within(page);
            for (at, load) in page.loads.iter().enumerate().skip(page.head) {
                let Some(parent) = within[at] else { continue };
                let requested_by = page.loads[parent].resource;
                let is_marked =
                    match (parents.kind(requested_by), parents.child_kind(load.resource)) {
                        (ResourceKind::Css, kind) => kind != ResourceKind::Css,
                        (ResourceKind::Html, kind) => kind == ResourceKind::Font,
                        _ => false,
                    };
                if !is_marked {
                    continue;
                }
                let mut above = parent;
                while parents.kind(page.loads[above].resource) != ResourceKind::Html {
                    match within[above] {
                        Some(next) => above = next,
                        None => break,
                    }
                }
                let pair = (requested_by, load.resource);
                let known = documents.entry(pair).or_insert_with(|| {
                    order.push(pair);
                    HashSet::new()
                });
                known.insert(page.loads[above].resource);
            }
        }
        let mut used: HashMap<usize, HashSet<u32>> = HashMap::new();
        let mut of = HashMap::new();
        for pair in order {
            let is_free = |mark: &u32| {
                documents[&pair]
                    .iter()
                    .all(|document| used.get(document).is_none_or(|used| !used.contains(mark)))
            };
            let mark = (1..=u32::MAX).find(is_free).expect("a site has fewer resources");
            for &document in &documents[&pair] {
                used.entry(document).or_default().insert(mark);
            }
            of.insert(pair, mark);
        }
        let most = |(document, used): (usize, HashSet<u32>)| {
            (document, used.into_iter().max().unwrap_or(0))
        };
        Self { of, in_document: used.into_iter().map(most).collect() }
    }
}
