//! SQLite by `rusqlite`: a table in a file, which processes share. It evicts nothing.

use std::thread;
use std::time::{Duration, Instant};

use haypile_measure::subject::{Cause, Found, Room, Subject, SubjectError, Worker};
use rusqlite::{CachedStatement, Connection, ErrorCode, OptionalExtension, params};

use crate::leftover;

/// The name of the file, in the working directory.
const FILE: &str = "cache.sqlite";

/// This file and those that SQLite creates next to it: the write-ahead log, and its index.
const FILES: [&str; 3] = [FILE, "cache.sqlite-wal", "cache.sqlite-shm"];

/// Time that a write waits for another one, before it fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// Pause before another attempt to open a file that others were opening.
const PAUSE: Duration = Duration::from_millis(1);

/// Mapped bytes of the file over the capacity: pages of a tree are about two thirds full.
const MAP_TIMES: u64 = 2;

/// Most bytes of the file that SQLite maps, as it is built here.
const MAX_MAP_BYTES: i64 = 0x7fff_0000;

/// The memory for pages that each connection has. All pages of the log fit, which is 1,000 pages
/// of 4 KiB before it goes into the file: those cannot be read by the mapping.
const PAGES_KIB: i64 = 8 << 10;

/// A row above which SQLite's documentation advises against `WITHOUT ROWID`: a twentieth of a page of
/// 4 KiB (<https://sqlite.org/withoutrowid.html>, section 4).
const LARGE_ROW_BYTES: u64 = 4096 / 20;

/// A table as its users would have it for values of this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    table: &'static str,
    set: &'static str,
}

/// Values next to their keys, in one tree: for short ones.
const SHORT: Form = Form {
    table: "CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID",
    set: "REPLACE INTO entries (key, value) VALUES (?1, ?2)",
};

/// Keys in an index, and values in a tree by row: for longer ones. A row is updated in its place.
const LONG: Form = Form {
    table: "CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB)",
    set: "INSERT INTO entries (key, value) VALUES (?1, ?2) \
          ON CONFLICT (key) DO UPDATE SET value = excluded.value",
};

impl Form {
    fn of(room: &Room) -> Self {
        let row_bytes = room.capacity_bytes / room.capacity_entries.max(1);
        if row_bytes > LARGE_ROW_BYTES { LONG } else { SHORT }
    }
}

const GET: &str = "SELECT value FROM entries WHERE key = ?1";
const DELETE: &str = "DELETE FROM entries WHERE key = ?1";
const COUNT: &str = "SELECT count(*) FROM entries";

/// Waits for the disk while the log goes into the file, and at no other time.
const FLUSH: [&str; 3] =
    ["PRAGMA synchronous = FULL", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA synchronous = OFF"];

/// SQLite with a connection for each thread, the first of them from the start.
pub(crate) struct Sqlite {
    connections: Vec<Connection>,
    map_bytes: i64,
    form: Form,
}

impl Sqlite {
    pub(crate) fn open(room: &Room) -> Result<Self, Cause> {
        if room.found == Found::Nothing {
            leftover::remove(&FILES)?;
        }
        let map_bytes = i64::try_from(room.capacity_bytes.saturating_mul(MAP_TIMES));
        let map_bytes = map_bytes.unwrap_or(MAX_MAP_BYTES).min(MAX_MAP_BYTES);
        let form = Form::of(room);
        Ok(Self { connections: vec![connect(map_bytes, form)?], map_bytes, form })
    }

    fn first(&self) -> Result<&Connection, Cause> {
        self.connections.first().ok_or_else(|| "the file could not be replaced before".into())
    }
}

/// Opens a connection. When several threads or processes open a new file at the same time, SQLite
/// refuses some of them without its busy timeout, because each switches the file to WAL.
fn connect(map_bytes: i64, form: Form) -> Result<Connection, Cause> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match try_connect(map_bytes, form) {
            Err(error) if is_busy(&error) && Instant::now() < deadline => thread::sleep(PAUSE),
            connected => return connected,
        }
    }
}

fn is_busy(error: &Cause) -> bool {
    let code = error.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
    code == Some(ErrorCode::DatabaseBusy)
}

fn try_connect(map_bytes: i64, form: Form) -> Result<Connection, Cause> {
    let connection = Connection::open(FILE)?;
    connection.busy_timeout(PATIENCE)?;
    let journal: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if journal != "wal" {
        return Err(format!("there is no WAL on this file system, but '{journal}'").into());
    }
    connection.pragma_update(None, "synchronous", "OFF")?;
    // Below 0 it is in KiB.
    connection.pragma_update(None, "cache_size", -PAGES_KIB)?;
    connection.pragma_update(None, "mmap_size", map_bytes)?;
    connection.execute(form.table, [])?;
    Ok(connection)
}

impl Subject for Sqlite {
    fn version(&self) -> String {
        format!("{} (rusqlite {})", rusqlite::version(), env!("VERSION_RUSQLITE"))
    }

    fn workers(
        &mut self,
        threads: usize,
    ) -> Result<Vec<Box<dyn Worker + Send + '_>>, SubjectError> {
        while self.connections.len() < threads {
            self.connections
                .push(connect(self.map_bytes, self.form).map_err(SubjectError::open("sqlite"))?);
        }
        let set = self.form.set;
        let user = |connection| Box::new(User { connection, set }) as Box<dyn Worker + Send>;
        Ok(self.connections.iter_mut().take(threads).map(user).collect())
    }

    fn fresh(&mut self) -> Result<(), SubjectError> {
        self.connections.clear();
        let removed = leftover::remove(&FILES).map_err(Cause::from);
        let opened = removed.and_then(|()| connect(self.map_bytes, self.form));
        self.connections.push(opened.map_err(SubjectError::open("sqlite"))?);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Cause> {
        let connection = self.first()?;
        let mut is_busy = false;
        for statement in FLUSH {
            let busy = connection.query_row(statement, [], |row| row.get(0)).optional()?;
            is_busy |= busy.unwrap_or(false);
        }
        if is_busy {
            return Err(
                "the log could not be written into the file: somebody still reads it".into()
            );
        }
        Ok(())
    }

    fn counts(&mut self) -> Vec<(&'static str, u64)> {
        vec![("without_rowid", u64::from(self.form == SHORT))]
    }

    fn entries(&mut self) -> Option<u64> {
        let entries: i64 = self.first().ok()?.query_row(COUNT, [], |row| row.get(0)).ok()?;
        entries.try_into().ok()
    }
}

/// One of the threads.
struct User<'a> {
    connection: &'a mut Connection,
    set: &'static str,
}

impl Worker for User<'_> {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Cause> {
        let mut statement = self.connection.prepare_cached(GET)?;
        read(&mut statement, key, |value| {
            buffer.clear();
            buffer.extend_from_slice(value);
        })
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        self.connection.prepare_cached(self.set)?.execute(params![key, value])?;
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Cause> {
        Ok(self.connection.prepare_cached(DELETE)?.execute(params![key])? > 0)
    }

    fn get_many(
        &mut self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Cause> {
        // One transaction, so that locks are taken once.
        let transaction = self.connection.transaction()?;
        let mut statement = transaction.prepare_cached(GET)?;
        for (position, key) in keys.iter().enumerate() {
            if !read(&mut statement, key, |value| found(position, Some(value)))? {
                found(position, None);
            }
        }
        drop(statement);
        Ok(transaction.commit()?)
    }
}

/// Shows the value of a key, or says that there is none.
fn read(
    statement: &mut CachedStatement<'_>,
    key: &[u8],
    found: impl FnOnce(&[u8]),
) -> Result<bool, Cause> {
    let mut rows = statement.query(params![key])?;
    let Some(row) = rows.next()? else { return Ok(false) };
    found(row.get_ref(0)?.as_blob()?);
    Ok(true)
}
