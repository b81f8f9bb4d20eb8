//! The order in which themes are searched.

use std::collections::BTreeSet;

use super::file::is_name;

/// The theme that every other inherits.
const LAST_THEME: &str = "hicolor";
/// The most themes that are searched.
const MAX_THEMES: usize = 64;

/// The order in which icon themes are searched by the specification: a theme, those that it
/// inherits (depth first, each once), and `hicolor` last.
#[derive(Clone, Debug)]
pub struct Inheritance {
    left: Vec<String>,
    seen: BTreeSet<String>,
    is_over: bool,
}

impl Inheritance {
    /// Returns the search order of themes that begins with this theme.
    pub fn of(theme: &str) -> Self {
        Self { left: vec![theme.to_owned()], seen: BTreeSet::new(), is_over: false }
    }

    /// Returns the next theme to search; the caller then reports its parents by [`Self::inherit`],
    /// before the next call.
    pub fn next_theme(&mut self) -> Option<String> {
        while let Some(name) = self.left.pop() {
            let is_new = name != LAST_THEME && is_name(&name) && self.seen.len() < MAX_THEMES;
            if is_new && self.seen.insert(name.clone()) {
                return Some(name);
            }
        }
        (!std::mem::replace(&mut self.is_over, true)).then(|| LAST_THEME.to_owned())
    }

    /// Adds the themes that the last returned theme inherits to the search order. `hicolor` stays
    /// last.
    pub fn inherit(&mut self, parents: Vec<String>) {
        if !self.is_over {
            self.left.extend(parents.into_iter().rev());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(theme: &str, parents: &[(&str, &[&str])]) -> Vec<String> {
        let mut inheritance = Inheritance::of(theme);
        let mut order = Vec::new();
        while let Some(name) = inheritance.next_theme() {
            let own = parents.iter().find(|(theme, _)| *theme == name).map_or(&[][..], |it| it.1);
            inheritance.inherit(own.iter().map(|&name| name.to_owned()).collect());
            order.push(name);
        }
        order
    }

    #[test]
    fn themes_come_depth_first_each_once_and_hicolor_last() {
        let parents: [(&str, &[&str]); 4] =
            [("a", &["b", "hicolor", "c"]), ("b", &["d", "a"]), ("c", &["d"]), ("hicolor", &["z"])];
        assert_eq!(order("a", &parents), ["a", "b", "d", "c", "hicolor"]);
        assert_eq!(order("hicolor", &parents), ["hicolor"]);
        assert_eq!(order("../x", &parents), ["hicolor"]);
    }
}
