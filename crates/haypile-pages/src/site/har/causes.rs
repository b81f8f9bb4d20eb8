//! The initiators of a page's loads: named by the HAR, or inferred.

use std::collections::HashMap;

use super::pages::Loaded;
use crate::site::resource::ResourceKind;

/// The load that caused another load of a page (its initiator), and whether it was inferred.
pub(super) struct Cause {
    pub(super) after: Option<usize>,
    pub(super) is_inferred: bool,
}

/// Earlier loads of a page (documents, style sheets and scripts) that may have caused a later one.
#[derive(Default)]
pub(super) struct Candidates {
    /// The end, kind and index of documents, style sheets and scripts.
    all: Vec<(f64, ResourceKind, usize)>,
}

impl Candidates {
    pub(super) fn add(&mut self, index: usize, load: &Loaded<'_>) {
        let kind = load.exchange.kind;
        let is_code = matches!(kind, ResourceKind::Html | ResourceKind::Css | ResourceKind::Script);
        // An error page in the place of a script causes nothing.
        if is_code && matches!(load.exchange.status, 200 | 203 | 206 | 304) {
            self.all.push((load.ended_ms, kind, index));
        }
    }

    /// Finds the candidate that ended last before a load began. Style sheets cause only style
    /// sheets, fonts and images; a font is caused by a style sheet if there is one.
    fn infer(&self, load: &Loaded<'_>) -> Option<usize> {
        let wanted = load.exchange.kind;
        let can_cause = |kind| match kind {
            ResourceKind::Css => {
                matches!(wanted, ResourceKind::Css | ResourceKind::Font | ResourceKind::Image)
            }
            _ => true,
        };
        let ended = self.all.iter().filter(|(end, ..)| *end <= load.started_ms);
        let last = |list: &mut dyn Iterator<Item = &(f64, ResourceKind, usize)>| {
            list.max_by(|one, other| one.0.total_cmp(&other.0)).map(|&(_, _, index)| index)
        };
        let sheet = (wanted == ResourceKind::Font)
            .then(|| last(&mut ended.clone().filter(|(_, kind, _)| *kind == ResourceKind::Css)));
        sheet.flatten().or_else(|| last(&mut ended.filter(|(_, kind, _)| can_cause(*kind))))
    }
}

/// Finds the initiator (the load that caused it) of a load among the earlier loads of its page;
/// `by_url` maps URLs to loads, and `redirects` maps the target URLs of redirects to loads.
pub(super) fn find_cause(
    load: &Loaded<'_>,
    by_url: &HashMap<&str, usize>,
    redirects: &HashMap<&str, usize>,
    candidates: &Candidates,
    index: usize,
) -> Cause {
    if index == 0 {
        return Cause { after: None, is_inferred: false };
    }
    let named = || by_url.get(load.exchange.initiator.as_deref()?);
    if let Some(&after) = redirects.get(load.exchange.url.as_str()).or_else(named) {
        return Cause { after: Some(after), is_inferred: false };
    }
    // A browser reads a document while it arrives: what began before the first one ended has it
    // as its cause, or else the page itself.
    let first_document = || candidates.all.iter().find(|(_, kind, _)| *kind == ResourceKind::Html);
    let document = || first_document().map_or(0, |&(_, _, index)| index);
    let after = candidates.infer(load).unwrap_or_else(document);
    Cause { after: Some(after), is_inferred: true }
}
