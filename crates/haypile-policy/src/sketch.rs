//! A count-min sketch of 4-bit counters that forgets: how often a key was asked for lately.

/// Words of 64 bits that one key's counters lie in: one cache line.
const BLOCK_WORDS: usize = 8;
const ODD_BITS: u64 = 0x1111_1111_1111_1111;
const HALF_MASK: u64 = 0x7777_7777_7777_7777;
/// The highest frequency of a key that the sketch counts.
pub(super) const MAX_FREQUENCY: u8 = 15;
/// Counts per entry after which all counters are halved.
const SAMPLE: u64 = 10;

/// A sketch of the approximate numbers of recent uses of keys, from 0 to 15, indexed by fingerprints (hashes of keys).
///
/// Einziger, Friedman and Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", ACM
/// Transactions on Storage 13(4), 2017; laid out in blocks of one cache line as Caffeine does.
#[derive(Debug)]
pub(super) struct Sketch {
    words: Vec<u64>,
    /// Counts since the last halving.
    counted: u64,
    /// Counts at which the next halving is due.
    period: u64,
}

impl Sketch {
    /// Creates an empty sketch of key frequencies for a cache of about `entries` entries.
    pub(super) fn new(entries: u64) -> Self {
        let mut sketch = Self { words: vec![0; BLOCK_WORDS], counted: 0, period: SAMPLE };
        sketch.grow(entries);
        sketch
    }

    /// Enlarges the sketch of key frequencies for a larger number of entries. Its counts stay: a table twice as long
    /// that contains the old one twice returns the same frequencies.
    pub(super) fn grow(&mut self, entries: u64) {
        self.period = self.period.max(SAMPLE * entries);
        while (self.words.len() as u64) < entries {
            self.words.extend_from_within(..);
        }
    }

    /// Reduces the sketch of key frequencies to about `entries` entries, if it is far too large for them, so that a
    /// varying number of entries does not change it. Merged counters keep the higher count, so that no frequency is too
    /// low; many are too high until they have been halved.
    pub(super) fn shrink(&mut self, entries: u64) {
        if (self.words.len() as u64) < 8 * entries {
            return;
        }
        while self.words.len() > BLOCK_WORDS && (self.words.len() / 2) as u64 >= entries {
            let upper = self.words.split_off(self.words.len() / 2);
            for (word, other) in self.words.iter_mut().zip(upper) {
                *word = higher(*word, other);
            }
            self.words.shrink_to_fit();
        }
        self.period = self.period.min(SAMPLE * entries.max(1));
        self.counted = self.counted.min(self.period - 1);
    }

    /// Counts one use of the key with this fingerprint (hash) in the sketch.
    pub(super) fn count(&mut self, fingerprint: u64) {
        let mut added = false;
        for (word, shift) in Self::counters(fingerprint, self.words.len()) {
            let word = &mut self.words[word];
            if (*word >> shift) & 0xf < 0xf {
                *word += 1 << shift;
                added = true;
            }
        }
        if added {
            self.counted += 1;
            if self.counted >= self.period {
                self.halve();
            }
        }
    }

    /// Returns the approximate number of recent uses of the key with this fingerprint (hash); never too low.
    pub(super) fn frequency(&self, fingerprint: u64) -> u8 {
        let counters = Self::counters(fingerprint, self.words.len());
        let counts = counters.map(|(word, shift)| (self.words[word] >> shift) & 0xf);
        let least = counts.into_iter().min().expect("four counters");
        u8::try_from(least).expect("four bits")
    }

    /// Returns the number of bytes of memory that the sketch of key frequencies takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    fn halve(&mut self) {
        let mut odd = 0;
        for word in &mut self.words {
            odd += u64::from((*word & ODD_BITS).count_ones());
            *word = (*word >> 1) & HALF_MASK;
        }
        // Each use went into four counters; what halving rounded away is not counted any more.
        // Counters that keys share are rounded together, so that this is not exact and in a tiny
        // sketch could be more than was counted.
        self.counted = self.counted.saturating_sub(odd >> 2) >> 1;
    }

    /// Returns the four counters of a fingerprint: word and shift, each in two words of its own of
    /// a block.
    fn counters(fingerprint: u64, words: usize) -> [(usize, u32); 4] {
        let block_hash = mix(fingerprint);
        let counter_hash = mix(block_hash);
        #[expect(clippy::cast_possible_truncation, reason = "masked to the table's length")]
        let block = (block_hash as usize) & (words / BLOCK_WORDS - 1);
        std::array::from_fn(|row| {
            let hash = counter_hash >> (row * 8);
            let word = block * BLOCK_WORDS + row * 2 + (hash & 1) as usize;
            let shift = ((hash >> 1) & 0xf) as u32 * 4;
            (word, shift)
        })
    }
}

/// Returns the higher of each two counters of a word.
fn higher(one: u64, other: u64) -> u64 {
    let counter = |shift: u32| ((one >> shift) & 0xf).max((other >> shift) & 0xf) << shift;
    (0..u64::BITS).step_by(4).map(counter).sum()
}

/// Returns the finalizer of MurmurHash3: fingerprints may be small numbers.
fn mix(mut value: u64) -> u64 {
    value ^= value >> 33;
    value = value.wrapping_mul(0xff51_afd7_ed55_8ccd);
    value ^= value >> 33;
    value = value.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ (value >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_never_too_low_and_rarely_too_high() {
        let mut sketch = Sketch::new(1024);
        for key in 0..512 {
            for _ in 0..key % 8 {
                sketch.count(key);
            }
        }
        let exact = (0..512).filter(|key| u64::from(sketch.frequency(*key)) == key % 8).count();
        assert!((0..512).all(|key| u64::from(sketch.frequency(key)) >= key % 8));
        assert!(exact > 500, "{exact} of 512 are exact");
    }

    #[test]
    fn counters_stop_at_fifteen_and_halve() {
        let mut sketch = Sketch::new(16);
        for _ in 0..40 {
            sketch.count(7);
        }
        assert_eq!(sketch.frequency(7), 15);
        let mut key = 1000;
        while sketch.frequency(7) == 15 {
            sketch.count(key);
            key += 1;
        }
        assert_eq!(sketch.frequency(7), 7);
    }

    #[test]
    fn shrinking_makes_no_count_too_low_and_undoes_growing() {
        let mut sketch = Sketch::new(1024);
        for key in 0..512 {
            for _ in 0..key % 8 {
                sketch.count(key);
            }
        }
        let frequencies = |sketch: &Sketch| (0..512).map(|key| sketch.frequency(key)).collect();
        let before: Vec<u8> = frequencies(&sketch);
        sketch.grow(100_000);
        sketch.shrink(1000);
        assert_eq!(frequencies(&sketch), before);
        sketch.shrink(100);
        assert!((0..512).all(|key| u64::from(sketch.frequency(key)) >= key % 8));
        assert_eq!(sketch.memory_bytes(), 128 * 8);
        sketch.shrink(0);
        assert_eq!(sketch.memory_bytes(), BLOCK_WORDS * 8);
        sketch.count(1);
    }

    #[test]
    fn growing_forgets_nothing() {
        let mut sketch = Sketch::new(8);
        for _ in 0..5 {
            sketch.count(3);
        }
        sketch.grow(100_000);
        assert_eq!(sketch.frequency(3), 5);
    }
}
