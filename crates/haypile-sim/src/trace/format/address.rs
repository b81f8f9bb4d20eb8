//! Memory addresses: `l` (load) or `s` (store), or `r` and `w`, in either case, and an address,
//! decimal or hexadecimal after `0x`, separated by blanks. What follows on the line, such as the
//! number of instructions in between, is ignored. The key is the address itself, not its line or
//! page.

use super::super::{Key, Op, Request};
use super::bad::Bad;
use super::entry::{LineParser, Parsed};
use super::field;

pub(super) struct Address;

impl LineParser for Address {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Bad<'a>> {
        let mut columns = line.split(u8::is_ascii_whitespace).filter(|column| !column.is_empty());
        let Some(word) = columns.next() else { return Ok(Parsed::Nothing) };
        let op = match word {
            b"l" | b"L" | b"r" | b"R" => Op::Read,
            b"s" | b"S" | b"w" | b"W" => Op::Write,
            _ => return Err(Bad::new("l, s, r or w and an address", line)),
        };
        let address = columns.next().unwrap_or_default();
        let number = field::decimal_or_hex(address)
            .ok_or_else(|| Bad::new("an address (decimal, or hexadecimal after 0x)", address))?;
        Ok(Parsed::One(Request { op, ..Request::read(Key::Number(number)) }))
    }
}
