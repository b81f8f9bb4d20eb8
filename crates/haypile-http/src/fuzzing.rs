//! Entry points for the fuzz targets.

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;

use crate::semantics::Stored;
use crate::storage::format::{decode, encode};

pub use crate::proxy::fuzzing::{Conversation, converse};

/// Decodes bytes as a stored entry (the responses of a URL) of the HTTP cache, for fuzzing; returns
/// whether they are valid.
///
/// # Panics
///
/// If the entry does not come back from its own bytes.
pub fn check_entry(bytes: Vec<u8>) -> bool {
    let Some(entry) = decode(bytes.into()) else { return false };
    let encoded = Bytes::from(encode(&entry).expect("what was decoded is short enough"));
    assert_eq!(decode(encoded).as_ref(), Some(&entry));
    for response in &entry.responses {
        check_age(&response.head);
    }
    true
}

/// Whatever the times of an entry are, time goes on.
fn check_age(head: &Stored) {
    let mut before = Duration::ZERO;
    for seconds in [0, 1, 1 << 31, 1 << 40] {
        let age = head.age(UNIX_EPOCH + Duration::from_secs(seconds));
        assert!(age >= before);
        before = age;
    }
}
