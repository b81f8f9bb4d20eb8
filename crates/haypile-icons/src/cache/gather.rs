//! Storing pictures again, so that the pictures which programs show lie together.
//!
//! A process may read values in place in an eighth of the segments of the cache's file, and copies the others. In a file
//! that has been full for long, the icons of a program can lie in more segments than that, and each process would have
//! copies of its own. The process that finds this so leaves a *note*, which lasts a day. Processes that are started in
//! the meantime *gather*: they store each picture that they get once more, next to those before it, and read it there.
//!
//! The note has a day, and so has each picture that was gathered under it: no picture is stored twice under one note,
//! whichever processes get it and whatever the reason was that icons were copied. A picture that another process has
//! stored since it was read is left alone.

use std::time::Duration;

use haypile::{Cache, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::pixmap::StoredPixmap;
use crate::stamp::now_ns;

/// The key of the note.
const KEY: &[u8] = b"g";
/// The life of a note.
const LIFE: Duration = Duration::from_secs(DAY_S);
const DAY_S: u64 = 24 * 60 * 60;

/// Pictures that a process gets first are gathered, up to this part of the cache: half of what it may read in place. To
/// gather more would drive out entries of other programs, and let no more be read in place.
const SHARE: u64 = 16;
/// The longest value that is gathered. A longer one takes most of a segment, wherever it lies.
const LONGEST_BYTES: usize = 32 << 10;

/// The state of gathering in this process: storing a program's pictures again next to each other, so that they share
/// segments of the cache file.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// Whether the note was read, which is done once: what a process has in place stays where it is.
    is_begun: bool,
    /// The day of the note that this process found.
    day: Option<u32>,
    /// The bytes of the pictures that this process got since then.
    got_bytes: u64,
    /// The number of bytes of pictures up to which this process gathers, once it has found one to
    /// gather.
    most_bytes: Option<u64>,
    /// Whether this process has looked for a note since its pictures have been copied.
    is_noted: bool,
}

impl Gathering {
    /// Returns the day to record in a picture that is to be stored again next to others (gathered); `None` if the
    /// picture stays where it is.
    ///
    /// # Errors
    ///
    /// The cache fails; nothing is gathered then.
    pub(super) fn day_for(&mut self, cache: &Cache, stored: &StoredPixmap) -> Result<Option<u32>> {
        if !self.is_begun {
            self.is_begun = true;
            self.day = noted_day(cache)?;
        }
        let Some(day) = self.day else { return Ok(None) };
        if stored.bytes > LONGEST_BYTES {
            return Ok(None);
        }
        // Those that were gathered before count as well: the next process gathers the same pictures and no others.
        self.got_bytes += stored.bytes as u64;
        // A later day is of another note: this process has run for long.
        if stored.day >= day {
            return Ok(None);
        }
        let most_bytes = match self.most_bytes {
            Some(most_bytes) => most_bytes,
            // Not before: it reads much of the file's tables.
            None => *self.most_bytes.insert(cache.stats()?.capacity_bytes.unwrap_or(0) / SHARE),
        };
        if self.got_bytes > most_bytes {
            self.end();
            return Ok(None);
        }
        Ok(Some(day))
    }

    /// Ends gathering in this process: pictures are no longer stored again next to each other.
    pub(super) fn end(&mut self) {
        self.day = None;
    }

    /// Records in the cache that pictures had to be copied, so that other processes gather them (store them next to
    /// each other); does nothing if that is recorded.
    ///
    /// # Errors
    ///
    /// The cache fails.
    pub(super) fn note(&mut self, cache: &Cache) -> Result<()> {
        if self.is_noted {
            return Ok(());
        }
        self.is_noted = true;
        if noted_day(cache)?.is_none() {
            // Two processes that do so at the same time store the same.
            cache.set_with_ttl(KEY, encode(today()), LIFE)?;
        }
        Ok(())
    }
}

/// Returns the day of the note in a cache.
fn noted_day(cache: &Cache) -> Result<Option<u32>> {
    Ok(cache.get(KEY)?.and_then(|note| decode(&note)))
}

/// Returns the day, in days since 1970, and its checksum.
fn encode(day: u32) -> Vec<u8> {
    let day = day.to_le_bytes();
    [&day[..], &xxh3_64(&day).to_le_bytes()].concat()
}

fn decode(note: &[u8]) -> Option<u32> {
    let day = u32::from_le_bytes(*note.first_chunk()?);
    (note == encode(day)).then_some(day)
}

/// Returns the current day, by the clock of the machine; not 0, which stands for no day.
fn today() -> u32 {
    let seconds = u64::try_from(now_ns()).unwrap_or(0) / 1_000_000_000;
    u32::try_from(seconds / DAY_S).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use crate::pixmap::Pixmap;
    use crate::stamp::Stamp;

    use super::*;

    fn stored(day: u32, bytes: usize) -> StoredPixmap {
        let pixmap = Pixmap::new(1, 1, vec![0; 4]).unwrap();
        let stamp = Stamp::default();
        StoredPixmap { pixmap, stamp, day, bytes, version: None, is_out_of_pins: true }
    }

    #[test]
    fn a_damaged_note_is_none_and_is_written_again() {
        let cache = Cache::open("memory:size=1MiB").unwrap();
        let whole = encode(today());
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            assert_eq!(decode(&damaged), None, "byte {at}");
            assert_eq!(decode(&whole[..at]), None, "{at} bytes");
            cache.set(KEY, damaged).unwrap();
            Gathering::default().note(&cache).unwrap();
            assert_eq!(noted_day(&cache).unwrap(), Some(today()), "byte {at}");
        }
    }

    #[test]
    fn a_note_that_is_there_stays() {
        let cache = Cache::open("memory:size=1MiB").unwrap();
        cache.set(KEY, encode(7)).unwrap();
        Gathering::default().note(&cache).unwrap();
        assert_eq!(noted_day(&cache).unwrap(), Some(7));
    }

    #[test]
    fn a_picture_is_gathered_if_it_is_short_and_of_an_earlier_note_or_none() {
        let cache = Cache::open("memory:size=16MiB").unwrap();
        let day = |day, bytes| Gathering::default().day_for(&cache, &stored(day, bytes)).unwrap();
        assert_eq!(day(0, 4096), None, "there is no note");
        cache.set(KEY, encode(7)).unwrap();
        let days = [0, 6, 7, 8].map(|it| day(it, 4096));
        assert_eq!(days, [Some(7), Some(7), None, None]);
        assert_eq!((day(0, LONGEST_BYTES), day(0, LONGEST_BYTES + 1)), (Some(7), None));
    }

    #[test]
    fn a_process_gathers_a_part_of_the_cache_and_keeps_to_the_note_that_it_began_with() {
        let cache = Cache::open("memory:size=1MiB").unwrap();
        let mut early = Gathering::default();
        assert_eq!(early.day_for(&cache, &stored(0, 1)).unwrap(), None);
        cache.set(KEY, encode(7)).unwrap();
        let mut process = Gathering::default();
        let days: Vec<_> = (0..100)
            .map(|number| process.day_for(&cache, &stored(number % 2 * 7, 1024)).unwrap())
            .collect();
        // A sixteenth are 64 KiB, and those that lie together already count.
        assert_eq!(days.iter().flatten().count(), 32);
        assert!(days[64..].iter().all(Option::is_none));
        assert_eq!(early.day_for(&cache, &stored(0, 1)).unwrap(), None);
    }
}
