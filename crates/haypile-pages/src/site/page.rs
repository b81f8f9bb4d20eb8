//! Pages, and the order in which they load resources.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The longest wait between the end of an initiator and a request that it causes.
pub const MAX_WAIT: Duration = Duration::from_hours(1);

/// A page: the resources that a visit to it loads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The name, which no other page of the site has; at most [`super::MAX_NAME_BYTES`].
    pub name: String,
    /// The loads; the first is the page itself. No resource occurs twice, as a page keeps a
    /// resource that it has while it loads.
    pub loads: Vec<PageLoad>,
}

/// A load of a resource in a page.
///
/// A redirect is a load of its own, and its target is another, which comes after it: a loader
/// follows these lists and not the `Location`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageLoad {
    /// The resource's index in the site.
    pub resource: usize,
    /// The index, in the page's loads, of the initiator: the load that has to end first. It is
    /// smaller than this load's own. Without an initiator, the load begins with the page.
    pub after: Option<usize>,
    /// The time between the end of the initiator, or the page's beginning, and this request; at
    /// most [`MAX_WAIT`].
    pub wait: Duration,
    /// Whether the initiator was inferred from times and types, since the source does not name it.
    pub is_inferred: bool,
    /// Whether the page waits for it: a load time ends with the last byte of what is needed. What a
    /// browser requested after it had reported a page as loaded is not.
    pub is_needed: bool,
}

impl PageLoad {
    /// Makes a load that the page waits for, and whose initiator is known.
    pub fn new(resource: usize, after: Option<usize>, wait: Duration) -> Self {
        Self { resource, after, wait, is_inferred: false, is_needed: true }
    }
}
