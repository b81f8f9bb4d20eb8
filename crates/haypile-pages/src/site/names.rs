//! Names of pages, unique in their site.

use std::collections::{HashMap, HashSet};

use super::model::MAX_NAME_BYTES;
use super::page::Page;

/// Room for the number behind a name.
const SUFFIX_BYTES: usize = 16;

/// A set of the names of a site's pages.
#[derive(Default)]
pub(super) struct PageNames {
    used: HashSet<String>,
    /// The next number to try, by the name without its number.
    next: HashMap<String, usize>,
}

impl PageNames {
    /// Creates the set of the names of these pages.
    pub(super) fn of(pages: &[Page]) -> Self {
        let used = pages.iter().map(|page| page.name.clone()).collect();
        Self { used, next: HashMap::new() }
    }

    /// Returns the name `wanted` for a page, or a name made from it that no other page has.
    pub(super) fn unused(&mut self, wanted: &str) -> String {
        let wanted = wanted.trim();
        let wanted = if wanted.is_empty() { "page" } else { wanted };
        let base = &wanted[..wanted.floor_char_boundary(MAX_NAME_BYTES - SUFFIX_BYTES)];
        if self.used.insert(base.to_owned()) {
            return base.to_owned();
        }
        let next = self.next.entry(base.to_owned()).or_insert(2);
        loop {
            let name = format!("{base} ({next})");
            *next += 1;
            if self.used.insert(name.clone()) {
                return name;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_short_and_new() {
        let mut names = PageNames::default();
        let made = [" b ", "b (2)", "b", "b", "", " "].map(|wanted| names.unused(wanted));
        assert_eq!(made, ["b", "b (2)", "b (3)", "b (4)", "page", "page (2)"]);
        let long = "ä".repeat(MAX_NAME_BYTES);
        assert!(names.unused(&long).len() < MAX_NAME_BYTES);
        assert!(names.unused(&long).len() < MAX_NAME_BYTES);
    }
}
