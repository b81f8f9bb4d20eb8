//! Recorded pages as browsers can load them: documents, style sheets and scripts of a HAR get bodies that request what
//! was recorded.
//!
//! A browser decides itself what it requests. So each file gets the elements, rules and statements that request the
//! loads of which the recording names it as the initiator ([`TypedBody`](super::TypedBody)), in as many bytes as were
//! transferred, and in a valid content coding if there was one. The rest is fixed by rules:
//!
//! - A body is one for all pages: what a file initiates is what it initiated in **all** pages that load it. Anything else
//!   comes from the page's document, and so does what the file cannot request: a style sheet requests style sheets,
//!   images and fonts alone, an image nothing, and a small file less than a large one. They are counted
//!   ([`ReplayCounts::moved`]).
//! - Requests of other hosts are those of elements without CORS. Fonts are the exception, as in any page: their answers
//!   permit it (`Access-Control-Allow-Origin: *`).
//! - Data, video and all other kinds are scripts of one comment, which need no permission, and of which browsers read
//!   every byte.
//! - A redirect leads to the recorded target, or nowhere if the page does not load that.
//! - A page whose document is that of an earlier page is left out: a repeat view is a visit of the browser to the first
//!   one. Left out are pages that do not begin with a document as well.
//! - The media type is that of the body as it is here: any image is a PNG or a GIF of one pixel.

mod bodies;
mod pages;
mod parents;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use super::body::{BodyFormat, SiteBody};
use super::error::SiteError;
use super::model::Site;
use super::page::{MAX_WAIT, Page, PageLoad};
use super::resource::Resource;
use bodies::Bodies;
use pages::{PlayedPage, select, unreachable};
use parents::Parents;

pub use pages::LeftOut;

/// The URLs that a browser of an experiment can reach, by scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Whether the origin serves `https` to the browser.
    pub https: bool,
}

/// A recorded site, changed so that browsers make the recorded requests by themselves.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Replay {
    /// The site that browsers load. All of its bodies are typed or encoded.
    pub site: Site,
    /// Counts of the differences between the site that browsers load and the recording.
    pub counts: ReplayCounts,
}

/// Counts of the differences between a recording and the site that browsers load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplayCounts {
    /// The number of loads in all recorded pages.
    pub recorded: usize,
    /// The number of recorded loads that browsers request.
    pub requested: usize,
    /// The number of loads that the page's document requests instead of their initiator (cause) in the recording.
    pub moved: usize,
    /// The number of recorded loads and pages that browsers do not load, by the reason.
    pub left_out: BTreeMap<LeftOut, usize>,
    /// The number of documents that are larger than recorded, because of the requests that they have to make.
    pub enlarged: usize,
    /// The number of bodies that are sent without their recorded content coding, because they are too small for it.
    pub uncoded: usize,
    /// The number of redirects that lead nowhere, because a page that loads them does not load their target.
    pub unfollowed: usize,
}

impl ReplayCounts {
    /// Returns sentences for users about the differences between the recording and the site that browsers load.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!(
            "browsers request {} of {} recorded loads, {} of them from the page's document in the place of their \
             recorded initiator",
            self.requested, self.recorded, self.moved
        )];
        let left_out = self.left_out.iter().map(|(why, count)| (*count, why.reason()));
        let others = [
            (self.enlarged, "documents are larger than recorded: they have to request more"),
            (
                self.uncoded,
                "bodies are sent without their content coding: they are too small for it",
            ),
            (self.unfollowed, "redirects lead nowhere: a page does not load their target"),
        ];
        let counted = left_out.chain(others).filter(|(count, _)| *count > 0);
        notes.extend(counted.map(|(count, what)| format!("{count} {what}")));
        notes
    }
}

/// Converts a recorded site into one whose pages make a browser send the recorded requests.
///
/// # Errors
///
/// [`SiteError::Replay`] if no page can be loaded, and those of [`Site::validate`].
pub fn for_browsers(recorded: &Site, reach: Reach) -> Result<Replay, SiteError> {
    let mut counts = ReplayCounts {
        recorded: recorded.pages.iter().map(|page| page.loads.len()).sum(),
        ..ReplayCounts::default()
    };
    let pages = select(recorded, reach, &mut counts.left_out);
    if pages.is_empty() {
        let reasons: Vec<_> = counts.notes().into_iter().skip(1).collect();
        return Err(SiteError::Replay { wrong: reasons.join("; ") });
    }
    let mut parents = Parents::of(recorded, &pages);
    let mut bodies = Bodies::new(recorded, &pages);
    while bodies.has_too_many(&mut parents, &pages) {}
    counts.unfollowed = parents.unfollowed();
    let site = assemble(recorded, &pages, &parents, &bodies, &mut counts);
    site.validate()?;
    Ok(Replay { site, counts })
}

/// Counts the resources of a site that a browser cannot be led to the origin for, by the reason.
pub fn out_of_reach(site: &Site, reach: Reach) -> BTreeMap<LeftOut, usize> {
    let mut counts = BTreeMap::new();
    for why in unreachable(site, reach).into_iter().flatten() {
        *counts.entry(why).or_default() += 1;
    }
    counts
}

fn assemble(
    recorded: &Site,
    pages: &[PlayedPage<'_>],
    parents: &Parents<'_>,
    bodies: &Bodies<'_>,
    counts: &mut ReplayCounts,
) -> Site {
    let mut site = Site::default();
    let mut moved_to = vec![None; recorded.resources.len()];
    let made = bodies.make(parents, pages);
    for (index, resource) in recorded.resources.iter().enumerate() {
        let Some(body) = made[index].as_ref() else { continue };
        counts.enlarged += usize::from(body.len() > resource.body.len());
        counts.uncoded += usize::from(resource.coding.is_some() && body.coding().is_none());
        moved_to[index] = Some(site.resources.len());
        site.resources.push(played(resource, body.clone(), &parents.headers(index)));
    }
    for page in pages {
        let after = parents.within(page);
        let load = |(index, played): (usize, &pages::PlayedLoad)| {
            let parent = after[index];
            let wait = parent.map_or(Duration::ZERO, |parent| {
                played.began.saturating_sub(page.loads[parent].began).min(MAX_WAIT)
            });
            PageLoad {
                resource: moved_to[played.resource].expect("all loads have a body"),
                after: parent,
                wait,
                is_inferred: played.is_inferred,
                is_needed: played.is_needed || index < page.head,
            }
        };
        counts.requested += page.loads.len();
        counts.moved += parents.moved(page);
        let loads = page.loads.iter().enumerate().map(load).collect();
        site.pages.push(Page { name: page.name.to_owned(), loads });
    }
    site
}

/// The recorded resource with another body, and the header lines that go with it.
fn played(recorded: &Resource, body: SiteBody, headers: &parents::ResourceHeaders) -> Resource {
    let is_replaced =
        |name: &str| ["content-type", "location", "access-control-allow-origin"].contains(&name);
    let kept = recorded.headers.iter().filter(|(name, _)| !is_replaced(name)).cloned();
    let media_type = match &body {
        SiteBody::Typed(typed) if typed.format == BodyFormat::Png => typed.format.media_type(),
        _ => headers.media_type,
    };
    let own = [
        ("content-type", Some(media_type)),
        ("location", headers.location.as_deref()),
        ("access-control-allow-origin", headers.is_of_fonts.then_some("*")),
    ];
    let own =
        own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    Resource {
        url: recorded.url.clone(),
        kind: headers.kind,
        status: recorded.status,
        headers: own.chain(kept).take(super::resource::MAX_HEADERS).collect(),
        body,
        coding: None,
    }
}
