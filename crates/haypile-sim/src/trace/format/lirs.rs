//! The text traces of the LIRS papers (Jiang and Zhang, SIGMETRICS 2002): one key per line,
//! usually a number. A line `*` is a break point, where the papers' programs print what they
//! counted so far; it is passed over, as blank lines are.

use super::super::Request;
use super::bad::Bad;
use super::entry::{LineParser, Parsed};
use super::field;

pub(super) struct Lirs;

impl LineParser for Lirs {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Bad<'a>> {
        let key = line.trim_ascii();
        if key.is_empty() || key == b"*" {
            return Ok(Parsed::Nothing);
        }
        // Any line would do as a key, and any file as a trace, were it not for this.
        if key.iter().any(u8::is_ascii_control) {
            return Err(Bad::new("a key without control characters", key));
        }
        Ok(Parsed::One(Request::read(field::key(key))))
    }
}
