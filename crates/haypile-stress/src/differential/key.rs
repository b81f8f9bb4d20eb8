//! Keys of all sorts, each made from its number.

use std::fmt;

/// A key that a random run of cache operations uses. Its bytes depend only on its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key(pub(super) u16);

impl Key {
    /// Returns the bytes of the key. Every sixth number is an unusual key: empty, binary, with the
    /// separators of protocols, as long as memcached or the engine permits, or longer.
    pub(super) fn bytes(self) -> Vec<u8> {
        match self.0 {
            11 => vec![0, 13, 10, 255],
            17 => b"two words\r\n".to_vec(),
            number => {
                let name = format!("key-{number}-").into_bytes();
                name.into_iter().cycle().take(self.length()).collect()
            }
        }
    }

    /// Returns the length of the key in bytes.
    pub(super) fn length(self) -> usize {
        match self.0 {
            5 => 0,
            11 => 4,
            17 => 11,
            23 => 250,
            29 => 251,
            35 => 65_000,
            41 => 65_535,
            47 => 65_536,
            number => 12 + usize::from(number) * 7 % 60,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_differ_and_have_their_lengths() {
        let keys: HashSet<Vec<u8>> = (0..200).map(|number| Key(number).bytes()).collect();
        assert_eq!(keys.len(), 200);
        assert!((0..200).map(Key).all(|key| key.bytes().len() == key.length()));
    }
}
