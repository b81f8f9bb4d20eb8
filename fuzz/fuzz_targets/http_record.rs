//! Bytes of a store as an entry of the HTTP cache: they are refused, or the entry that they are comes
//! back from its own bytes.
//!
//! `cargo +nightly fuzz run http_record`

#![no_main]

use haypile_http::fuzzing::check_entry;
use libfuzzer_sys::fuzz_target;

type Fields = Vec<(Text, Text)>;
type Text = Vec<u8>;

/// The parts of a response: times, status, variant, fields, and a body in the entry or elsewhere.
type Response = (u64, u64, u16, Vec<(Text, Option<Text>)>, Fields, Result<Text, (u128, u64)>);

fuzz_target!(
    init: plausible_entries_are_read(),
    |input: (&[u8], Text, Vec<Response>, bool)| {
        let (bytes, name, responses, is_plausible) = input;
        check_entry(bytes.to_vec());
        let mut whole = entry(&name, &responses, is_plausible);
        check_entry(whole.clone());
        whole.extend_from_slice(bytes);
        assert!(bytes.is_empty() || !check_entry(whole));
    }
);

/// The target would check nothing otherwise.
fn plausible_entries_are_read() {
    let field = || (vec![0], vec![255]);
    let variant = vec![(vec![1], None), (vec![2], Some(vec![0]))];
    let inline = (u64::MAX, 0, 9_999, variant, vec![field(), field()], Ok(vec![1]));
    let elsewhere = (0, 1, 0, vec![], vec![], Err((1, 2)));
    assert!(check_entry(entry(b"a", &[inline, elsewhere], true)));
}

/// Returns the bytes of an entry with these parts; where it is plausible, with their bytes changed so
/// that they are valid.
fn entry(name: &[u8], responses: &[Response], is_plausible: bool) -> Vec<u8> {
    let time = u64::MAX >> 20;
    let mut bytes = vec![6];
    for number in [7_u64, 8, 9] {
        bytes.extend(number.to_le_bytes());
    }
    // One of four outcomes: none, or a kind with its time, lifetime and duration.
    let outcome = u8::try_from(name.len() % 4).expect("less than 4");
    bytes.push(outcome);
    if outcome > 0 {
        let [since, lifetime, took] = [7 << 30, 1_000, name.len() as u64];
        bytes.extend([since, lifetime, took].map(u64::to_le_bytes).concat());
    }
    put(&mut bytes, if responses.is_empty() { &[] } else { name });
    // No lists of fields, generations, variants and codings.
    bytes.extend([0; 5]);
    bytes.push(u8::try_from(responses.len()).unwrap_or(u8::MAX));
    for (requested, received, status, variant, fields, body) in responses {
        let (time, status) = match is_plausible {
            true => (time, status % 900 + 100),
            false => (u64::MAX, *status),
        };
        bytes.extend((requested & time).to_le_bytes());
        bytes.extend((received & time).to_le_bytes());
        // The number of the last purge, and whether one has made the response stale.
        bytes.extend(requested.to_le_bytes());
        bytes.push((status % 2).try_into().expect("0 or 1"));
        let groups = status % 3;
        bytes.extend(groups.to_le_bytes());
        for group in 0..groups {
            bytes.extend(received.wrapping_add(group.into()).to_le_bytes());
        }
        bytes.extend(status.to_le_bytes());
        let text = |bytes: &[u8], is_name| match (is_plausible, is_name) {
            (true, true) => [b"x", &letters(bytes)[..]].concat(),
            (true, false) => letters(bytes),
            (false, _) => bytes.to_vec(),
        };
        bytes.extend((variant.len() as u16).to_le_bytes());
        for (name, value) in variant {
            put(&mut bytes, &text(name, true));
            bytes.push(value.is_some().into());
            if let Some(value) = value {
                put(&mut bytes, value);
            }
        }
        bytes.extend((fields.len() as u16).to_le_bytes());
        for (name, value) in fields {
            put(&mut bytes, &text(name, true));
            put(&mut bytes, &text(value, false));
        }
        match body {
            Ok(body) => {
                bytes.push(0);
                put(&mut bytes, body);
            }
            Err((id, length)) => {
                bytes.push(1);
                bytes.extend(id.to_le_bytes());
                bytes.extend(length.to_le_bytes());
            }
        }
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend((part.len() as u32).to_le_bytes());
    bytes.extend_from_slice(part);
}

fn letters(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| b'a' + byte % 26).collect()
}
