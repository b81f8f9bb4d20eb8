//! Commands, and the limits of the protocol.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use memcache::exp::{
    ArithmeticMode, ArithmeticOptions, DeleteOptions, GetOptions, MetaCommand, build_delete,
};

use super::opener::MAX_WIRE_KEY_BYTES;

/// Above this number of seconds, the server takes a TTL for a time of day.
const MAX_RELATIVE_SECONDS: u64 = 30 * 24 * 60 * 60;

/// Returns the length in bytes of the longest key that memcached accepts in the encoding of this key: as it is, or in
/// base64.
pub(super) fn wire_limit_bytes(key: &[u8]) -> usize {
    let is_plain = key.iter().all(|byte| *byte > b' ' && *byte != 0x7f);
    if is_plain { MAX_WIRE_KEY_BYTES } else { MAX_WIRE_KEY_BYTES / 4 * 3 }
}

/// Converts a TTL to the number that memcached expects: whole seconds, rounded up, or a time of day if it is above 30
/// days; 0 means never.
pub(super) fn wire_ttl(ttl: Option<Duration>) -> u32 {
    let Some(ttl) = ttl else { return 0 };
    let seconds = ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0));
    let wire = if seconds > MAX_RELATIVE_SECONDS {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.as_secs().saturating_add(seconds)
    } else {
        seconds
    };
    // The server reads a signed number of 32 bits: entries that would live beyond 2038 expire then.
    u32::try_from(wire.min(i32::MAX as u64)).expect("31 bits fit")
}

/// Returns the options of a memcached command that reads a value with its flags, CAS number and TTL.
pub(super) fn get_options() -> GetOptions {
    let mut options = GetOptions::default();
    options.return_client_flags = true;
    options.return_cas = true;
    options.return_ttl = true;
    options
}

/// Returns the options of a memcached command that adds `delta` to a counter, or subtracts it.
pub(super) fn count_options(mode: ArithmeticMode, delta: u64) -> ArithmeticOptions {
    let mut options = ArithmeticOptions::default();
    options.mode = mode;
    options.delta = Some(delta);
    options
}

/// Returns the memcached command that deletes an entry.
pub(super) fn delete_command(key: &[u8]) -> MetaCommand {
    build_delete(key, &DeleteOptions::default()).expect("no option is given")
}

/// Returns the memcached command that deletes an entry if it still has the CAS number (version) `cas`.
pub(super) fn delete_version_command(key: &[u8], cas: u64) -> MetaCommand {
    let mut options = DeleteOptions::default();
    options.compare_cas = Some(cas);
    build_delete(key, &options).expect("any number can be compared")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_rounded_up_and_long_ones_are_times_of_day() {
        assert_eq!(wire_ttl(None), 0);
        assert_eq!(wire_ttl(Some(Duration::from_nanos(1))), 1);
        assert_eq!(wire_ttl(Some(Duration::from_secs(1))), 1);
        assert_eq!(wire_ttl(Some(Duration::from_millis(1_001))), 2);
        let month = Duration::from_secs(MAX_RELATIVE_SECONDS);
        assert_eq!(u64::from(wire_ttl(Some(month))), MAX_RELATIVE_SECONDS);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let later = u64::from(wire_ttl(Some(month + Duration::from_secs(1))));
        assert!(later > now + MAX_RELATIVE_SECONDS && later < now + MAX_RELATIVE_SECONDS + 60);
        assert_eq!(wire_ttl(Some(Duration::MAX)), i32::MAX.unsigned_abs());
    }

    #[test]
    fn keys_are_limited_as_they_are_sent() {
        assert_eq!(wire_limit_bytes(b"plain"), 250);
        assert_eq!(wire_limit_bytes(b"two words"), 186);
        assert_eq!(wire_limit_bytes("Käse".as_bytes()), 250);
        assert_eq!(wire_limit_bytes(b"\x7f"), 186);
    }
}
