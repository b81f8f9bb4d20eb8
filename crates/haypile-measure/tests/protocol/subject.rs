//! Subjects that do what a test needs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use haypile_measure::subject::{
    Cause, Found, Kind, Subject, SubjectError, Subjects, UNCHECKED, Worker,
};

/// A flaw of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    /// The last byte of one value is another one.
    LastByte,
    /// One value is that of another key.
    OtherKey,
    /// One value lacks its last byte.
    Short,
    /// One value has a byte too many.
    Long,
    /// One key cannot be read.
    Fails,
    /// `get_many` forgets the last key.
    Forgets,
    /// Only one thread can use it.
    OneThread,
}

/// The key that the flaw is about.
const FLAWED: &[u8] = b"key 5";

const fn kind(name: &'static str, open: haypile_measure::subject::Open) -> Kind {
    let (language, version) = ("rust", "7");
    Kind {
        name,
        usage: name,
        help: "a map",
        language,
        version,
        hidden: false,
        shared: false,
        open,
        check: UNCHECKED,
    }
}

/// A map with each of the flaws.
pub(crate) fn subjects() -> Subjects {
    let mut subjects = Subjects::new();
    subjects.register(kind("map", |_, _, _| Map::open(Flaw::None)));
    subjects.register(kind("last-byte", |_, _, _| Map::open(Flaw::LastByte)));
    subjects.register(kind("other-key", |_, _, _| Map::open(Flaw::OtherKey)));
    subjects.register(kind("short", |_, _, _| Map::open(Flaw::Short)));
    subjects.register(kind("long", |_, _, _| Map::open(Flaw::Long)));
    subjects.register(kind("fails", |_, _, _| Map::open(Flaw::Fails)));
    subjects.register(kind("forgets", |_, _, _| Map::open(Flaw::Forgets)));
    subjects.register(kind("one-thread", |_, _, _| Map::open(Flaw::OneThread)));
    let shared = kind("shared", |_, room, _| Ok(Box::new(shared(room.found))));
    subjects.register(Kind { shared: true, ..shared });
    subjects
}

/// A map that all who open it share, which one that finds nothing empties. For one test alone.
fn shared(found: Found) -> Map {
    static ENTRIES: OnceLock<Entries> = OnceLock::new();
    let entries = Arc::clone(ENTRIES.get_or_init(Entries::default));
    if found == Found::Nothing {
        entries.lock().unwrap().clear();
    }
    Map { flaw: Flaw::None, entries }
}

type Entries = Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>;

struct Map {
    flaw: Flaw,
    entries: Entries,
}

impl Map {
    #[expect(clippy::unnecessary_wraps, reason = "this is how subjects are opened")]
    fn open(flaw: Flaw) -> Result<Box<dyn Subject>, SubjectError> {
        Ok(Box::new(Self { flaw, entries: Entries::default() }))
    }
}

impl Subject for Map {
    fn version(&self) -> String {
        "7".to_owned()
    }

    fn workers(
        &mut self,
        threads: usize,
    ) -> Result<Vec<Box<dyn Worker + Send + '_>>, SubjectError> {
        if self.flaw == Flaw::OneThread && threads > 1 {
            return Err(SubjectError::Threads { subject: "the map".to_owned(), limit: 1, threads });
        }
        let worker = |_| {
            let entries = Arc::clone(&self.entries);
            Box::new(MapWorker { flaw: self.flaw, entries }) as Box<dyn Worker + Send>
        };
        Ok((0..threads).map(worker).collect())
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        self.entries.lock().unwrap().clear();
        Ok(())
    }

    fn entries(&mut self) -> Option<u64> {
        Some(self.entries.lock().unwrap().len() as u64)
    }

    fn counts(&mut self) -> Vec<(&'static str, u64)> {
        vec![("answer", 42)]
    }
}

struct MapWorker {
    flaw: Flaw,
    entries: Entries,
}

impl Worker for MapWorker {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Cause> {
        let entries = self.entries.lock().unwrap();
        let Some(value) = entries.get(key) else { return Ok(false) };
        buffer.clone_from(value);
        if key == FLAWED {
            match self.flaw {
                Flaw::LastByte => *buffer.last_mut().unwrap() ^= 1,
                Flaw::OtherKey => buffer[0] = 6,
                Flaw::Short => drop(buffer.pop()),
                Flaw::Long => buffer.push(0),
                Flaw::Fails => return Err("the disk\nis gone".into()),
                _ => {}
            }
        }
        Ok(true)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        self.entries.lock().unwrap().insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Cause> {
        Ok(self.entries.lock().unwrap().remove(key).is_some())
    }

    fn get_many(
        &mut self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Cause> {
        let entries = self.entries.lock().unwrap();
        let forgotten = usize::from(self.flaw == Flaw::Forgets);
        for (position, key) in keys[..keys.len() - forgotten].iter().enumerate() {
            found(position, entries.get(*key).map(Vec::as_slice));
        }
        Ok(())
    }
}
