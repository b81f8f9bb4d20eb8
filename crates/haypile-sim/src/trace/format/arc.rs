//! The `.lis` files of the ARC paper (Megiddo and Modha, FAST 2003): four numbers per line,
//! separated by blanks: the first block, how many blocks, one that is ignored, and the number of
//! the request. A line reads that many blocks one after the other; a count of 0 reads none.

use super::super::{Key, Request};
use super::bad::Bad;
use super::entry::{LineParser, Parsed};
use super::field;

pub(super) struct Arc;

impl LineParser for Arc {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Bad<'a>> {
        let mut columns = line.split(u8::is_ascii_whitespace).filter(|column| !column.is_empty());
        let Some(start) = columns.next() else { return Ok(Parsed::Nothing) };
        let (Some(count), Some(_), Some(_), None) =
            (columns.next(), columns.next(), columns.next(), columns.next())
        else {
            return Err(Bad::new("four numbers: start, count, ignored, request number", line));
        };
        let first = field::decimal(start)
            .ok_or_else(|| Bad::new("a first block (decimal number)", start))?;
        let blocks = field::decimal(count)
            .ok_or_else(|| Bad::new("a count of blocks (decimal number)", count))?;
        Parsed::run(Request::read(Key::Number(first)), first, blocks, line)
    }
}
