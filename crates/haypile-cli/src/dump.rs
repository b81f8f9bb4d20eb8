//! Lines of a dump: the entries of a cache as JSON. `docs/format-dump.md` describes them.

use std::borrow::Cow;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haypile::{Hit, Ttl};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::notation;

/// Version of the lines that this program writes.
const SCHEMA: u64 = 1;

/// Type that the first line names.
const DUMP: &str = "dump";

/// A line of a cache's dump: its head or an entry.
pub(crate) enum DumpLine {
    /// First line of a dump; joined dumps have several.
    Head,
    Entry(DumpedEntry),
}

/// An entry of a cache as a dump contains it: key, value and lifetime.
pub(crate) struct DumpedEntry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) ttl: Ttl,
}

/// First line. Fields that a later program adds are ignored.
#[derive(Serialize, Deserialize)]
struct HeadLine<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    schema: u64,
    /// Cache of the dump, for people that read the file.
    #[serde(default)]
    cache: String,
}

/// Line of an entry, or of a key alone.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct EntryLine<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    key: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    key_base64: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    value: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    value_base64: Option<Cow<'a, str>>,
    /// The TTL: a number, null for never, or absent for the cache's own TTL.
    #[serde(
        rename = "ttl_ms",
        default,
        deserialize_with = "read_ttl",
        serialize_with = "write_ttl",
        skip_serializing_if = "is_of_cache"
    )]
    ttl: Ttl,
}

fn is_of_cache(ttl: &Ttl) -> bool {
    *ttl == Ttl::Default
}

fn write_ttl<S: Serializer>(ttl: &Ttl, serializer: S) -> Result<S::Ok, S::Error> {
    match ttl {
        Ttl::After(duration) => serializer.serialize_u64(millis(*duration)),
        Ttl::Never | Ttl::Default => serializer.serialize_none(),
    }
}

fn read_ttl<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Ttl, D::Error> {
    match Option::deserialize(deserializer)? {
        None => Ok(Ttl::Never),
        Some(0) => Err(D::Error::custom("ttl_ms is 0; expected at least 1, or null for never")),
        Some(ttl_ms) => Ok(Ttl::After(Duration::from_millis(ttl_ms))),
    }
}

/// Returns the first line of a cache's dump, in JSON, without a line feed.
pub(crate) fn head(cache: String) -> anyhow::Result<String> {
    Ok(serde_json::to_string(&HeadLine { kind: DUMP.into(), schema: SCHEMA, cache })?)
}

/// Returns the line of a cache's dump for an entry, in JSON, without a line feed.
pub(crate) fn entry(key: &[u8], value: &[u8], hit: Hit) -> anyhow::Result<String> {
    let (value, value_base64) = text_or_base64(value);
    let ttl = hit.expires_in.into();
    Ok(serde_json::to_string(&EntryLine { value, value_base64, ttl, ..key_line(key) })?)
}

/// Returns the line of a cache's dump for a key without its value, in JSON, without a line feed.
pub(crate) fn key(key: &[u8]) -> anyhow::Result<String> {
    Ok(serde_json::to_string(&key_line(key))?)
}

fn key_line(key: &[u8]) -> EntryLine<'_> {
    let (key, key_base64) = text_or_base64(key);
    EntryLine { key, key_base64, ..EntryLine::default() }
}

fn text_or_base64(bytes: &[u8]) -> (Option<Cow<'_, str>>, Option<Cow<'_, str>>) {
    match str::from_utf8(bytes) {
        Ok(text) => (Some(text.into()), None),
        Err(_) => (None, Some(notation::encode(bytes).into())),
    }
}

/// Rounds up to milliseconds, because a remaining TTL is above 0.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Checks the first line of a cache's dump, which names the format and its version.
pub(crate) fn read_head(line: &[u8]) -> anyhow::Result<()> {
    match serde_json::from_slice::<HeadLine<'_>>(line) {
        Ok(HeadLine { kind, schema: SCHEMA, .. }) if kind == DUMP => Ok(()),
        Ok(HeadLine { kind, schema, .. }) if kind == DUMP => bail!(
            "this dump has schema {schema}, but this program reads {SCHEMA}; use the version of haypile \
            that wrote it, or a later one"
        ),
        _ => bail!(
            r#"this is not a dump of a cache; expected {{"type":"{DUMP}","schema":{SCHEMA}}} as its first line"#
        ),
    }
}

/// Parses a line of a cache's dump: an entry, or the head of a further dump.
pub(crate) fn read_line(line: &[u8]) -> anyhow::Result<DumpLine> {
    match serde_json::from_slice::<EntryLine<'_>>(line) {
        Ok(entry) => Ok(DumpLine::Entry(entry.read()?)),
        // Tried only now, because reading a large value twice takes time.
        Err(_) if serde_json::from_slice::<HeadLine<'_>>(line).is_ok() => {
            read_head(line).map(|()| DumpLine::Head)
        }
        Err(error) => Err(describe(&error)),
    }
}

impl EntryLine<'_> {
    fn read(self) -> anyhow::Result<DumpedEntry> {
        let key = bytes(self.key, self.key_base64, "key", "key_base64")?;
        let value = bytes(self.value, self.value_base64, "value", "value_base64")?;
        Ok(DumpedEntry { key, value, ttl: self.ttl })
    }
}

fn bytes(
    text: Option<Cow<'_, str>>,
    base64: Option<Cow<'_, str>>,
    text_name: &str,
    base64_name: &str,
) -> anyhow::Result<Vec<u8>> {
    match (text, base64) {
        (Some(text), None) => Ok(text.into_owned().into_bytes()),
        (None, Some(base64)) => {
            STANDARD.decode(base64.as_ref()).with_context(|| format!("{base64_name} is not base64"))
        }
        (None, None) => bail!("an entry of a dump needs the field {text_name} or {base64_name}"),
        (Some(_), Some(_)) => bail!(
            "an entry of a dump cannot have both fields {text_name} and {base64_name}; leave one \
             out"
        ),
    }
}

/// Returns the error of the JSON without its line, which the parser always counts as 1.
fn describe(error: &serde_json::Error) -> anyhow::Error {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    match text.strip_suffix(&place) {
        Some(text) => {
            anyhow!("the JSON text of the line is wrong: {text} at column {}", error.column())
        }
        None => anyhow!(text),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry_of(line: &str) -> DumpedEntry {
        match read_line(line.as_bytes()).unwrap() {
            DumpLine::Entry(entry) => entry,
            DumpLine::Head => panic!("an entry: {line}"),
        }
    }

    fn error_of(line: &str) -> String {
        match read_line(line.as_bytes()) {
            Ok(_) => panic!("an error: {line}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn text_is_text_and_the_rest_base64() {
        let forever = Hit::new(None, None);
        assert_eq!(entry(b"k", b"v", forever).unwrap(), r#"{"key":"k","value":"v","ttl_ms":null}"#);
        let second = Hit::new(None, Some(Duration::from_secs(1)));
        let line = entry(b"\xff", b"\xfe\"", second).unwrap();
        assert_eq!(line, r#"{"key_base64":"/w==","value_base64":"/iI=","ttl_ms":1000}"#);
        assert_eq!(key("ß\n".as_bytes()).unwrap(), r#"{"key":"ß\n"}"#);
    }

    #[test]
    fn a_remaining_ttl_is_rounded_up() {
        assert_eq!(millis(Duration::from_nanos(1)), 1);
        assert_eq!(millis(Duration::from_millis(7)), 7);
        assert_eq!(millis(Duration::from_micros(7_001)), 8);
        assert_eq!(millis(Duration::MAX), u64::MAX);
    }

    #[test]
    fn a_ttl_is_a_number_or_null_or_absent() {
        let ttl = |rest| entry_of(&format!(r#"{{"key":"k","value":"v"{rest}}}"#)).ttl;
        assert_eq!(ttl(r#","ttl_ms":5"#), Ttl::After(Duration::from_millis(5)));
        assert_eq!(ttl(r#","ttl_ms":null"#), Ttl::Never);
        assert_eq!(ttl(""), Ttl::Default);
    }

    #[test]
    fn a_head_comes_first_and_may_come_again() {
        let line = head("memory://".to_owned()).unwrap();
        assert_eq!(line, r#"{"type":"dump","schema":1,"cache":"memory://"}"#);
        read_head(line.as_bytes()).unwrap();
        assert!(matches!(read_line(line.as_bytes()), Ok(DumpLine::Head)));
        read_head(br#"{"schema":1,"later":[1],"type":"dump"}"#).unwrap();
        for line in [r#"{"type":"run","schema":1}"#, r#"{"key":"k","value":"v"}"#, "prose", ""] {
            let message = read_head(line.as_bytes()).unwrap_err().to_string();
            assert!(message.starts_with("this is not a dump of a cache; expected {"), "{message}");
        }
        let newer = r#"{"type":"dump","schema":2}"#;
        let message = read_head(newer.as_bytes()).unwrap_err().to_string();
        assert!(message.starts_with("this dump has schema 2, but this program reads 1; "));
        assert_eq!(error_of(newer), message);
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for (line, message) in [
            ("", "the JSON text of the line is wrong: EOF while parsing a value at column 0"),
            (
                r#"{"key":"k","value":"v""#,
                "the JSON text of the line is wrong: EOF while parsing an object at column 22",
            ),
            ("{}", "an entry of a dump needs the field key or key_base64"),
            (r#"{"key":"k"}"#, "an entry of a dump needs the field value or value_base64"),
            (
                r#"{"key":"k","key_base64":"aw==","value":""}"#,
                "an entry of a dump cannot have both fields key and key_base64; leave one out",
            ),
            (r#"{"key":"k","value_base64":"a"}"#, "value_base64 is not base64"),
            (
                r#"{"key":"k","value":"v","ttl_ms":0}"#,
                "the JSON text of the line is wrong: ttl_ms is 0; expected at least 1, or null for \
                 never at column 34",
            ),
        ] {
            assert_eq!(error_of(line), message);
        }
        let message = error_of(r#"{"key":"k","value":"v","ttl":5}"#);
        assert!(
            message.contains("wrong: unknown field `ttl`, expected one of `key`, "),
            "{message}"
        );
        for line in [r#"{"key":"k","value":"v","ttl_ms":-1}"#, r#"{"key":"\ud800","value":""}"#] {
            assert!(error_of(line).contains(" at column "));
        }
    }

    proptest! {
        #[test]
        fn every_entry_reads_back(
            key in any::<Vec<u8>>(),
            value in prop_oneof![any::<Vec<u8>>(), ".*".prop_map(String::into_bytes)],
            ttl_ms in proptest::option::of(1..u64::MAX / 1_000_000),
        ) {
            let hit = Hit::new(None, ttl_ms.map(Duration::from_millis));
            let line = entry(&key, &value, hit).unwrap();
            prop_assert!(!line.contains('\n'));
            let read = entry_of(&line);
            prop_assert_eq!((read.key, read.value), (key, value));
            prop_assert_eq!(read.ttl, Ttl::from(hit.expires_in));
        }

        #[test]
        fn no_line_panics(line in any::<Vec<u8>>()) {
            let _ = read_head(&line);
            let _ = read_line(&line);
        }
    }
}
