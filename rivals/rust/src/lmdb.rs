//! LMDB by `heed`: a tree in a mapped file, which processes share. It evicts nothing.

use haypile_measure::subject::{Cause, Found, Room, Subject, SubjectError, Worker};
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, MdbError, lmdb_version};

use crate::leftover;

/// The name of the file, in the working directory.
const FILE: &str = "cache.lmdb";

/// This file and the one with the table of its readers, which LMDB creates next to it.
const FILES: [&str; 2] = [FILE, "cache.lmdb-lock"];

/// Size of the map over the capacity. Pages of a tree are about two thirds full after writes in
/// random order, and hold no more than two entries of 1,600 bytes.
const MAP_TIMES: u64 = 2;

/// Bytes to add, so that a few keys have the pages that LMDB needs for itself.
const MAP_MORE_BYTES: u64 = 1 << 20;

/// Slots for the threads of all processes that read; one takes 64 bytes of the other file.
const READERS: u32 = 4096;

/// An environment with its one database. A set is a transaction, and so is a get.
pub(crate) struct Lmdb {
    /// The open environment; `None` while it is replaced.
    env: Option<Env>,
    database: Database<Bytes, Bytes>,
    map_bytes: u64,
}

impl Lmdb {
    /// Creates an environment whose map has room for `times` the capacity.
    pub(crate) fn open(room: &Room, times: u64) -> Result<Self, Cause> {
        if room.found == Found::Nothing {
            leftover::remove(&FILES)?;
        }
        let map_bytes = room.capacity_bytes.saturating_mul(MAP_TIMES).saturating_mul(times);
        let map_bytes = map_bytes.saturating_add(MAP_MORE_BYTES).next_multiple_of(PAGE_BYTES);
        let (env, database) = open(map_bytes)?;
        Ok(Self { env: Some(env), database, map_bytes })
    }

    fn env(&self) -> &Env {
        self.env.as_ref().expect("it is there but while it is replaced")
    }
}

/// Largest page size of systems; the map is a multiple of it.
const PAGE_BYTES: u64 = 1 << 16;

#[expect(unsafe_code, reason = "a mapped file, and transactions that no disk is waited for")]
fn open(map_bytes: u64) -> Result<(Env, Database<Bytes, Bytes>), Cause> {
    // heed looks for the directory of a file, which a name alone does not have.
    let path = std::path::absolute(FILE)?;
    let mut options = EnvOpenOptions::new();
    options.map_size(usize::try_from(map_bytes)?).max_readers(READERS);
    // SAFETY: the working directory is the runner's and that of the other processes of the job,
    // which open the file in this way alone. Without syncs a power failure may destroy it; nobody
    // opens it then. Nothing writes into the map but LMDB: no pointer into it is given away.
    let env = unsafe {
        options.flags(EnvFlags::NO_SUB_DIR | EnvFlags::WRITE_MAP | EnvFlags::NO_SYNC);
        options.open(path)?
    };
    // What killed processes were reading is not written over otherwise, and the file fills up.
    env.clear_stale_readers()?;
    let mut transaction = env.write_txn()?;
    let database = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok((env, database))
}

impl Subject for Lmdb {
    fn version(&self) -> String {
        let version = lmdb_version();
        let (major, minor, patch) = (version.major, version.minor, version.patch);
        format!("{major}.{minor}.{patch} (heed {})", env!("VERSION_HEED"))
    }

    fn workers(
        &mut self,
        threads: usize,
    ) -> Result<Vec<Box<dyn Worker + Send + '_>>, SubjectError> {
        let user = || User { env: self.env(), database: self.database, map_bytes: self.map_bytes };
        Ok((0..threads).map(|_| Box::new(user()) as Box<dyn Worker + Send>).collect())
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        if let Some(env) = self.env.take() {
            env.prepare_for_closing().wait();
        }
        let removed = leftover::remove(&FILES).map_err(Cause::from);
        let opened = removed.and_then(|()| open(self.map_bytes));
        let (env, database) = opened.map_err(SubjectError::open("lmdb"))?;
        (self.env, self.database) = (Some(env), database);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Cause> {
        Ok(self.env().force_sync()?)
    }

    fn entries(&mut self) -> Option<u64> {
        let transaction = self.env().read_txn().ok()?;
        self.database.len(&transaction).ok()
    }

    fn counts(&mut self) -> Vec<(&'static str, u64)> {
        vec![("map_bytes", self.map_bytes)]
    }
}

/// One of the threads.
struct User<'a> {
    env: &'a Env,
    database: Database<Bytes, Bytes>,
    map_bytes: u64,
}

impl User<'_> {
    /// Returns the error of a write, with its consequence if the file is full.
    #[cold]
    fn failed(&self, error: heed::Error) -> Cause {
        match error {
            heed::Error::Mdb(MdbError::MapFull) => {
                let size = self.map_bytes;
                format!("MDB_MAP_FULL: the map of {size} bytes is full, and LMDB evicts nothing")
                    .into()
            }
            error => error.into(),
        }
    }
}

impl Worker for User<'_> {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Cause> {
        let transaction = self.env.read_txn()?;
        let Some(value) = self.database.get(&transaction, key)? else { return Ok(false) };
        buffer.clear();
        buffer.extend_from_slice(value);
        Ok(true)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        let mut transaction = self.env.write_txn()?;
        let written = self.database.put(&mut transaction, key, value);
        written.and_then(|()| transaction.commit()).map_err(|error| self.failed(error))
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Cause> {
        let mut transaction = self.env.write_txn()?;
        let deleted = self.database.delete(&mut transaction, key);
        let deleted = deleted.map_err(|error| self.failed(error))?;
        transaction.commit().map_err(|error| self.failed(error))?;
        Ok(deleted)
    }

    fn get_many(
        &mut self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Cause> {
        let transaction = self.env.read_txn()?;
        for (position, key) in keys.iter().enumerate() {
            found(position, self.database.get(&transaction, key)?);
        }
        Ok(())
    }
}
