//! The writes of a change: of the target's own entry, of those of its variants, or of both.

use bytes::Bytes;
use haypile::{SetOptions, Store, Written};

use super::entry::{Entry, StoredResponse};
use super::variants::{MOST_FIELDS, Variants, variant_name};
use super::{CHUNK_BYTES, Key, Read, encoded, hash_key, key};
use crate::semantics::Variant;

/// The writes to the store that replace the entry of a URL by a changed one: those of the URL's own entry, and of its
/// variants' entries.
pub(super) struct Writes {
    /// The writes of variants, with the conditions under which no other process has written since.
    variants: Vec<(Key, Vec<u8>, SetOptions)>,
    /// The write of the target's own entry, if that changes.
    own: Option<(Key, Vec<u8>, SetOptions)>,
    /// The keys that nobody needs any more.
    gone: Vec<Key>,
}

impl Writes {
    /// Returns the writes to the store that replace the entry that was read by `entry`, whose variants may take
    /// `most_bytes`. `None` if a part of it is too long.
    pub(super) fn of(read: &Read, entry: &Entry, most_bytes: u64) -> Option<Self> {
        let name = &entry.name;
        let before = read.entry.as_deref();
        let mut own = own_part(entry);
        let mut writes = Self { variants: Vec::new(), own: None, gone: Vec::new() };
        for response in entry.responses.iter().filter(|response| is_variant(response)) {
            let variant = response.head.variant.as_ref()?;
            if !before.is_some_and(|before| before.responses.contains(response)) {
                own.variants.learn_coding(variant, &response.head.headers);
            }
            let stored_name = own.variants.stored_name(name, variant);
            // It may be there though the list lacks it: another process wrote the list at the same time.
            let is_there = before.is_some_and(|before| before.responses.contains(response));
            if is_there && own.variants.knows(&stored_name) {
                continue;
            }
            if variant.fields().len() > MOST_FIELDS {
                return None;
            }
            let of_variant = Entry {
                name: stored_name,
                outcome: None,
                variants: Variants::default(),
                responses: vec![response.clone()],
                ..*entry
            };
            let found = read.found.iter().find(|found| found.name == of_variant.name);
            // One of an old generation may be there, which counts no more.
            let condition = found.map_or(SetOptions::set(), |found| found.condition);
            let (value, condition) = encoded(&of_variant, condition)?;
            let bytes = value.len() as u64 + response.body.stored_bytes();
            let gone = own.variants.add(name, variant, bytes, most_bytes);
            writes.gone.extend(gone.into_iter().map(hash_key));
            if !is_there {
                writes.variants.push((key(&of_variant.name), value, condition));
            }
        }
        let variants = |entry: &Entry| -> Vec<Variant> {
            let variants = entry.responses.iter().filter(|response| is_variant(response));
            variants.filter_map(|response| response.head.variant.clone()).collect()
        };
        let still = variants(entry);
        for (before, variant) in before
            .into_iter()
            .flat_map(|before| variants(before).into_iter().map(move |variant| (before, variant)))
        {
            let gone = before.variants.stored_name(name, &variant);
            // What other sets of codings get stays.
            let is_replaced = still.contains(&variant)
                && (gone == own.variants.stored_name(name, &variant)
                    || before.variants.is_of_several(&variant));
            if !is_replaced {
                own.variants.remove(&gone);
                writes.gone.push(key(&gone));
            }
        }
        if before.is_none_or(|before| own_part(before) != own) {
            let mut bytes = encoded(&own, read.condition);
            // A long list is worth less than a response.
            while bytes.is_none() && !own.variants.known.is_empty() {
                let half = own.variants.known.len().div_ceil(2);
                let gone = own.variants.known.drain(..half);
                writes.gone.extend(gone.map(|known| hash_key(known.hash)));
                bytes = encoded(&own, read.condition);
            }
            let (value, condition) = bytes?;
            writes.own = Some((key(name), value, condition));
        }
        Some(writes)
    }

    /// Returns the number of bytes of all values that these writes store.
    pub(super) fn bytes(&self) -> usize {
        self.variants.iter().chain(&self.own).map(|(_, value, _)| value.len()).sum()
    }

    /// Returns the value of the URL's own entry, if these writes change it.
    pub(super) fn into_own(self) -> Option<Vec<u8>> {
        self.own.map(|(_, value, _)| value)
    }

    /// Writes the changed entries of the variants first, and then the URL's entry, which lists them; returns whether no
    /// other process had written in between.
    pub(super) fn write(&self, store: &dyn Store) -> bool {
        let is_written = |(key, value, condition): &(Key, Vec<u8>, SetOptions)| {
            store.set(key, value, condition).is_ok_and(Written::is_stored)
        };
        if !self.variants.iter().chain(&self.own).all(is_written) {
            return false;
        }
        for key in &self.gone {
            let _ = store.delete(key);
        }
        true
    }
}

/// Whether a response has an entry of its own.
fn is_variant(response: &StoredResponse) -> bool {
    response.head.variant.as_ref().is_some_and(|variant| !variant.fields().is_empty())
}

fn name_of(name: &Bytes, response: &StoredResponse) -> Option<Bytes> {
    response.head.variant.as_ref().map(|variant| variant_name(name, variant))
}

/// Returns the part of an entry that is under the target's own name.
fn own_part(entry: &Entry) -> Entry {
    let own = entry.responses.iter().filter(|response| !is_variant(response)).cloned().collect();
    Entry { name: entry.name.clone(), variants: entry.variants.clone(), responses: own, ..*entry }
}

/// Returns the length of the longest body that has room in an entry with one response whose body is missing; `None` if
/// the response's head is too long.
pub(crate) fn room_for_body(entry: &Entry) -> Option<usize> {
    let length = super::format::encode(entry)?.len();
    // A variant has its name twice: as a target, and as fields.
    let name = entry.responses.iter().filter_map(|response| name_of(&entry.name, response));
    let more: usize = name.map(|name| name.len() - entry.name.len()).sum();
    CHUNK_BYTES.checked_sub(length + more)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

    use super::super::entry::StoredBody;
    use super::super::format;
    use super::super::purges::Stamp;
    use super::*;
    use crate::semantics::{KnownTerms, Selection, Stored};

    const NAME: Bytes = Bytes::from_static(b"http://a/");
    const FIELD: HeaderName = HeaderName::from_static("accept-language");

    fn variant(language: &'static str) -> StoredResponse {
        let request: HeaderMap =
            [(FIELD, HeaderValue::from_static(language))].into_iter().collect();
        let head = Stored {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            variant: Some(Variant::of_fields(Selection::default(), &request, &[FIELD])),
            requested: UNIX_EPOCH,
            received: UNIX_EPOCH,
        };
        let body = StoredBody::Inline(Bytes::from_static(b"body"));
        let terms = KnownTerms::default();
        StoredResponse { head, body, number: 0, groups: Vec::new(), has_expired: false, terms }
    }

    fn read(entry: Entry) -> Read {
        let condition = SetOptions::set();
        Read { entry: Some(entry.into()), level: 0, condition, stamp: None, found: Vec::new() }
    }

    /// Returns the entry of the target as it is written; `None` if it is not.
    fn own(writes: &Writes) -> Option<Entry> {
        let (_, value, _) = writes.own.as_ref()?;
        format::decode(value.clone().into())
    }

    #[test]
    fn a_variant_is_in_the_list_though_another_process_wrote_the_list_first() {
        let mut entry = Entry::empty(NAME, Stamp::default());
        entry.insert(variant("de"));
        let first =
            Writes::of(&read(Entry { responses: Vec::new(), ..entry.clone() }), &entry, u64::MAX);
        let first = first.expect("it is short");
        assert_eq!(first.variants.len(), 1);
        let listed = own(&first).expect("the list is new");
        assert_eq!(listed.variants.known.len(), 1);
        // The variant was written, and the list was not: another one is there, of another variant.
        let mut other = Entry { responses: vec![variant("de")], ..listed.clone() };
        other.variants.known[0].hash += 1;
        let again = Writes::of(&read(other.clone()), &other, u64::MAX).expect("it is short");
        assert!(again.variants.is_empty(), "it is there");
        assert_eq!(own(&again).expect("the list lacks it").variants.known.len(), 2);
        // What is in both places is written once.
        let whole = Entry { responses: vec![variant("de")], ..listed };
        let nothing = Writes::of(&read(whole.clone()), &whole, u64::MAX).expect("it is short");
        assert!(nothing.variants.is_empty() && nothing.own.is_none());
    }
}
