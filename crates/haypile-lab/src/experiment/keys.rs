//! Distinct keys that look random.

use std::fmt::Write;

use haypile_number::splitmix::first as mix;

use haypile_measure::job::{JobError, Population};

/// The length of a UUID in text, which gets its dashes.
const UUID_BYTES: usize = 36;

/// From this length on keys are hexadecimal digits: 16 of them tell all numbers of 64 bits apart.
const HEXADECIMAL_BYTES: usize = 16;

/// The digits of shorter keys, six bits each: base64 for URLs (RFC 4648). Every cache takes them.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const DIGIT_BITS: u32 = DIGITS.len().ilog2();

/// The digits that one word gives.
const DIGITS_PER_WORD: u32 = 10;

/// Returns the binary logarithm of the number of different random keys of this length in bytes.
pub(super) fn bits(key_bytes: u32) -> u32 {
    if key_bytes as usize >= HEXADECIMAL_BYTES {
        return u64::BITS;
    }
    key_bytes.min(DIGITS_PER_WORD) * DIGIT_BITS
}

/// Returns `keys` distinct random keys of the same length, each with a value of the same size. The
/// same arguments give the same keys in every version. All are text without blanks, because some
/// caches take no other: below 16 bytes digits of base64, and from 16 on hexadecimal ones; of 36
/// bytes, with the dashes of a UUID.
pub(super) fn population(
    seed: u64,
    keys: u32,
    key_bytes: u32,
    value_bytes: u32,
) -> Result<Population, JobError> {
    let mut population = Population::new();
    let mut key = Vec::new();
    for number in 0..u64::from(keys) {
        if key_bytes as usize >= HEXADECIMAL_BYTES {
            write_hexadecimal(&mut key, seed, number, key_bytes as usize);
        } else {
            write_short(&mut key, seed, number, key_bytes);
        }
        population.push(&key, value_bytes)?;
    }
    Ok(population)
}

fn write_short(key: &mut Vec<u8>, seed: u64, number: u64, length: u32) {
    key.clear();
    let bits = bits(length);
    // Adding and mixing lose nothing: different numbers have different first words.
    let mut word = mix_bits(number.wrapping_add(seed), bits);
    let mut left = length;
    while left > 0 {
        let count = left.min(DIGITS_PER_WORD);
        for at in 0..count {
            let digit = (word >> (at * DIGIT_BITS)) % DIGITS.len() as u64;
            key.push(DIGITS[usize::try_from(digit).expect("below 64")]);
        }
        word = mix(word);
        left -= count;
    }
}

fn write_hexadecimal(key: &mut Vec<u8>, seed: u64, number: u64, length: usize) {
    key.clear();
    // As above.
    let mut word = mix(number.wrapping_add(seed));
    let mut text = String::new();
    while key.len() < length {
        text.clear();
        write!(text, "{word:016x}").expect("a string can be written");
        key.extend_from_slice(text.as_bytes());
        word = mix(word);
    }
    if length == UUID_BYTES {
        key.truncate(UUID_BYTES - 4);
        for at in [20, 16, 12, 8] {
            key.insert(at, b'-');
        }
    }
    key.truncate(length);
}

/// The lower bits of a number, mixed so that different ones stay different: steps that can be
/// undone among numbers of this many bits, from 2 to 63.
fn mix_bits(number: u64, bits: u32) -> u64 {
    let mask = (1 << bits) - 1;
    let half = bits.div_ceil(2);
    let mut mixed = number & mask;
    for factor in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb] {
        mixed = (mixed ^ (mixed >> half)).wrapping_mul(factor) & mask;
    }
    mixed ^ (mixed >> half)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_have_their_length_and_are_all_different() {
        for length in [3, 4, 7, 8, 9, 10, 11, 15, 16, 17, 36, 40, 250] {
            let keys = population(7, 5000, length, 0).unwrap();
            let distinct: HashSet<&[u8]> = (0..5000).map(|number| keys.key(number)).collect();
            assert_eq!(distinct.len(), 5000, "{length}");
            assert!(distinct.iter().all(|key| key.len() == length as usize), "{length}");
        }
    }

    #[test]
    fn every_key_is_text_without_blanks() {
        for length in 1..=40 {
            let keys = population(3, 60, length, 0).unwrap();
            let all = (0..60).flat_map(|number| keys.key(number));
            assert!(all.clone().all(u8::is_ascii_graphic), "{length}");
            // Not only of the same few.
            assert!(all.collect::<HashSet<_>>().len() >= 16, "{length}");
        }
    }

    #[test]
    fn as_many_keys_as_a_length_has_are_all_there() {
        for length in [1, 2, 3] {
            assert_eq!(bits(length), 6 * length);
            let all = 1 << bits(length);
            let keys = population(9, all, length, 0).unwrap();
            let distinct: HashSet<&[u8]> = (0..all).map(|number| keys.key(number)).collect();
            assert_eq!(distinct.len(), all as usize, "{length}");
        }
        assert_eq!((bits(8), bits(12), bits(15), bits(16), bits(36)), (48, 60, 60, 64, 64));
    }

    #[test]
    fn keys_are_the_same_for_ever() {
        let text = |key_bytes, number| {
            let keys = population(1, 3, key_bytes, 0).unwrap();
            String::from_utf8(keys.key(number).to_vec()).unwrap()
        };
        assert_eq!(text(36, 0), "910a2dec-8902-5cc1-5e41-ab087439611e");
        assert_eq!(text(16, 2), "1d0b14e4db018fed");
        assert_eq!([text(8, 0), text(12, 2)], ["7zmiMiAT", "XyR5KFMK4XiV"]);
    }
}
