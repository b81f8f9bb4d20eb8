//! The JSON of a HAR file, entry by entry, so that bodies in it are not kept.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::entry::HarEntry;
use super::{MAX_HAR_ENTRIES, MAX_HAR_PAGES};
use crate::site::model::MAX_NAME_BYTES;

/// A page in a HAR file (a browser's recording of requests).
#[derive(Debug, Default)]
pub(super) struct HarPage {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) started_ms: Option<f64>,
    /// The time at which the browser reported the page as loaded, in milliseconds since 1970.
    pub(super) loaded_ms: Option<f64>,
}

/// The pages and entries (requests with their responses) of a HAR file, from which a site is made.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) pages: Vec<HarPage>,
    pub(super) entries: Vec<HarEntry>,
}

/// A part of a list's element, and the number of elements that a list may have.
trait Element {
    const NAME: &'static str;
    const MAX: usize;
    fn of(value: &Value) -> Self;
}

impl Element for HarEntry {
    const NAME: &'static str = "entries";
    const MAX: usize = MAX_HAR_ENTRIES;

    fn of(value: &Value) -> Self {
        Self::read(value)
    }
}

impl Element for HarPage {
    const NAME: &'static str = "pages";
    const MAX: usize = MAX_HAR_PAGES;

    fn of(value: &Value) -> Self {
        let text = |name| {
            let text = value.get(name).and_then(Value::as_str).unwrap_or_default();
            text[..text.floor_char_boundary(MAX_NAME_BYTES)].to_owned()
        };
        let started_ms = value.get("startedDateTime").and_then(super::entry::time_ms);
        let took_ms = value.get("pageTimings").and_then(|timings| timings.get("onLoad")?.as_f64());
        // -1 where it is not known.
        let took_ms = took_ms.filter(|took_ms| *took_ms > 0.0);
        let loaded_ms = started_ms.zip(took_ms).map(|(started, took)| started + took);
        Self { id: text("id"), title: text("title"), started_ms, loaded_ms }
    }
}

/// Parses the contents of a HAR file, with or without a byte order mark, or as the argument of a function call.
pub(super) fn parse(bytes: &[u8]) -> Result<Log, String> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let bytes = argument(bytes).unwrap_or(bytes);
    let document: HarDocument = serde_json::from_slice(bytes)
        .map_err(|error| format!("not a HAR file: {error}; save the page load as HAR again"))?;
    document.log.ok_or_else(|| "not a HAR file: it has no 'log'".to_owned())
}

/// Returns the argument of a call, as in `onInputData({...});`: JSON that a page may load from another host (JSONP) is
/// written so. `None` for anything else.
fn argument(bytes: &[u8]) -> Option<&[u8]> {
    let (name, rest) = bytes.split_at(bytes.iter().position(|byte| *byte == b'(')?);
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.');
    let name = name.trim_ascii();
    let rest = rest.trim_ascii_end();
    let rest = rest.strip_suffix(b";").unwrap_or(rest).trim_ascii_end();
    let inner = rest.strip_prefix(b"(")?.strip_suffix(b")")?;
    (!name.is_empty() && name.iter().all(is_of_name)).then_some(inner)
}

#[derive(Deserialize)]
struct HarDocument {
    #[serde(default)]
    log: Option<Log>,
}

impl<'de> Deserialize<'de> for Log {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LogVisitor;
        impl<'de> Visitor<'de> for LogVisitor {
            type Value = Log;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the log of a HAR")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Log, A::Error> {
                let mut log = Log::default();
                while let Some(name) = map.next_key::<String>()? {
                    match name.as_str() {
                        "pages" => log.pages = map.next_value::<Elements<_>>()?.0,
                        "entries" => log.entries = map.next_value::<Elements<_>>()?.0,
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(log)
            }
        }
        deserializer.deserialize_map(LogVisitor)
    }
}

/// A list of which each element is converted before the next one is read.
struct Elements<T>(Vec<T>);

impl<'de, T: Element> Deserialize<'de> for Elements<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ElementsVisitor<T>(PhantomData<T>);
        impl<'de, T: Element> Visitor<'de> for ElementsVisitor<T> {
            type Value = Elements<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of {}", T::NAME)
            }

            fn visit_unit<E: Error>(self) -> Result<Elements<T>, E> {
                Ok(Elements(Vec::new()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Elements<T>, A::Error> {
                let mut elements = Vec::new();
                while let Some(value) = list.next_element::<Value>()? {
                    if elements.len() == T::MAX {
                        let (name, max) = (T::NAME, T::MAX);
                        return Err(A::Error::custom(format!("more than {max} {name}")));
                    }
                    elements.push(T::of(&value));
                }
                Ok(Elements(elements))
            }
        }
        deserializer.deserialize_any(ElementsVisitor(PhantomData))
    }
}
