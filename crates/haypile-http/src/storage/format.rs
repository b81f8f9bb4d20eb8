//! The bytes of an [`Entry`]. All numbers are little-endian.
//!
//! ```text
//! version (1 byte) | generation (8) | stamp (16) | outcome | name | variants
//!           | number of responses (1) | responses
//! outcome:  0 (1), or 1 (alone), 2 (failed) or 3 (personal) (1) | since (8) | lifetime (8) | took (8)
//! variants: number of sets of fields (1) | for each: number (1) | names
//!           | number of stale generations (1) | for each: generation (8)
//!           | number (2) | for each: hash (16) | length (8) | used (1)
//!           | number of sets of codings (1) | for each: set | coding, each 0 (1), or 1 (1) and the text
//! response: requested (8) | received (8) | purge (8) | expired (1) | groups | status (2) | variant | fields
//!           | body
//! groups:   number (2) | for each: hash (8)
//! variant:  number (2) | for each: name | 0 (1), or 1 (1) and the value
//! fields:   number (2) | for each: name | value
//! body:     0 (1) | the body, or 1 (1) | chunks,
//!           or 2 (1) | length (8) | number of parts (1) | for each: begin (8) | chunks
//! chunks:   id (16) | length (8)
//! ```
//!
//! An entry without responses and variants has no name: it may be about a request of which nothing is to be stored.
//!
//! Names, values and bodies have their length (4) before them; times are in milliseconds since 1970.
//! Other bytes are not an entry: a request that finds them goes to the origin, and replaces them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::entry::{Chunks, Entry, MOST_RESPONSES, StoredBody, StoredResponse};
use super::groups::{Group, MOST_STORED_GROUPS};
use super::outcome::{Outcome, OutcomeKind};
use super::parts::{Part, Parts};
use super::purges::Stamp;
use super::variants::{
    Known, KnownCoding, MOST_CODING_SETS, MOST_EXPIRED, MOST_FIELDS, MOST_VARIANTS, MOST_VARIES,
    Variants,
};
use crate::semantics::{KnownTerms, Stored, Variant};

/// Rises with every change of the format.
const VERSION: u8 = 6;
/// No outcome counts for longer, whatever damaged bytes say.
const LONGEST_LIFETIME: Duration = Duration::from_hours(1);
/// No variant is longer, so that the sum of all of them is a number.
const LONGEST_VARIANT: u64 = u64::MAX / MOST_VARIANTS as u64 / 2;
/// The length of the shortest field: those of a name and a value, and a name of one letter.
const FIELD_BYTES: usize = 9;
/// The length of an encoded entry without its body, in bytes, for which there is room from the start: most are shorter.
const USUAL_BYTES: usize = 1024;
/// The fields that a response has in addition to those that are stored (`Age`, `Cache-Status` and
/// others): there is room for them from the start.
const ADDED_FIELDS: usize = 6;

/// Encodes the entry of a URL as bytes for the store; `None` if one of its fields is too long for the format, which no
/// server or client permits.
pub(crate) fn encode(entry: &Entry) -> Option<Vec<u8>> {
    let bodies = entry.responses.iter().map(|response| match &response.body {
        StoredBody::Inline(body) => body.len(),
        StoredBody::Chunks(_) | StoredBody::Parts(_) => 0,
    });
    let mut bytes = Vec::with_capacity(USUAL_BYTES + bodies.sum::<usize>());
    bytes.push(VERSION);
    for number in [entry.generation, entry.stamp.epoch, entry.stamp.number] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    put_outcome(&mut bytes, entry.outcome.as_ref());
    put(&mut bytes, if entry.is_empty() { &[] } else { &entry.name })?;
    put_variants(&mut bytes, &entry.variants)?;
    bytes.push(u8::try_from(entry.responses.len()).ok()?);
    for response in &entry.responses {
        put_response(&mut bytes, response)?;
    }
    Some(bytes)
}

fn put_outcome(bytes: &mut Vec<u8>, outcome: Option<&Outcome>) {
    let Some(outcome) = outcome else { return bytes.push(0) };
    bytes.push(match outcome.kind {
        OutcomeKind::Alone => 1,
        OutcomeKind::Failed => 2,
        OutcomeKind::Personal => 3,
    });
    bytes.extend_from_slice(&milliseconds(outcome.since).to_le_bytes());
    for duration in [outcome.lifetime, outcome.took] {
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        bytes.extend_from_slice(&milliseconds.to_le_bytes());
    }
}

fn put_variants(bytes: &mut Vec<u8>, variants: &Variants) -> Option<()> {
    bytes.push(u8::try_from(variants.varies.len()).ok()?);
    for fields in &variants.varies {
        bytes.push(u8::try_from(fields.len()).ok()?);
        for name in fields {
            put(bytes, name.as_str().as_bytes())?;
        }
    }
    bytes.push(u8::try_from(variants.expired.len()).ok()?);
    for generation in &variants.expired {
        bytes.extend_from_slice(&generation.to_le_bytes());
    }
    bytes.extend_from_slice(&u16::try_from(variants.known.len()).ok()?.to_le_bytes());
    for known in &variants.known {
        bytes.extend_from_slice(&known.hash.to_le_bytes());
        bytes.extend_from_slice(&known.bytes.to_le_bytes());
        bytes.push(known.is_used.into());
    }
    bytes.push(u8::try_from(variants.codings.len()).ok()?);
    for known in &variants.codings {
        for text in [&known.set, &known.coding] {
            bytes.push(text.is_some().into());
            if let Some(text) = text {
                put(bytes, text)?;
            }
        }
    }
    Some(())
}

fn put_response(bytes: &mut Vec<u8>, response: &StoredResponse) -> Option<()> {
    let head = &response.head;
    bytes.extend_from_slice(&milliseconds(head.requested).to_le_bytes());
    bytes.extend_from_slice(&milliseconds(head.received).to_le_bytes());
    bytes.extend_from_slice(&response.number.to_le_bytes());
    bytes.push(response.has_expired.into());
    bytes.extend_from_slice(&u16::try_from(response.groups.len()).ok()?.to_le_bytes());
    for group in &response.groups {
        bytes.extend_from_slice(&group.hash().to_le_bytes());
    }
    bytes.extend_from_slice(&head.status.as_u16().to_le_bytes());
    let variant = head.variant.as_ref()?.fields();
    bytes.extend_from_slice(&u16::try_from(variant.len()).ok()?.to_le_bytes());
    for (name, value) in variant {
        put(bytes, name.as_str().as_bytes())?;
        bytes.push(value.is_some().into());
        if let Some(value) = value {
            put(bytes, value)?;
        }
    }
    bytes.extend_from_slice(&u16::try_from(head.headers.len()).ok()?.to_le_bytes());
    for (name, value) in &head.headers {
        put(bytes, name.as_str().as_bytes())?;
        put(bytes, value.as_bytes())?;
    }
    match &response.body {
        StoredBody::Inline(body) => {
            bytes.push(0);
            put(bytes, body)?;
        }
        StoredBody::Chunks(chunks) => {
            bytes.push(1);
            put_chunks(bytes, *chunks);
        }
        StoredBody::Parts(parts) => {
            bytes.push(2);
            bytes.extend_from_slice(&parts.bytes.to_le_bytes());
            bytes.push(u8::try_from(parts.iter().len()).ok()?);
            for part in parts.iter() {
                bytes.extend_from_slice(&part.begin.to_le_bytes());
                put_chunks(bytes, part.chunks);
            }
        }
    }
    Some(())
}

fn put_chunks(bytes: &mut Vec<u8>, chunks: Chunks) {
    bytes.extend_from_slice(&chunks.id.to_le_bytes());
    bytes.extend_from_slice(&chunks.bytes.to_le_bytes());
}

fn put(bytes: &mut Vec<u8>, part: &[u8]) -> Option<()> {
    bytes.extend_from_slice(&u32::try_from(part.len()).ok()?.to_le_bytes());
    bytes.extend_from_slice(part);
    Some(())
}

fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Decodes the entry of a URL from bytes of the store, without copying names and bodies; `None` if they are invalid.
pub(crate) fn decode(mut bytes: Bytes) -> Option<Entry> {
    if bytes.try_get_u8().ok()? != VERSION {
        return None;
    }
    let generation = bytes.try_get_u64_le().ok()?;
    let (epoch, number) = (bytes.try_get_u64_le().ok()?, bytes.try_get_u64_le().ok()?);
    let stamp = Stamp { epoch, number };
    let outcome = match bytes.try_get_u8().ok()? {
        0 => None,
        kind => Some(outcome(kind, &mut bytes)?),
    };
    let name = part(&mut bytes)?;
    let variants = variants(&mut bytes)?;
    let number = usize::from(bytes.try_get_u8().ok()?);
    if number > MOST_RESPONSES || (number == 0 && variants.is_empty() && !name.is_empty()) {
        return None;
    }
    let responses = (0..number).map(|_| response(&mut bytes)).collect::<Option<_>>()?;
    bytes.is_empty().then_some(Entry { name, generation, stamp, outcome, variants, responses })
}

fn outcome(kind: u8, bytes: &mut Bytes) -> Option<Outcome> {
    let kind = match kind {
        1 => OutcomeKind::Alone,
        2 => OutcomeKind::Failed,
        3 => OutcomeKind::Personal,
        _ => return None,
    };
    let since = time(bytes)?;
    let mut duration = || Some(Duration::from_millis(bytes.try_get_u64_le().ok()?));
    let (lifetime, took) = (duration()?, duration()?);
    Some(Outcome { kind, since, lifetime: lifetime.min(LONGEST_LIFETIME), took })
}

fn variants(bytes: &mut Bytes) -> Option<Variants> {
    let mut varies = Vec::new();
    for _ in 0..bounded(bytes.try_get_u8().ok()?, MOST_VARIES)? {
        let fields = 0..bounded(bytes.try_get_u8().ok()?, MOST_FIELDS)?;
        let name = |_| HeaderName::from_bytes(&part(bytes)?).ok();
        varies.push(fields.map(name).collect::<Option<_>>()?);
    }
    let expired = 0..bounded(bytes.try_get_u8().ok()?, MOST_EXPIRED)?;
    let expired = expired.map(|_| bytes.try_get_u64_le().ok()).collect::<Option<_>>()?;
    let known = 0..bounded(bytes.try_get_u16_le().ok()?, MOST_VARIANTS)?;
    let known = known.map(|_| {
        let (hash, length) = (bytes.try_get_u128_le().ok()?, bytes.try_get_u64_le().ok()?);
        let is_used = flag(bytes)?;
        Some(Known { hash, bytes: length.min(LONGEST_VARIANT), is_used })
    });
    let known: Vec<Known> = known.collect::<Option<_>>()?;
    let codings = 0..bounded(bytes.try_get_u8().ok()?, MOST_CODING_SETS)?;
    let codings = codings.map(|_| {
        let mut text = || Some(if flag(bytes)? { Some(part(bytes)?.to_vec()) } else { None });
        Some(KnownCoding { set: text()?, coding: text()? })
    });
    let codings: Vec<KnownCoding> = codings.collect::<Option<_>>()?;
    let has_variants = !known.is_empty() || !codings.is_empty();
    (!has_variants || !varies.is_empty()).then_some(Variants { varies, expired, known, codings })
}

/// Returns a number, if it is not more than may be.
fn bounded(number: impl Into<usize>, most: usize) -> Option<usize> {
    Some(number.into()).filter(|number| *number <= most)
}

fn flag(bytes: &mut Bytes) -> Option<bool> {
    match bytes.try_get_u8().ok()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn response(bytes: &mut Bytes) -> Option<StoredResponse> {
    let requested = time(bytes)?;
    let received = time(bytes)?;
    let number = bytes.try_get_u64_le().ok()?;
    let has_expired = flag(bytes)?;
    let groups = usize::from(bytes.try_get_u16_le().ok()?);
    if groups > MOST_STORED_GROUPS {
        return None;
    }
    let group = |_| Some(Group::of_hash(bytes.try_get_u64_le().ok()?));
    let groups = (0..groups).map(group).collect::<Option<_>>()?;
    let status = StatusCode::from_u16(bytes.try_get_u16_le().ok()?).ok()?;
    let mut variant = Vec::new();
    for _ in 0..bytes.try_get_u16_le().ok()? {
        let name = HeaderName::from_bytes(&part(bytes)?).ok()?;
        let value = match bytes.try_get_u8().ok()? {
            0 => None,
            1 => Some(part(bytes)?.to_vec()),
            _ => return None,
        };
        variant.push((name, value));
    }
    let fields = bytes.try_get_u16_le().ok()?;
    // A damaged number takes no more memory than the fields could.
    let most = usize::from(fields).min(bytes.len() / FIELD_BYTES) + ADDED_FIELDS;
    let mut headers = HeaderMap::try_with_capacity(most).ok()?;
    for _ in 0..fields {
        let name = HeaderName::from_bytes(&part(bytes)?).ok()?;
        let value = HeaderValue::from_maybe_shared(part(bytes)?).ok()?;
        headers.try_append(name, value).ok()?;
    }
    let body = match bytes.try_get_u8().ok()? {
        0 => StoredBody::Inline(part(bytes)?),
        1 => StoredBody::Chunks(chunks(bytes)?),
        2 => {
            let length = bytes.try_get_u64_le().ok()?;
            let number = bytes.try_get_u8().ok()?;
            let part = |_| {
                let begin = bytes.try_get_u64_le().ok()?;
                Some(Part { begin, chunks: chunks(bytes)? })
            };
            StoredBody::Parts(Parts::of(length, (0..number).map(part).collect::<Option<_>>()?)?)
        }
        _ => return None,
    };
    let variant = Some(Variant::from_fields(variant));
    let head = Stored { status, headers, variant, requested, received };
    Some(StoredResponse { head, body, number, groups, has_expired, terms: KnownTerms::default() })
}

fn part(bytes: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(bytes.try_get_u32_le().ok()?).ok()?;
    (length <= bytes.len()).then(|| bytes.split_to(length))
}

fn chunks(bytes: &mut Bytes) -> Option<Chunks> {
    Some(Chunks { id: bytes.try_get_u128_le().ok()?, bytes: bytes.try_get_u64_le().ok()? })
}

fn time(bytes: &mut Bytes) -> Option<SystemTime> {
    let milliseconds = bytes.try_get_u64_le().ok()?;
    UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(milliseconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(milliseconds)
    }

    fn entry() -> Entry {
        let request: HeaderMap =
            [(HeaderName::from_static("a"), HeaderValue::from_static("1"))].into_iter().collect();
        let fields = [("vary", "a, b"), ("x", ""), ("x", "2"), ("etag", "\"\u{e9}\"")];
        let headers: HeaderMap = fields
            .iter()
            .map(|(name, value)| {
                let value = HeaderValue::from_bytes(value.as_bytes()).expect("a value");
                (HeaderName::from_static(name), value)
            })
            .collect();
        let head = Stored {
            status: StatusCode::NOT_FOUND,
            variant: Variant::of(&request, &headers),
            headers,
            requested: at(1_000),
            received: at(1_001),
        };
        let plain = Stored { variant: Some(Variant::default()), ..head.clone() };
        let chunks = Chunks { id: u128::MAX - 5, bytes: 1 << 40 };
        let variant = [(HeaderName::from_static("b"), None)];
        let partial =
            Stored { variant: Some(Variant::from_fields(variant.into())), ..head.clone() };
        let part = Part { begin: 7, chunks };
        let mut parts = Parts::new(1 << 41, part).expect("it is in the body");
        parts.add(Part { begin: 9, chunks });
        Entry {
            name: Bytes::from_static(b"http://example.org/"),
            generation: 7,
            stamp: Stamp { epoch: 8, number: 9 },
            outcome: Some(Outcome {
                kind: OutcomeKind::Failed,
                since: at(5),
                lifetime: Duration::from_secs(4),
                took: Duration::from_millis(3),
            }),
            variants: Variants {
                varies: vec![vec![HeaderName::from_static("a")], Vec::new()],
                expired: vec![3, 4],
                known: vec![
                    Known { hash: u128::MAX - 9, bytes: 5, is_used: true },
                    Known { hash: 6, bytes: 7, is_used: false },
                ],
                codings: vec![
                    KnownCoding { set: None, coding: Some(b"identity".to_vec()) },
                    KnownCoding { set: Some(b"br, gzip".to_vec()), coding: None },
                ],
            },
            responses: vec![
                StoredResponse {
                    head,
                    body: StoredBody::Inline(Bytes::from_static(b"body")),
                    number: 11,
                    groups: vec![Group::of_hash(12), Group::of_hash(13)],
                    has_expired: false,
                    terms: KnownTerms::default(),
                },
                StoredResponse {
                    head: plain,
                    body: StoredBody::Chunks(chunks),
                    number: 14,
                    groups: Vec::new(),
                    has_expired: true,
                    terms: KnownTerms::default(),
                },
                StoredResponse {
                    head: partial,
                    body: StoredBody::Parts(parts),
                    number: 15,
                    groups: Vec::new(),
                    has_expired: false,
                    terms: KnownTerms::default(),
                },
            ],
        }
    }

    #[test]
    fn entries_come_back() {
        for entry in [entry(), Entry::empty(Bytes::new(), Stamp::default())] {
            let bytes = encode(&entry).expect("short fields");
            assert_eq!(decode(bytes.into()), Some(entry));
        }
    }

    #[test]
    fn a_part_of_an_entry_or_more_than_one_is_none() {
        let bytes = Bytes::from(encode(&entry()).expect("short fields"));
        for end in 0..bytes.len() {
            assert_eq!(decode(bytes.slice(..end)), None, "{end} bytes");
        }
        assert_eq!(decode([&bytes[..], b"x"].concat().into()), None);
    }

    #[test]
    fn another_version_is_none() {
        let mut bytes = encode(&entry()).expect("short fields");
        bytes[0] += 1;
        assert_eq!(decode(bytes.into()), None);
    }

    #[test]
    fn more_responses_than_are_kept_are_none() {
        let mut many = entry();
        many.responses = vec![many.responses[0].clone(); MOST_RESPONSES + 1];
        assert_eq!(decode(encode(&many).expect("short fields").into()), None);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(
            at in 0_usize..300,
            garbage in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut bytes = encode(&entry()).expect("short fields");
            for (number, byte) in garbage.iter().enumerate() {
                if let Some(place) = bytes.get_mut(at + number) {
                    *place = *byte;
                }
            }
            let _ = decode(bytes.into());
            let _ = decode(garbage.into());
        }
    }
}
