//! Keys, and values that contain the key they belong to.

use crate::filler::{self, mix};

/// The length of a test value's header in bytes: key, sequence number and length, of 8 bytes each.
pub(super) const HEADER_BYTES: usize = 24;

/// The longest value that keys of all writers have.
const SHARED_VALUE_BYTES: u64 = 200;

/// The name of a key in a stress test, by the way in which processes write it, such as a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// A key that one thread owns and that no other thread writes.
    Owned(u64),
    /// A counter that all writers increment.
    Counter(u64),
    /// A key that all writers compare and swap.
    Swapped(u64),
    /// A key that all writers add.
    Added(u64),
    /// A key that all writers compute.
    Computed(u64),
}

impl Name {
    /// Returns the bytes of the key with this name, as the cache gets them.
    pub(super) fn key(self) -> Vec<u8> {
        match self {
            // Of many lengths.
            Self::Owned(number) => {
                let mut key = format!("owned-{number}-").into_bytes();
                key.resize(key.len() + usize::try_from(number * 13 % 50).expect("small"), b'k');
                key
            }
            Self::Counter(number) => format!("counter-{number}").into_bytes(),
            Self::Swapped(number) => format!("swapped-{number}").into_bytes(),
            Self::Added(number) => format!("added-{number}").into_bytes(),
            Self::Computed(number) => format!("computed-{number}").into_bytes(),
        }
    }

    /// Returns the number that values of this key have.
    fn number(self) -> u64 {
        match self {
            Self::Owned(number) => number,
            Self::Counter(number) => 1 << 60 | number,
            Self::Swapped(number) => 2 << 60 | number,
            Self::Added(number) => 3 << 60 | number,
            Self::Computed(number) => 4 << 60 | number,
        }
    }
}

/// The content of a value in a stress test: its bytes follow from its key, its sequence number and
/// its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) name: Name,
    pub(super) sequence: u64,
    pub(super) bytes: usize,
}

impl Record {
    /// Creates the content of the value of a key with one writer; its length is drawn between two
    /// bounds.
    pub(super) fn owned(key: u64, sequence: u64, least_bytes: u64, most_bytes: u64) -> Self {
        let bits = mix(mix(key) ^ sequence);
        Self::with(Name::Owned(key), sequence, least_bytes + bits % (most_bytes - least_bytes + 1))
    }

    /// Creates the content of a short value, for a key that all writers share.
    pub(super) fn shared(name: Name, sequence: u64) -> Self {
        Self::with(name, sequence, mix(sequence) % (SHARED_VALUE_BYTES + 1))
    }

    fn with(name: Name, sequence: u64, bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).expect("the plan bounds it").max(HEADER_BYTES);
        Self { name, sequence, bytes }
    }

    /// Writes the bytes of the test value into `value`.
    pub(super) fn write(self, value: &mut [u8]) {
        let (header, body) = value.split_at_mut(HEADER_BYTES);
        let numbers = [self.name.number(), self.sequence, self.bytes as u64];
        for (place, number) in header.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        body.copy_from_slice(self.body());
    }

    /// Returns the bytes of the test value.
    pub(super) fn to_vec(self) -> Vec<u8> {
        let mut value = vec![0; self.bytes];
        self.write(&mut value);
        value
    }

    /// Parses the value of a key, and checks every byte of it.
    ///
    /// # Errors
    ///
    /// The difference, in words.
    pub(super) fn parse(name: Name, value: &[u8]) -> Result<Self, String> {
        let Some((header, body)) = value.split_at_checked(HEADER_BYTES) else {
            return Err(format!("a value of {} bytes, which nobody wrote", value.len()));
        };
        let mut numbers = header
            .chunks_exact(8)
            .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("the chunks have 8 bytes")));
        let mut next = || numbers.next().expect("the header has three");
        let (number, sequence, bytes) = (next(), next(), next());
        if number != name.number() {
            return Err(format!("the value of another key ({number:#x}, sequence {sequence})"));
        }
        if bytes != value.len() as u64 {
            return Err(format!("{} bytes of the {bytes} of sequence {sequence}", value.len()));
        }
        let record = Self { name, sequence, bytes: value.len() };
        let expected = record.body();
        match body.iter().zip(expected).position(|(found, byte)| found != byte) {
            None => Ok(record),
            Some(at) => Err(format!(
                "sequence {sequence} of {bytes} bytes, which differs from byte {} on",
                HEADER_BYTES + at
            )),
        }
    }

    fn body(self) -> &'static [u8] {
        let identity = mix(self.name.number()) ^ self.sequence;
        filler::slice(identity, self.bytes - HEADER_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_value_is_checked() {
        let record = Record::owned(7, 3, 100, 100);
        let value = record.to_vec();
        assert_eq!(Record::parse(Name::Owned(7), &value), Ok(record));
        assert!(Record::parse(Name::Owned(8), &value).is_err());
        assert!(Record::parse(Name::Owned(7), &value[..99]).is_err());
        assert!(Record::parse(Name::Owned(7), &[]).is_err());
        for at in 0..100 {
            let mut value = value.clone();
            value[at] ^= 1;
            let parsed = Record::parse(Name::Owned(7), &value);
            assert_ne!(parsed, Ok(record), "byte {at}");
        }
    }

    #[test]
    fn lengths_are_within_their_bounds() {
        let bytes = |sequence| Record::owned(1, sequence, 0, 60).bytes;
        assert!((0..100).all(|sequence| (HEADER_BYTES..=60).contains(&bytes(sequence))));
        assert!((0..100).any(|sequence| bytes(sequence) > 50));
    }
}
