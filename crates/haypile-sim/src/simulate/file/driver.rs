//! The driver of a simulated file: it counts hits, misses and evictions.

use haypile_policy::PolicySpec;
use haypile_policy::weight::Weights;

use super::super::Counts;
use super::super::run::Cached;
use super::SimulatedFile;

/// A simulated `file` store ([`SimulatedFile`]) that processes the requests of a trace and counts hits, misses and
/// evictions.
#[derive(Debug)]
pub(in crate::simulate) struct FileDriver<W: Weights> {
    file: SimulatedFile<W>,
    capacity: u64,
    /// Whether a cache without a bound would have each key, indexed by id.
    stored: Vec<bool>,
    counts: Counts,
}

impl<W: Weights> FileDriver<W> {
    /// Creates an empty simulated file store of size `capacity`, for a trace with `keys` distinct keys.
    pub(in crate::simulate) fn new(spec: &PolicySpec, capacity: u64, keys: u32) -> Self {
        Self {
            file: SimulatedFile::new(spec, capacity, keys),
            capacity,
            stored: vec![false; keys as usize],
            counts: Counts::default(),
        }
    }

    fn count_evicted(&mut self) {
        self.counts.evictions += self.file.drain_evicted().count() as u64;
    }

    fn store(&mut self, id: u32, weight: u64) {
        self.stored[id as usize] = true;
        let is_stored = weight <= self.capacity && self.file.insert(id, weight);
        self.counts.refused += u64::from(!is_stored);
        self.count_evicted();
    }
}

impl<W: Weights> Cached for FileDriver<W> {
    #[inline]
    fn read(&mut self, _at: usize, id: u32, size_bytes: u64, weight: impl FnOnce() -> Option<u64>) {
        if self.file.contains(id) {
            self.counts.hits += 1;
            self.counts.hit_bytes += size_bytes;
            self.file.hit(id);
            return;
        }
        self.counts.misses += 1;
        self.counts.miss_bytes += size_bytes;
        self.counts.cold_misses += u64::from(!self.stored[id as usize]);
        match weight() {
            Some(weight) => self.store(id, weight),
            None => self.counts.refused += 1,
        }
    }

    fn write(&mut self, _at: usize, id: u32, weight: Option<u64>) {
        self.counts.writes += 1;
        match weight {
            Some(weight) if !self.file.contains(id) => self.store(id, weight),
            Some(weight) if weight <= self.capacity => {
                self.file.update(id, weight);
                self.count_evicted();
            }
            Some(_) => {
                // The old value is not the key's any more, and a program that is told so deletes it.
                self.counts.refused += 1;
                self.file.remove(id);
            }
            // RelStorage, whose limit this is, leaves the old value.
            None => self.counts.refused += 1,
        }
    }

    fn read_resizing(&mut self, at: usize, id: u32, size_bytes: u64, weight: Option<u64>) {
        match weight {
            Some(weight) if self.file.contains(id) && self.file.weight(id) != weight => {
                self.counts.hits += 1;
                self.counts.hit_bytes += size_bytes;
                if weight <= self.capacity {
                    self.file.update(id, weight);
                    self.count_evicted();
                } else {
                    self.counts.refused += 1;
                    self.file.remove(id);
                }
            }
            _ => self.read(at, id, size_bytes, || weight),
        }
    }

    fn read_changed(&mut self, _at: usize, id: u32, size_bytes: u64, weight: Option<u64>) {
        self.counts.misses += 1;
        self.counts.miss_bytes += size_bytes;
        self.counts.cold_misses += 1;
        if self.file.contains(id) {
            self.file.remove(id);
        }
        self.stored[id as usize] = false;
        match weight {
            Some(weight) => self.store(id, weight),
            None => self.counts.refused += 1,
        }
    }

    fn delete(&mut self, _at: usize, id: u32) {
        self.counts.deletes += 1;
        self.expire(id);
    }

    fn expire(&mut self, id: u32) {
        if self.file.contains(id) {
            self.file.remove(id);
        }
        self.stored[id as usize] = false;
    }

    fn counts(&mut self) -> &mut Counts {
        &mut self.counts
    }

    fn used(&self) -> u64 {
        self.file.used()
    }

    fn entries(&self) -> u64 {
        self.file.entries()
    }

    fn metadata_bytes(&self) -> usize {
        self.file.metadata_bytes()
    }
}
