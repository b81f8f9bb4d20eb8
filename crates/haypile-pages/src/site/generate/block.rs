//! Blocks of resources that belong together: those of a page alone, and those of all pages.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::sizes::{below, draw, draw_root};
use crate::site::body::{BodyChild, BodyFormat, TypedBody};
use crate::site::resource::ResourceKind;

/// Images whose drawn size is smaller are SVG.
const SVG_BELOW_BYTES: u64 = 1024;

/// The kinds in the order in which they are drawn: parents before their children.
const KINDS: [ResourceKind; 6] = [
    ResourceKind::Css,
    ResourceKind::Script,
    ResourceKind::Font,
    ResourceKind::Image,
    ResourceKind::Other,
    ResourceKind::Html,
];

/// Requests of a median page, in the order of [`KINDS`]; the others make up its 71 requests.
const MEDIAN: [u32; 6] = [8, 24, 4, 18, 15, 2];

/// The per cent of a page's resources that all pages share, in the order of [`KINDS`].
const SHARED_PERCENT: [u32; 6] = [50, 50, 100, 25, 0, 0];

/// The number of a page's resources of each kind (such as images), in the order of [`KINDS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KindCounts([u32; 6]);

impl KindCounts {
    /// Returns the number of resources of each kind for a page with this number of requests, in the
    /// proportions of the median page.
    pub(super) fn of_page(requests: u32) -> Self {
        let whole: u32 = MEDIAN.iter().sum();
        let mut counts = MEDIAN.map(|median| (median * requests / whole).max(1));
        // Rounding leaves a few: each goes to the kind that lacks most.
        while counts.iter().sum::<u32>() < requests {
            let lacks = |&index: &usize| {
                i64::from(MEDIAN[index] * requests) - i64::from(counts[index] * whole)
            };
            let most = (0..counts.len()).max_by_key(lacks).unwrap_or(0);
            counts[most] += 1;
        }
        Self(counts)
    }

    /// Returns how many of one page's resources of each kind all pages of a generated site share.
    pub(super) fn shared(&self) -> Self {
        let mut shared = [0; 6];
        for (index, shared) in shared.iter_mut().enumerate() {
            *shared = (self.0[index] * SHARED_PERCENT[index]).div_ceil(100);
        }
        Self(shared)
    }

    /// Returns the number of resources of each kind minus those of `other`.
    pub(super) fn without(&self, other: &Self) -> Self {
        let mut rest = self.0;
        for (rest, other) in rest.iter_mut().zip(other.0) {
            *rest -= other;
        }
        Self(rest)
    }
}

/// A resource of a generated page, with its kind (such as an image), URL and body.
pub(super) struct Item {
    pub(super) kind: ResourceKind,
    pub(super) url: String,
    pub(super) body: TypedBody,
    /// The indices of the resources that this one loads: first those of the shared block, then
    /// those of the page's own.
    pub(super) children: Vec<usize>,
}

/// The beginning of URLs: their scheme, and the folder that those of a block share.
#[derive(Clone, Copy)]
pub(super) struct UrlBase<'a> {
    pub(super) scheme: &'a str,
    pub(super) folder: &'a str,
}

/// A group of generated resources: those of one page, or those that all pages share.
pub(super) struct SiteBlock {
    /// The resources of the group; in a page's group, the document comes first.
    pub(super) items: Vec<Item>,
    /// The number of resources that all pages share; indices of children count these first.
    pub(super) shared_len: usize,
    /// The indices of the document's children.
    top: Vec<usize>,
    next_mark: u32,
}

impl SiteBlock {
    /// Generates the resources that belong together; all their URLs begin with `base`, and
    /// `first_mark` is the first unused number of an element with a style.
    pub(super) fn draw(
        rng: &mut ChaCha8Rng,
        counts: &KindCounts,
        base: UrlBase<'_>,
        first_mark: u32,
    ) -> Self {
        let mut block =
            Self { items: Vec::new(), shared_len: 0, top: Vec::new(), next_mark: first_mark };
        block.fill(rng, counts, base);
        block
    }

    /// Generates the resources of a page: its document, and what only this page loads.
    pub(super) fn draw_page(
        rng: &mut ChaCha8Rng,
        counts: &KindCounts,
        base: UrlBase<'_>,
        first_mark: u32,
        shared: &Self,
    ) -> Self {
        let root_bytes = draw_root(rng);
        let root = item(rng, ResourceKind::Html, root_bytes, base, 0);
        let mut block = Self {
            items: vec![root],
            shared_len: shared.items.len(),
            top: Vec::new(),
            next_mark: first_mark,
        };
        let mut counts = counts.clone();
        // The document itself.
        counts.0[5] -= 1;
        block.fill(rng, &counts, base);
        let (mut children, own_from) = (shared.top.clone(), shared.items.len());
        children.append(&mut block.top);
        let kind_and_url = |&index: &usize| {
            let item = match index.checked_sub(own_from) {
                Some(own) => &block.items[own],
                None => &shared.items[index],
            };
            (position(item.kind), BodyChild { url: item.url.clone(), kind: item.kind, mark: 0 })
        };
        // Style sheets first, then scripts, as in the head of a document.
        children.sort_by_key(|index| kind_and_url(index).0);
        let urls = children.iter().map(|index| kind_and_url(index).1).collect();
        let marks = block.next_mark - 1;
        let root = &mut block.items[0];
        (root.children, root.body.children, root.body.marks) = (children, urls, marks);
        block
    }

    /// Returns the number of document elements with a style, in this group of resources and those
    /// before it.
    pub(super) fn marks(&self) -> u32 {
        self.next_mark - 1
    }

    /// Returns the total length of the bodies of the group's resources, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.items.iter().map(|item| item.body.bytes).sum()
    }

    /// Returns the smallest possible total length of the bodies of the group's resources, in bytes.
    pub(super) fn min_bytes(&self) -> u64 {
        self.items.iter().map(|item| item.body.min_bytes()).sum()
    }

    /// Scales the bodies of the group's resources to a total length of `bytes`, at least
    /// [`Self::min_bytes`]; returns the total.
    pub(super) fn scale_to(&mut self, bytes: u64) -> u64 {
        let drawn = u128::from(self.bytes()).max(1);
        let mut least = Vec::new();
        for Item { body, .. } in &mut self.items {
            least.push(body.min_bytes());
            let scaled = u128::from(body.bytes) * u128::from(bytes) / drawn;
            body.bytes = u64::try_from(scaled).unwrap_or(u64::MAX);
            body.bytes = body.bytes.max(body.min_bytes());
        }
        // Rounding, and bodies that cannot be small enough: the largest take the difference.
        let mut order: Vec<_> = (0..self.items.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(self.items[index].body.bytes));
        for index in order {
            let now = self.bytes();
            let body = &mut self.items[index].body;
            if now <= bytes {
                body.bytes += bytes - now;
                break;
            }
            body.bytes = body.bytes.saturating_sub(now - bytes).max(least[index]);
        }
        self.bytes()
    }

    fn fill(&mut self, rng: &mut ChaCha8Rng, counts: &KindCounts, base: UrlBase<'_>) {
        for (kind, count) in KINDS.into_iter().zip(counts.0) {
            let sizes = draw(rng, kind, count as usize);
            for (number, bytes) in (1..).zip(sizes) {
                let parent = self.parent(rng, kind, number);
                let own = item(rng, kind, bytes, base, number);
                let index = self.shared_len + self.items.len();
                match parent {
                    None => self.top.push(index),
                    Some(parent) => {
                        let in_sheet = self.items[parent].kind == ResourceKind::Css;
                        let has_mark = in_sheet && kind != ResourceKind::Css;
                        let mark = if has_mark { self.next_mark } else { 0 };
                        self.next_mark += u32::from(has_mark);
                        let parent = &mut self.items[parent];
                        parent.children.push(index);
                        parent.body.children.push(BodyChild { url: own.url.clone(), kind, mark });
                    }
                }
                self.items.push(own);
            }
        }
    }

    /// Draws the item that loads the next one of a kind; `None` is the document.
    fn parent(&self, rng: &mut ChaCha8Rng, kind: ResourceKind, number: u32) -> Option<usize> {
        let wanted = match kind {
            ResourceKind::Css if number.is_multiple_of(4) => ResourceKind::Css,
            ResourceKind::Script if number.is_multiple_of(3) => ResourceKind::Script,
            ResourceKind::Font => ResourceKind::Css,
            ResourceKind::Other => ResourceKind::Script,
            ResourceKind::Image => match below(rng, 10) {
                0 | 1 => ResourceKind::Css,
                2 => ResourceKind::Script,
                _ => return None,
            },
            _ => return None,
        };
        let found: Vec<_> =
            (0..self.items.len()).filter(|&index| self.items[index].kind == wanted).collect();
        // The first number is drawn in any case, so that a change of one block leaves the others.
        let drawn = usize::try_from(below(rng, found.len() as u64)).unwrap_or(0);
        found.get(drawn).copied()
    }
}

fn position(kind: ResourceKind) -> usize {
    KINDS.iter().position(|other| *other == kind).unwrap_or(KINDS.len())
}

fn item(
    rng: &mut ChaCha8Rng,
    kind: ResourceKind,
    bytes: u64,
    base: UrlBase<'_>,
    number: u32,
) -> Item {
    let format = match kind {
        ResourceKind::Html => BodyFormat::Html,
        ResourceKind::Css => BodyFormat::Css,
        ResourceKind::Script => BodyFormat::Script,
        ResourceKind::Font => BodyFormat::Woff2,
        ResourceKind::Image if bytes < SVG_BELOW_BYTES => BodyFormat::Svg,
        ResourceKind::Image => BodyFormat::Png,
        ResourceKind::Other => BodyFormat::Json,
    };
    let host = match kind {
        ResourceKind::Html | ResourceKind::Other => "www",
        ResourceKind::Image => "images",
        _ => "static",
    };
    let name = if kind == ResourceKind::Html && number == 0 {
        "index.html".to_owned()
    } else {
        format!("{kind}-{number}.{}", format.extension())
    };
    let UrlBase { scheme, folder } = base;
    let url = format!("{scheme}://{host}.site.test/{folder}/{name}");
    let seed = rng.next_u64();
    let body = TypedBody { format, bytes, seed, children: Vec::new(), marks: 0 };
    Item { kind, url, body, children: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_have_the_proportions_of_the_median_page() {
        assert_eq!(KindCounts::of_page(71).0, MEDIAN);
        for requests in [super::super::MIN_REQUESTS, 24, 42, 115, 176, 1000] {
            let counts = KindCounts::of_page(requests);
            assert_eq!(counts.0.iter().sum::<u32>(), requests);
            let shared = counts.shared();
            assert!(shared.0[0] > 0 && shared.0[5] == 0, "{shared:?}");
            let whole: u32 = shared.0.iter().chain(&counts.without(&shared).0).sum();
            assert_eq!(whole, requests);
        }
    }
}
