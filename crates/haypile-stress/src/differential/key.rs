//! Keys of all sorts, by number.

use std::fmt;

/// A key of a run. Its bytes depend on its number alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key(pub(super) u16);

impl Key {
    /// Returns the key's bytes. Every sixth number is an unusual key: empty, binary, with the
    /// separators of protocols, at a limit of memcached or of the engine, and beyond the latter.
    pub(super) fn bytes(self) -> Vec<u8> {
        let long = |bytes: usize| {
            let name = format!("long-{}-", self.0).into_bytes();
            name.iter().copied().cycle().take(bytes).collect()
        };
        match self.0 {
            5 => Vec::new(),
            11 => vec![0, 13, 10, 255],
            17 => b"two words\r\n".to_vec(),
            23 => long(250),
            29 => long(251),
            35 => long(65_000),
            41 => long(65_535),
            47 => long(65_536),
            number => {
                let mut name = format!("key-{number}").into_bytes();
                name.resize(name.len() + usize::from(number) * 7 % 60, b'k');
                name
            }
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}", self.0)
    }
}
