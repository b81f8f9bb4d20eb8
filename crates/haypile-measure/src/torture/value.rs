//! Values that describe themselves: a reader of one knows whether it is whole.

use super::draw::{mix, word};

/// The length of the header at the start of each value: key number, sequence number and length, of
/// 8 bytes each.
pub(super) const HEAD_BYTES: u64 = 24;

/// One value of this number may be as long as the longest.
const LONG_ONE_OF: u64 = 256;

/// The largest lengths of the torture's random values: one for most values, and one for the few
/// long ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    /// The largest length of most of the torture's values, in bytes after their header.
    pub(super) common_bytes: u64,
    /// The largest length of the torture's few long values, in bytes after their header.
    pub(super) longest_bytes: u64,
}

impl Lengths {
    /// Returns the length in bytes of a key's value with a sequence number, including its header.
    pub(super) fn of(self, key: u64, sequence: u64) -> u64 {
        let bits = mix(identity(key, sequence));
        let draw = bits >> 16;
        let more = if bits.is_multiple_of(LONG_ONE_OF) {
            draw % (self.longest_bytes + 1)
        } else {
            (draw % (self.common_bytes + 1)) >> (bits >> 8 & 7)
        };
        HEAD_BYTES + more
    }

    /// Returns the approximate mean length of the torture's values, in bytes.
    pub(super) fn mean_bytes(self) -> u64 {
        // The halvings 0 to 7 come alike often: 255 / 128 / 8 of the half.
        HEAD_BYTES + self.common_bytes / 8 + self.longest_bytes / LONG_ONE_OF / 2
    }
}

/// Returns the text of a torture's key by the key's number: `torture:7`.
pub(super) fn key_bytes(key: u64) -> String {
    format!("torture:{key}")
}

/// The number that filler follows from.
fn identity(key: u64, sequence: u64) -> u64 {
    mix(key).wrapping_add(mix(!sequence))
}

/// Replaces the contents of `value` by the torture's value for a key and a sequence number.
pub(super) fn write(lengths: Lengths, key: u64, sequence: u64, value: &mut Vec<u8>) {
    let length = lengths.of(key, sequence);
    let bytes = usize::try_from(length).expect("what a runner is told fits its memory");
    value.clear();
    for word in [key, sequence, length] {
        value.extend_from_slice(&word.to_le_bytes());
    }
    let seed = identity(key, sequence);
    for at in 0.. {
        if value.len() >= bytes {
            break;
        }
        value.extend_from_slice(&word(seed, at).to_le_bytes());
    }
    value.truncate(bytes);
}

/// Checks a value that was read under `key`, and returns its sequence number.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn read(lengths: Lengths, key: u64, value: &[u8]) -> Result<u64, String> {
    let (head, filler) = value
        .split_at_checked(24)
        .ok_or_else(|| format!("it has {} bytes, less than any value", value.len()))?;
    let (words, _) = head.as_chunks::<8>();
    let [its_key, sequence, length] = [0, 1, 2].map(|at| u64::from_le_bytes(words[at]));
    if its_key != key {
        return Err(format!("it is the value of key {its_key}"));
    }
    if length != value.len() as u64 || length != lengths.of(key, sequence) {
        let due = lengths.of(key, sequence);
        let has = value.len();
        return Err(format!(
            "{sequence} has {due} bytes, its head says {length}, and it has {has}"
        ));
    }
    let seed = identity(key, sequence);
    let (words, rest) = filler.as_chunks::<8>();
    let is_torn = |(at, bytes): (u64, &[u8])| bytes != &word(seed, at).to_le_bytes()[..bytes.len()];
    let mut parts = (0..).zip(words.iter().map(<[u8; 8]>::as_slice).chain([rest]));
    match parts.find(|&part| is_torn(part)) {
        Some((at, _)) => Err(format!("{sequence} is not its own from byte {} on", 24 + at * 8)),
        None => Ok(sequence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: Lengths = Lengths { common_bytes: 1_000, longest_bytes: 50_000 };

    #[test]
    fn a_value_is_what_it_says() {
        let mut value = Vec::new();
        let mut total = 0;
        for sequence in 1..2_000 {
            let key = sequence % 7;
            write(LENGTHS, key, sequence, &mut value);
            assert_eq!(value.len() as u64, LENGTHS.of(key, sequence));
            assert_eq!(read(LENGTHS, key, &value), Ok(sequence));
            total += value.len() as u64;
        }
        let mean = total / 2_000;
        assert!((LENGTHS.mean_bytes() / 2..LENGTHS.mean_bytes() * 2).contains(&mean), "{mean}");
    }

    #[test]
    fn every_change_is_seen() {
        let mut value = Vec::new();
        let sequence = (1..1000).find(|&sequence| LENGTHS.of(3, sequence) > 60).expect("some");
        write(LENGTHS, 3, sequence, &mut value);
        for at in 0..value.len() {
            value[at] ^= 1;
            read(LENGTHS, 3, &value).unwrap_err();
            value[at] ^= 1;
        }
        for end in 0..value.len() {
            read(LENGTHS, 3, &value[..end]).unwrap_err();
        }
        assert_eq!(read(LENGTHS, 4, &value).unwrap_err(), "it is the value of key 3");
        assert_eq!(read(LENGTHS, 3, &value), Ok(sequence));
    }
}
