//! Leases on Redis: a placeholder that nobody else has written, or the previous value of the key.
//!
//! Redis has no numbers of changes. Under a key without an entry, a lease writes a placeholder: a prefix that no value has
//! by chance, and a number of its own. A lease on an entry is the SHA-1 of its value. Whoever deletes or writes the key
//! removes the one or the other, except that a value that was changed and changed back looks unchanged.

use std::time::Duration;

use haypile::Lease;
use redis::{Cmd, Value, cmd};

use super::connection::{Reply, value};
use super::nodes::Purpose;
use super::store::RedisStore;
use super::wire::{wire_ttl, with_key};
use crate::deadline::Lost;
use crate::lease::random;

/// The begin of each placeholder: sixteen bytes by chance.
const MARK: [u8; 16] = *b"\x96\xe2\x1d\xb4\x0f\xc8\x5a\x73haypile\0";
/// The length of a placeholder.
const PLACEHOLDER_BYTES: usize = 32;
/// The last byte of what is asked for to see whether a value is a placeholder.
const LAST: usize = PLACEHOLDER_BYTES;

/// The kinds of leases, by their first byte.
const ON_PLACEHOLDER: u8 = 1;
const ON_VALUE: u8 = 2;
/// The longest of a kind: a SHA-1 in digits of base 16 would not fit.
const SHA1_BYTES: usize = 20;

/// Functions of the scripts. `ARGV[1]` is the mark; a value of another type than bytes is an entry.
const FUNCTIONS: &str = "local function is_placeholder(key) \
     local head = redis.pcall('GETRANGE', key, 0, 32) \
     if type(head) == 'table' and not string.find(head.err, 'WRONGTYPE') then error(head.err) end \
     return type(head) == 'string' and #head == 32 and string.sub(head, 1, 16) == ARGV[1] end \
     local function matches(key, lease) \
     local kind, rest = string.byte(lease, 1), string.sub(lease, 2) \
     if kind == 1 then return redis.call('GET', key) == ARGV[1] .. string.sub(rest, 1, 16) end \
     if kind ~= 2 then return false end \
     local value = redis.call('GET', key) \
     if not value then return false end \
     local digits = {} \
     for at = 1, 20 do digits[at] = string.format('%02x', string.byte(rest, at)) end \
     return redis.sha1hex(value) == table.concat(digits) end \
     local function write(key, value, ttl) \
     if ttl == '' then redis.call('SET', key, value) else redis.call('SET', key, value, 'PX', ttl) end \
     return 1 end ";

/// Returns the placeholder of the key, of which `ARGV[2]` is written for this many milliseconds if there is nothing, or the
/// SHA-1 of the value in digits.
const GRANT: &str = "local value = redis.call('GET', KEYS[1]) \
     if not value then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) return ARGV[2] end \
     if is_placeholder(KEYS[1]) then return value end \
     return redis.sha1hex(value)";

/// Whether a lease holds.
const CHECK: &str = "if matches(KEYS[1], ARGV[2]) then return 1 end return 0";

/// Writes a value if a lease holds.
const SET_LEASED: &str =
    "if matches(KEYS[1], ARGV[2]) then return write(KEYS[1], ARGV[3], ARGV[4]) end return 0";

/// Writes a value if there is no entry, or only if there is one. `ARGV[2]` tells which.
const SET_IF: &str = "local is_entry = redis.call('EXISTS', KEYS[1]) == 1 and not is_placeholder(KEYS[1]) \
     if is_entry ~= (ARGV[2] == 'XX') then return 0 end \
     return write(KEYS[1], ARGV[3], ARGV[4])";

/// Gives an entry a TTL of this many milliseconds, or none; whether there is an entry.
const TOUCH: &str = "if redis.call('EXISTS', KEYS[1]) == 0 or is_placeholder(KEYS[1]) then return 0 end \
     if ARGV[2] == '' then redis.call('PERSIST', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[2]) end \
     return 1";

/// Whether a Redis value, or its first bytes, is a placeholder: the mark that somebody has a lease on a key without a
/// value.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    value.len() == PLACEHOLDER_BYTES && value.starts_with(&MARK)
}

/// Returns the Redis command that reads the first 33 bytes of a value, which show whether it is a placeholder of a
/// lease. The server refuses it for an entry that is not bytes.
pub(super) fn head(key: &[u8]) -> Cmd {
    with_key("GETRANGE", key).arg(0).arg(LAST).take()
}

/// Converts the replies to a [`head`] and another command; returns the other reply, and whether the key had only a
/// placeholder of a lease.
pub(super) fn and_head(replies: Vec<Reply<Value>>) -> Result<(Reply<bool>, bool), Lost> {
    let mut replies = replies.into_iter();
    let mut next = || replies.next().unwrap_or(Ok(Value::Nil));
    let (head, second) = (value::<Vec<u8>>(next())?, value(next())?);
    Ok(match is_of_placeholder(head) {
        Ok(is_placeholder) => (second, is_placeholder),
        Err(error) => (Err(error), false),
    })
}

/// Returns whether the reply to a [`head`] shows a placeholder of a lease, or the server's refusal. An entry that is
/// not bytes is not a placeholder.
pub(super) fn is_of_placeholder(head: Reply<Vec<u8>>) -> Reply<bool> {
    match head {
        Ok(head) => Ok(is_placeholder(&head)),
        Err(error) if error.code() == Some("WRONGTYPE") => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the command of a script about a key, to which the mark is given.
fn script(body: &str, key: &[u8]) -> Cmd {
    let mut command = cmd("EVAL");
    command.arg([FUNCTIONS, body].concat()).arg(1).arg(key).arg(&MARK[..]);
    command
}

fn ttl_text(ttl: Option<Duration>) -> String {
    wire_ttl(ttl).map_or_else(String::new, |ttl| ttl.to_string())
}

/// Returns the Redis command that writes a value if the lease still holds: nobody has written or deleted the key since
/// it was granted.
pub(super) fn set_leased(key: &[u8], value: &[u8], lease: Lease, ttl: Option<Duration>) -> Cmd {
    script(SET_LEASED, key).arg(&lease.to_bytes()[..]).arg(value).arg(ttl_text(ttl)).take()
}

/// Returns the Redis command that writes a value only if there is an entry (`is_entry`), or only if there is none. A
/// placeholder of a lease does not count as an entry.
pub(super) fn set_if(key: &[u8], value: &[u8], is_entry: bool, ttl: Option<Duration>) -> Cmd {
    let condition = if is_entry { "XX" } else { "NX" };
    script(SET_IF, key).arg(condition).arg(value).arg(ttl_text(ttl)).take()
}

/// Returns the Redis command that gives an entry another TTL, or removes its TTL.
pub(super) fn touch(key: &[u8], ttl: Option<Duration>) -> Cmd {
    script(TOUCH, key).arg(ttl_text(ttl)).take()
}

fn lease_of(kind: u8, content: &[u8]) -> Lease {
    let mut bytes = [0; Lease::BYTES];
    bytes[0] = kind;
    bytes[1..=content.len()].copy_from_slice(content);
    Lease::from_bytes(bytes)
}

/// Returns the bytes of digits of base 16.
fn from_digits(digits: &[u8]) -> Option<[u8; SHA1_BYTES]> {
    let mut bytes = [0; SHA1_BYTES];
    if digits.len() != 2 * SHA1_BYTES {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

impl RedisStore {
    pub(super) fn grant(&self, key: &[u8]) -> haypile::Result<Lease> {
        let key = self.key(key)?;
        if !self.common.has_leases {
            return Err(self.unsupported("lease"));
        }
        let number: Vec<u8> = [random(), random()].map(u64::to_le_bytes).concat();
        let placeholder = [&MARK[..], &number].concat();
        let life = ttl_text(Some(self.common.lease_life()));
        let command = script(GRANT, &key).arg(&placeholder).arg(life).take();
        // What a server writes late is a placeholder, where there is nothing.
        let Some(reply) = self.ask::<Vec<u8>>(Purpose::Read, key, command) else {
            return Ok(lease_of(0, &[]));
        };
        let state = self.accepted("lease", reply)?;
        if is_placeholder(&state) {
            return Ok(lease_of(ON_PLACEHOLDER, &state[MARK.len()..]));
        }
        match from_digits(&state) {
            Some(sha1) => Ok(lease_of(ON_VALUE, &sha1)),
            None => Err(self.backend("lease", "the server answered no lease")),
        }
    }

    pub(super) fn holds(&self, key: &[u8], lease: Lease) -> haypile::Result<bool> {
        let key = self.key(key)?;
        let command = script(CHECK, &key).arg(&lease.to_bytes()[..]).take();
        match self.ask(Purpose::Read, key, command) {
            Some(reply) => self.accepted("lease", reply),
            // Nobody has removed it from a server that does not answer, as far as anybody can see.
            None => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_is_as_long_as_one() {
        let placeholder = [&MARK[..], &[7; 16]].concat();
        assert!(is_placeholder(&placeholder));
        assert!(!is_placeholder(&placeholder[..31]));
        assert!(!is_placeholder(&[&placeholder[..], b"."].concat()));
        assert!(!is_placeholder(&[b'.'; 32]));
    }

    #[test]
    fn digits_are_read() {
        let digits = b"000102030405060708090a0b0c0d0e0f101112ff";
        let bytes = from_digits(digits).unwrap();
        assert_eq!((bytes[1], bytes[18], bytes[19]), (1, 18, 255));
        assert_eq!(from_digits(&digits[1..]), None);
        assert_eq!(from_digits(&[b'g'; 40]), None);
    }
}
