//! Integers of one to ten bytes: seven bits in each, the lowest first; the high bit announces
//! another byte (LEB128).

/// The largest number of bytes that an integer of variable length takes.
pub(super) const MAX_BYTES: usize = 10;

/// Writes an integer of variable length to `target` at position `at`, which must have room; returns the position after
/// it.
#[inline]
pub(super) fn put(target: &mut [u8], mut at: usize, mut value: u64) -> usize {
    while value >= 0x80 {
        target[at] = value.to_le_bytes()[0] | 0x80;
        value >>= 7;
        at += 1;
    }
    target[at] = value.to_le_bytes()[0];
    at + 1
}

/// Reads an integer of variable length at position `at`; returns it and the position after it. `None` if it is
/// truncated, or longer than any that is written.
#[inline]
pub(super) fn get(source: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0;
    for (count, &byte) in source.get(at..)?.iter().take(MAX_BYTES).enumerate() {
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit.
        if count == MAX_BYTES - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * count);
        if byte & 0x80 == 0 {
            return Some((value, at + count + 1));
        }
    }
    None
}
