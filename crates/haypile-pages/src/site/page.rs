//! Pages, and the order in which they load resources.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The longest allowed wait of a page between the end of a load and a request that it causes.
pub const MAX_WAIT: Duration = Duration::from_hours(1);

/// A page of a site: the resources that a visit to it loads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The name of the page, which no other page of the site has; at most
    /// [`super::MAX_NAME_BYTES`].
    pub name: String,
    /// The loads of the page; the first is its document. No resource occurs twice, because a page
    /// keeps a resource while it loads.
    pub loads: Vec<PageLoad>,
}

/// A load of a resource by a page, with the load that causes it.
///
/// A redirect is a load of its own, and its target is another, which comes after it: a loader
/// follows these lists and not the `Location`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageLoad {
    /// The index in the site of the loaded resource.
    pub resource: usize,
    /// The index, among the page's loads, of the initiator: the load that has to end first. It is
    /// smaller than this load's own index; `None` for a load that begins with the page.
    pub after: Option<usize>,
    /// The time between the end of the initiator, or the page's beginning, and the request of this
    /// load; at most [`MAX_WAIT`].
    pub wait: Duration,
    /// Whether the initiator of the load was inferred from times and types, since the source does
    /// not name it.
    pub is_inferred: bool,
    /// Whether the page waits for the load, so that it counts for the page's load time. A load that
    /// the browser began after it had reported the page as loaded does not.
    pub is_needed: bool,
}

impl Page {
    /// Returns the shortest possible load time of the page, if responses take no time: the longest
    /// chain of waits between loads and those that they cause.
    pub fn waits(&self) -> Duration {
        let mut began: Vec<Duration> = Vec::with_capacity(self.loads.len());
        for load in &self.loads {
            let before = load.after.and_then(|after| began.get(after)).copied();
            began.push(before.unwrap_or_default().saturating_add(load.wait));
        }
        let needed = began.iter().zip(&self.loads).filter(|(_, load)| load.is_needed);
        needed.map(|(began, _)| *began).max().unwrap_or_default()
    }
}

impl PageLoad {
    /// Creates a load of a resource that the page waits for, and whose initiator is known.
    pub fn new(resource: usize, after: Option<usize>, wait: Duration) -> Self {
        Self { resource, after, wait, is_inferred: false, is_needed: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_add_up_along_the_longest_chain_of_what_is_needed() {
        let ms = Duration::from_millis;
        let mut loads = vec![
            PageLoad::new(0, None, ms(0)),
            PageLoad::new(1, Some(0), ms(100)),
            PageLoad::new(2, Some(1), ms(50)),
            PageLoad::new(3, Some(0), ms(120)),
            PageLoad::new(4, Some(2), ms(1000)),
        ];
        loads[4].is_needed = false;
        assert_eq!(Page { name: String::new(), loads }.waits(), ms(150));
        assert_eq!(Page { name: String::new(), loads: Vec::new() }.waits(), ms(0));
    }
}
