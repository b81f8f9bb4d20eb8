//! Keys that are all different and look random.

use std::fmt::Write;

use crate::job::{JobError, Population};

/// The length of a UUID in text, which gets its dashes.
const UUID_BYTES: usize = 36;

/// From this length on keys are text: 16 hexadecimal digits tell all of them apart.
const TEXT_BYTES: usize = 16;

/// So many keys of the same length, each with a value of the same size. The same arguments give
/// the same keys for ever. Keys of less than 8 bytes are plain numbers, up to 15 bytes they are
/// random bytes, and from 16 on hexadecimal digits; of 36 bytes, with the dashes of a UUID.
pub(super) fn population(
    seed: u64,
    keys: u32,
    key_bytes: u32,
    value_bytes: u32,
) -> Result<Population, JobError> {
    let mut population = Population::new();
    let mut key = Vec::new();
    for number in 0..u64::from(keys) {
        write(&mut key, seed, number, key_bytes as usize);
        population.push(&key, value_bytes)?;
    }
    Ok(population)
}

fn write(key: &mut Vec<u8>, seed: u64, number: u64, length: usize) {
    key.clear();
    if length < 8 {
        key.extend_from_slice(&number.to_le_bytes()[..length]);
        return;
    }
    // Adding and mixing lose nothing: different numbers have different first words.
    let mut word = mix(number.wrapping_add(seed));
    let mut text = String::new();
    while key.len() < length {
        if length < TEXT_BYTES {
            key.extend_from_slice(&word.to_le_bytes());
        } else {
            text.clear();
            write!(text, "{word:016x}").expect("a string can be written");
            key.extend_from_slice(text.as_bytes());
        }
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

/// One step of a generator whose every step can be undone: Steele, Lea, Flood, "Fast splittable
/// pseudorandom number generators" (2014), known as `SplitMix64`.
pub(super) fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_have_their_length_and_are_all_different() {
        for length in [2, 4, 7, 8, 9, 15, 16, 17, 36, 40, 250] {
            let keys = population(7, 5000, length, 0).unwrap();
            let distinct: HashSet<&[u8]> = (0..5000).map(|number| keys.key(number)).collect();
            assert_eq!(distinct.len(), 5000, "{length}");
            assert!(distinct.iter().all(|key| key.len() == length as usize), "{length}");
        }
    }

    #[test]
    fn keys_are_the_same_for_ever() {
        let text = |key_bytes, number| {
            let keys = population(1, 3, key_bytes, 0).unwrap();
            String::from_utf8(keys.key(number).to_vec()).unwrap()
        };
        assert_eq!(text(36, 0), "910a2dec-8902-5cc1-5e41-ab087439611e");
        assert_eq!(text(16, 2), "1d0b14e4db018fed");
        assert_eq!(population(1, 1, 8, 0).unwrap().key(0), 0x910a_2dec_8902_5cc1_u64.to_le_bytes());
    }
}
