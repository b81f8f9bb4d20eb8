//! Queries that make no difference: `No-Vary-Search`
//! (<https://datatracker.ietf.org/doc/draft-ietf-httpbis-no-vary-search/>).

use http::{HeaderMap, HeaderName};
use sfv::{BareItem, Dictionary, InnerList, ListEntry, Parser};
use url::form_urlencoded;

use super::list::joined;

const NO_VARY_SEARCH: HeaderName = HeaderName::from_static("no-vary-search");

/// The rule of a response (`No-Vary-Search`) on which query parameters of the URL decide the
/// response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SearchRule {
    /// Whether the order of parameters of different names makes no difference.
    is_unordered: bool,
    parameters: Parameters,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Parameters {
    /// All parameters except these, which are in order.
    AllBut(Vec<String>),
    /// These parameters alone, in order.
    Only(Vec<String>),
}

impl SearchRule {
    /// Reads the `No-Vary-Search` rule of a response; `None` if it has none or an invalid one, so
    /// that the whole query decides.
    pub fn of(response: &HeaderMap) -> Option<Self> {
        if !response.contains_key(NO_VARY_SEARCH) {
            return None;
        }
        Self::parse(&joined(response, &NO_VARY_SEARCH))
    }

    /// Parses the text of a `No-Vary-Search` field; `None` if it is invalid, or makes the whole
    /// query decide.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let dictionary: Dictionary = Parser::new(text).parse().ok()?;
        let is_unordered = match dictionary.get("key-order") {
            None => false,
            Some(entry) => boolean(entry)?,
        };
        let params = dictionary.get("params");
        let parameters = match (params, dictionary.get("except")) {
            (None, None) => Parameters::AllBut(Vec::new()),
            (Some(params), None) => match boolean(params) {
                Some(true) => Parameters::Only(Vec::new()),
                Some(false) => Parameters::AllBut(Vec::new()),
                None => Parameters::AllBut(strings(params)?),
            },
            (Some(params), Some(except)) if boolean(params)? => Parameters::Only(strings(except)?),
            _ => return None,
        };
        let rule = Self { is_unordered, parameters };
        let says_nothing =
            rule == Self { is_unordered: false, parameters: Parameters::AllBut(Vec::new()) };
        (!says_nothing).then_some(rule)
    }

    /// Returns the rule on query parameters as the text of a `No-Vary-Search` field.
    pub(crate) fn text(&self) -> String {
        let quoted = |name: &String| {
            let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
            format!("\"{name}\"")
        };
        let list = |names: &[String]| names.iter().map(quoted).collect::<Vec<_>>().join(" ");
        let order = if self.is_unordered { "key-order, " } else { "" };
        match &self.parameters {
            Parameters::AllBut(names) => format!("{order}params=({})", list(names)),
            Parameters::Only(names) => format!("{order}params, except=({})", list(names)),
        }
    }

    /// Returns the deciding part of a URL's query in a normal form, which is equal for queries with
    /// the same response.
    pub fn deciding(&self, query: &str) -> String {
        let mut pairs: Vec<_> = form_urlencoded::parse(query.as_bytes())
            .filter(|(name, _)| match &self.parameters {
                Parameters::AllBut(names) => !names.iter().any(|other| other == name),
                Parameters::Only(names) => names.iter().any(|other| other == name),
            })
            .collect();
        if self.is_unordered {
            pairs.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
        }
        form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
    }
}

fn boolean(entry: &ListEntry) -> Option<bool> {
    if let ListEntry::Item(item) = entry { item.bare_item.as_boolean() } else { None }
}

/// Returns the names of parameters that a list has, in order.
fn strings(entry: &ListEntry) -> Option<Vec<String>> {
    let ListEntry::InnerList(InnerList { items, .. }) = entry else { return None };
    let name = |item: &sfv::Item| match &item.bare_item {
        // They are written as in a query.
        BareItem::String(text) => {
            let parsed = form_urlencoded::parse(text.as_str().as_bytes()).next();
            Some(parsed.map(|(name, _)| name.into_owned()).unwrap_or_default())
        }
        _ => None,
    };
    let mut names = items.iter().map(name).collect::<Option<Vec<_>>>()?;
    names.sort_unstable();
    names.dedup();
    Some(names)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn same(rule: &str, one: &str, other: &str) -> bool {
        let rule = SearchRule::parse(rule.as_bytes()).expect("a rule");
        rule.deciding(one) == rule.deciding(other)
    }

    #[test]
    fn queries_that_make_no_difference() {
        for (rule, one, other, is_same) in [
            ("key-order", "a=1&b=2", "b=2&a=1", true),
            ("key-order", "a=1&a=2", "a=2&a=1", false),
            ("params", "a=1&b=2", "", true),
            (
                "params=(\"utm_source\" \"utm_medium\")",
                "utm_source=x&id=1",
                "id=1&utm_medium=y",
                true,
            ),
            ("params=(\"utm_source\")", "id=1", "id=2", false),
            ("params=(\"utm_source\")", "a=1&b=2", "b=2&a=1", false),
            ("params, except=(\"id\")", "id=1&x=2", "y=3&id=1", true),
            ("params, except=(\"id\")", "id=1", "id=2", false),
            ("params, except=(\"a\" \"b\"), key-order", "b=2&c=3&a=1", "a=1&b=2", true),
            // Names and values are compared decoded.
            ("params=(\"a b\")", "a+b=1&c=%41", "c=A&a%20b=2", true),
            ("params=(\"%C3%A9\")", "é=1", "%c3%a9=2", true),
            ("key-order", "a=1&b", "b=&a=1", true),
        ] {
            assert_eq!(same(rule, one, other), is_same, "{rule}: {one} {other}");
        }
    }

    #[test]
    fn rules_that_are_none() {
        for text in [
            "",
            "params=()",
            "key-order=?0",
            "params=?0",
            "params=?0, except=(\"a\")",
            "except=(\"a\")",
            "params=1",
            "params=(a)",
            "params=(1)",
            "params, except=\"a\"",
            "key-order=1",
            "params=(\"a\"), except=(\"b\")",
            "params=(\"a",
        ] {
            assert_eq!(SearchRule::parse(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn rules_come_back_from_their_text(
            is_unordered in any::<bool>(),
            only in any::<bool>(),
            names in prop::collection::btree_set("[a-z \"\\\\_]{1,5}", 1..4),
        ) {
            let names: Vec<String> = names.into_iter().collect();
            let parameters =
                if only { Parameters::Only(names) } else { Parameters::AllBut(names) };
            let rule = SearchRule { is_unordered, parameters };
            let again = SearchRule::parse(rule.text().as_bytes()).expect("a rule");
            prop_assert_eq!(again.text(), rule.text());
        }

        #[test]
        fn what_decides_decides_once(query in "[a-c=&+%0-9]{0,20}") {
            for rule in ["key-order", "params=(\"a\")", "params, except=(\"a\")"] {
                let rule = SearchRule::parse(rule.as_bytes()).expect("a rule");
                let deciding = rule.deciding(&query);
                prop_assert_eq!(rule.deciding(&deciding), deciding.clone());
            }
        }

        #[test]
        fn no_text_is_too_strange(text in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = SearchRule::parse(&text);
        }
    }
}
