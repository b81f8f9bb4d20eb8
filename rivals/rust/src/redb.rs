//! redb: a tree in a file, of one process. It evicts nothing.

use haypile_measure::subject::{Cause, Found, Room, Subject, SubjectError, Worker};
use redb::{
    AccessGuard, Builder, Database, Durability, ReadableDatabase, ReadableTableMetadata,
    TableDefinition, WriteTransaction,
};

use crate::leftover;

/// The name of the file, in the working directory.
const FILE: &str = "cache.redb";

/// The one table.
const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("entries");

/// Its own memory for pages over the capacity, so that all of them fit: pages of a tree are about
/// two thirds full.
const MEMORY_TIMES: u64 = 2;

/// Bytes to add, for the pages that redb needs for itself.
const MEMORY_MORE_BYTES: u64 = 1 << 20;

/// A database with its one table. A set is a transaction, and so is a get.
pub(crate) struct Redb {
    /// The open database; `None` while it is replaced.
    database: Option<Database>,
    memory_bytes: u64,
}

impl Redb {
    pub(crate) fn open(room: &Room) -> Result<Self, Cause> {
        if room.found == Found::Nothing {
            leftover::remove(&[FILE])?;
        }
        let memory_bytes = room.capacity_bytes.saturating_mul(MEMORY_TIMES);
        let memory_bytes = memory_bytes.saturating_add(MEMORY_MORE_BYTES);
        Ok(Self { database: Some(open(memory_bytes)?), memory_bytes })
    }

    fn database(&self) -> &Database {
        self.database.as_ref().expect("it is there but while it is replaced")
    }
}

fn open(memory_bytes: u64) -> Result<Database, Cause> {
    let mut builder = Builder::new();
    builder.set_cache_size(usize::try_from(memory_bytes)?);
    let database = builder.create(FILE)?;
    // A table that was never written to cannot be read from.
    let transaction = begin(&database)?;
    transaction.open_table(TABLE)?;
    transaction.commit()?;
    Ok(database)
}

/// A transaction that no disk is waited for.
fn begin(database: &Database) -> Result<WriteTransaction, Cause> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::None)?;
    Ok(transaction)
}

impl Subject for Redb {
    fn version(&self) -> String {
        env!("VERSION_REDB").to_owned()
    }

    fn workers(
        &mut self,
        threads: usize,
    ) -> Result<Vec<Box<dyn Worker + Send + '_>>, SubjectError> {
        let database = self.database();
        Ok((0..threads).map(|_| Box::new(User { database }) as Box<dyn Worker + Send>).collect())
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        // It writes to its file when it is closed.
        drop(self.database.take());
        let removed = leftover::remove(&[FILE]).map_err(Cause::from);
        let opened = removed.and_then(|()| open(self.memory_bytes));
        self.database = Some(opened.map_err(SubjectError::open("redb"))?);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Cause> {
        // A transaction of its own kind takes all before it to the disk.
        let mut transaction = self.database().begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        Ok(transaction.commit()?)
    }

    fn entries(&mut self) -> Option<u64> {
        self.database().begin_read().ok()?.open_table(TABLE).ok()?.len().ok()
    }

    fn counts(&mut self) -> Vec<(&'static str, u64)> {
        vec![("pages_bytes", self.memory_bytes)]
    }
}

/// One of the threads.
struct User<'a> {
    database: &'a Database,
}

impl Worker for User<'_> {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Cause> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        let Some(value) = table.get(key)? else { return Ok(false) };
        buffer.clear();
        buffer.extend_from_slice(value.value());
        Ok(true)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        let transaction = begin(self.database)?;
        transaction.open_table(TABLE)?.insert(key, value)?;
        Ok(transaction.commit()?)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Cause> {
        let transaction = begin(self.database)?;
        let deleted = transaction.open_table(TABLE)?.remove(key)?.is_some();
        transaction.commit()?;
        Ok(deleted)
    }

    fn get_many(
        &mut self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Cause> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        for (position, key) in keys.iter().enumerate() {
            let value = table.get(key)?;
            found(position, value.as_ref().map(AccessGuard::value));
        }
        Ok(())
    }
}
