//! Output of `redis-cli monitor`: a line for each command, with its time in seconds, its database and client, and its words in quotes.
//!
//! Reads are requests without a size, for the line does not have it: they have the last one that was written. A command with several keys is
//! several requests. What a script calls stands behind its `EVAL`, from `lua`, and that is what counts. The key of another database
//! than 0 has the number before it. A command that changes a part of a value (`HSET`, `APPEND`, `INCR`) is a write without a size. Commands that
//! are not known, and those without keys, are passed over and counted.

use super::super::Op;
use super::bad::Bad;
use super::entry::{LineParser, OwnedRequest, Parsed};
use super::field;
use super::options::TimeUnit;

/// Commands that read the key after them.
const READS: [&[u8]; 29] = [
    b"GET",
    b"GETEX",
    b"GETRANGE",
    b"SUBSTR",
    b"STRLEN",
    b"GETBIT",
    b"BITCOUNT",
    b"BITPOS",
    b"DUMP",
    b"HGET",
    b"HMGET",
    b"HGETALL",
    b"HKEYS",
    b"HVALS",
    b"HLEN",
    b"HEXISTS",
    b"HSCAN",
    b"LRANGE",
    b"LINDEX",
    b"LLEN",
    b"SMEMBERS",
    b"SISMEMBER",
    b"SCARD",
    b"ZRANGE",
    b"ZRANGEBYSCORE",
    b"ZSCORE",
    b"ZRANK",
    b"ZCARD",
    b"TYPE",
];

/// Commands that write a part of the value of the key after them.
const CHANGES: [&[u8]; 27] = [
    b"APPEND",
    b"INCR",
    b"INCRBY",
    b"INCRBYFLOAT",
    b"DECR",
    b"DECRBY",
    b"SETRANGE",
    b"SETBIT",
    b"HSET",
    b"HMSET",
    b"HSETNX",
    b"HDEL",
    b"HINCRBY",
    b"LPUSH",
    b"RPUSH",
    b"LPOP",
    b"RPOP",
    b"LTRIM",
    b"LSET",
    b"SADD",
    b"SREM",
    b"SPOP",
    b"ZADD",
    b"ZREM",
    b"ZINCRBY",
    b"PFADD",
    b"RESTORE",
];

/// Commands that read all keys after them, and those that delete them.
const READ_ALL: [&[u8]; 2] = [b"MGET", b"EXISTS"];
const DELETE_ALL: [&[u8]; 2] = [b"DEL", b"UNLINK"];

/// The database and the time of a command.
struct When<'a> {
    database: &'a [u8],
    time_us: u64,
}

/// Facts that a command tells about a value.
#[derive(Clone, Copy, Default)]
struct Value {
    size_bytes: Option<u64>,
    ttl_us: Option<u64>,
}

/// A parser of the output of Redis's `MONITOR`, one line (command) at a time, which holds the requests of the last
/// line.
#[derive(Default)]
pub(super) struct RedisMonitor {
    /// The words of a line, without quotes.
    words: Vec<Vec<u8>>,
    several: Vec<OwnedRequest>,
    other_commands: u64,
}

impl RedisMonitor {
    /// Returns a note on how many Redis commands were skipped, because they read and write no value of a key; `None` if
    /// there were none.
    pub(super) fn note(&self) -> Option<String> {
        (self.other_commands > 0).then(|| {
            format!(
                "{} commands that read and write no value of a key are passed over",
                self.other_commands
            )
        })
    }

    /// Appends a request for the key in the word with this number.
    fn add(&mut self, op: Op, word: usize, when: &When<'_>, value: Value) {
        let key = match when.database {
            b"0" => self.words[word].clone(),
            database => [database, b"/", &self.words[word]].concat(),
        };
        let Value { size_bytes, ttl_us } = value;
        self.several.push(OwnedRequest {
            key,
            size_bytes,
            op,
            time_us: Some(when.time_us),
            ttl_us,
        });
    }

    /// Appends the requests of the command in the words; returns whether it is known.
    fn command(&mut self, when: &When<'_>) -> bool {
        let name = self.words[0].to_ascii_uppercase();
        let (name, count) = (name.as_slice(), self.words.len());
        let value = |words: &[Vec<u8>], at: usize, ttl_us| Value {
            size_bytes: words.get(at).map(|word| word.len() as u64),
            ttl_us,
        };
        let unknown = Value::default();
        match name {
            _ if count < 2 => return false,
            b"SET" => self.add(Op::Write, 1, when, value(&self.words, 2, self.ttl_of_set())),
            b"SETNX" | b"GETSET" => self.add(Op::Write, 1, when, value(&self.words, 2, None)),
            b"SETEX" | b"PSETEX" => {
                let unit =
                    if name == b"SETEX" { TimeUnit::Seconds } else { TimeUnit::Milliseconds };
                let ttl_us = self.words.get(2).and_then(|ttl| field::time_us(ttl, unit));
                self.add(Op::Write, 1, when, value(&self.words, 3, ttl_us));
            }
            b"MSET" | b"MSETNX" => {
                for key in (1..count).step_by(2) {
                    self.add(Op::Write, key, when, value(&self.words, key + 1, None));
                }
            }
            b"GETDEL" => {
                self.add(Op::Read, 1, when, unknown);
                self.add(Op::Delete, 1, when, unknown);
            }
            name if READ_ALL.contains(&name) => {
                (1..count).for_each(|key| self.add(Op::Read, key, when, unknown));
            }
            name if DELETE_ALL.contains(&name) => {
                (1..count).for_each(|key| self.add(Op::Delete, key, when, unknown));
            }
            name if READS.contains(&name) => self.add(Op::Read, 1, when, unknown),
            name if CHANGES.contains(&name) => self.add(Op::Write, 1, when, unknown),
            _ => return false,
        }
        true
    }

    /// Returns the TTL that the words of a `SET` state, if they do.
    fn ttl_of_set(&self) -> Option<u64> {
        let at = |name: &[u8]| {
            self.words.iter().skip(3).position(|word| word.eq_ignore_ascii_case(name))
        };
        let (at, unit) = match (at(b"EX"), at(b"PX")) {
            (Some(at), _) => (at, TimeUnit::Seconds),
            (None, Some(at)) => (at, TimeUnit::Milliseconds),
            (None, None) => return None,
        };
        field::time_us(self.words.get(at + 4)?, unit)
    }
}

impl LineParser for RedisMonitor {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Bad<'a>> {
        let line = line.trim_ascii();
        if line.is_empty() || line == b"OK" || line == b"+OK" {
            return Ok(Parsed::Nothing);
        }
        let line = line.strip_prefix(b"+").unwrap_or(line);
        let parts = split(line);
        let Some((time, database, words)) = parts else {
            return Err(Bad::new("a time, [database client] and words in quotes", line));
        };
        let time_us = field::time_us(time, TimeUnit::Seconds)
            .ok_or_else(|| Bad::new("a time in seconds", time))?;
        if !unquoted(words, &mut self.words) || self.words.is_empty() {
            return Err(Bad::new("words in quotes", words));
        }
        self.several.clear();
        if !self.command(&When { database, time_us }) {
            self.other_commands += 1;
            return Ok(Parsed::Nothing);
        }
        Ok(Parsed::Several(&self.several))
    }
}

/// Divides a line into its time, its database and its words.
fn split(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let open = memchr::memmem::find(line, b" [")?;
    let (time, rest) = (&line[..open], &line[open + 2..]);
    // The name of a socket can have brackets; quotes begin the words.
    let close = memchr::memmem::find(rest, b"] \"")?;
    let database = rest[..close].split(|byte| *byte == b' ').next()?;
    let is_number = !database.is_empty() && database.iter().all(u8::is_ascii_digit);
    is_number.then(|| (time, database, &rest[close + 2..]))
}

/// Undoes the quotes of words; returns whether all are whole.
fn unquoted(mut text: &[u8], words: &mut Vec<Vec<u8>>) -> bool {
    words.clear();
    loop {
        text = text.trim_ascii_start();
        let Some(rest) = text.strip_prefix(b"\"") else { return text.is_empty() };
        let mut word = Vec::new();
        let mut bytes = rest.iter();
        loop {
            match bytes.next().copied() {
                None => return false,
                Some(b'"') => break,
                Some(b'\\') => match bytes.next().copied() {
                    None => return false,
                    Some(b'n') => word.push(b'\n'),
                    Some(b'r') => word.push(b'\r'),
                    Some(b't') => word.push(b'\t'),
                    Some(b'a') => word.push(7),
                    Some(b'b') => word.push(8),
                    Some(b'x') => {
                        let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
                        let (Some(high), Some(low)) = (digit(bytes.next()), digit(bytes.next()))
                        else {
                            return false;
                        };
                        word.push(u8::try_from(high * 16 + low).expect("two digits"));
                    }
                    Some(other) => word.push(other),
                },
                Some(other) => word.push(other),
            }
        }
        words.push(word);
        text = bytes.as_slice();
    }
}
