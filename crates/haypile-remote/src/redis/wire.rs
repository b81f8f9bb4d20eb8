//! Parts of Redis commands.

use std::time::Duration;

use redis::{Cmd, Pipeline, cmd, pipe};

/// A longer TTL never expires, as [`haypile::Ttl`] documents.
const LONGEST_TTL: Duration = Duration::from_hours(500 * 365 * 24);

/// Creates a pipeline of Redis commands in which each command succeeds or fails independently.
pub(super) fn lenient() -> Pipeline {
    let mut pipeline = pipe();
    pipeline.ignore_errors();
    pipeline
}

/// Converts a TTL to the milliseconds that Redis expects, rounded up; `None` means never.
pub(super) fn wire_ttl(ttl: Option<Duration>) -> Option<u64> {
    let ttl = ttl.filter(|ttl| *ttl < LONGEST_TTL)?;
    Some(u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).expect("500 years of milliseconds fit"))
}

/// Returns the glob-style pattern that matches all Redis keys that start with these bytes.
pub(super) fn pattern(prefix: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::new();
    for byte in prefix {
        if b"*?[]^-\\".contains(byte) {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern.push(b'*');
    pattern
}

/// Creates a Redis command whose first argument is a key.
pub(super) fn with_key(name: &str, key: &[u8]) -> Cmd {
    let mut command = cmd(name);
    command.arg(key);
    command
}

/// Returns the Redis command that deletes an entry. The server frees large values later.
pub(super) fn unlink(key: &[u8]) -> Cmd {
    with_key("UNLINK", key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_rounded_up_to_the_millisecond() {
        assert_eq!(wire_ttl(None), None);
        assert_eq!(wire_ttl(Some(Duration::from_nanos(1))), Some(1));
        assert_eq!(wire_ttl(Some(Duration::from_millis(7))), Some(7));
        assert_eq!(wire_ttl(Some(Duration::from_micros(7_001))), Some(8));
        assert_eq!(wire_ttl(Some(Duration::MAX)), None);
    }

    #[test]
    fn a_prefix_is_no_pattern() {
        assert_eq!(pattern(b"a:"), b"a:*");
        assert_eq!(pattern(b"*[x]?\\:"), br"\*\[x\]\?\\:*");
    }
}
