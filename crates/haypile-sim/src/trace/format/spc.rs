//! SPC block traces: `ASU,LBA,size,opcode,timestamp` and possibly more columns, which are
//! ignored. LBA counts blocks of 512 bytes within the ASU (application storage unit), the size is
//! in bytes, the opcode is `r` or `w` in either case, the timestamp is in seconds.
//!
//! As `relstorage` a line is one operation on the key LBA. As `blocks` it touches
//! `ceil(size / 512)` blocks: the keys are `ASU * 2^48 + LBA` and those that follow, each of 512
//! bytes, or as many larger ones as it touches; a size of 0 touches none.

use super::super::{Key, Op, Request};
use super::bad::Bad;
use super::blocks::{BlockSize, EXPECTED_BLOCKS, MAX_DEVICE, SECTOR_BYTES, blocks_of_device};
use super::entry::{LineParser, Parsed};
use super::field::{self, number};
use super::options::{SpcAs, TimeUnit};

pub(super) struct Spc {
    /// The block size; `None` to read lines as RelStorage's authors do.
    block_size: Option<BlockSize>,
    /// The first storage unit, and whether there are others.
    units: Option<(u64, bool)>,
}

impl Spc {
    /// Creates a parser of SPC traces. A block size, or `read_as` blocks, makes it divide requests into blocks.
    pub(super) fn new(read_as: SpcAs, block_size: Option<BlockSize>) -> Self {
        let sectors = (read_as == SpcAs::Blocks).then_some(BlockSize::SECTOR);
        Self { block_size: block_size.or(sectors), units: None }
    }

    /// Returns a note that equal addresses on several storage units (ASUs) are read as one key; `None` if the trace has
    /// only one unit, or they stay apart.
    pub(super) fn note(&self) -> Option<String> {
        let is_merged = matches!(self.units, Some((_, true)));
        (is_merged && self.block_size.is_none()).then(|| {
            "this SPC trace has several units (ASU), and equal addresses of all of them are one key here, \
             as in the source's reading: --as blocks keeps units apart"
                .to_owned()
        })
    }
}

impl LineParser for Spc {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Bad<'a>> {
        if line.trim_ascii().is_empty() {
            return Ok(Parsed::Nothing);
        }
        let mut columns = line.split(|&byte| byte == b',');
        let mut next = || {
            columns
                .next()
                .map(<[u8]>::trim_ascii)
                .ok_or_else(|| Bad::new("ASU,LBA,size,opcode,timestamp", line))
        };
        let [asu, lba, size, opcode, time] = [next()?, next()?, next()?, next()?, next()?];
        let asu_number = number(asu, "an ASU (decimal number)")?;
        let lba_number = number(lba, "an LBA (decimal number)")?;
        let size_bytes = number(size, "a size in bytes (decimal number)")?;
        let op = match opcode {
            b"r" | b"R" => Op::Read,
            b"w" | b"W" => Op::Write,
            _ => return Err(Bad::new("an opcode (r or w)", opcode)),
        };
        let time_us = field::time_us(time, TimeUnit::Seconds)
            .ok_or_else(|| Bad::new("a timestamp in seconds", time))?;
        let request = Request {
            key: Key::Number(lba_number),
            size_bytes: Some(size_bytes),
            op,
            time_us: Some(time_us),
            ttl_us: None,
            cost_ns: None,
        };
        let (first, has_others) = self.units.get_or_insert((asu_number, false));
        *has_others |= *first != asu_number;
        let Some(block_size) = self.block_size else { return Ok(Parsed::One(request)) };
        if asu_number > MAX_DEVICE {
            return Err(Bad::new("an ASU below 65536", asu));
        }
        let offset =
            lba_number.checked_mul(SECTOR_BYTES).ok_or_else(|| Bad::new(EXPECTED_BLOCKS, line))?;
        blocks_of_device(request, asu_number, (offset, size_bytes), block_size, line)
    }
}
