//! Public data sets by name, in the layouts that their publishers document.
//!
//! | name | a line | key |
//! |---|---|---|
//! | `twitter` | time in s, key, bytes of the key, bytes of the value, client, operation, TTL | the key |
//! | `meta-kv` | CSV with a header: `key,op,size,op_count,key_size` and later forms | the key |
//! | `meta-cdn` | CSV with a header: `timestamp,cacheKey,OpType,objectSize,...` | the object, also where a part of it was asked for |
//! | `wiki` | time in s, path, type of the image (in the files of uploads only), bytes, time to the first byte | the path |
//! | `tencent-photo` | `YYYYMMDDhhmmss`, photo, format, specification, bytes, hit, terminal, ms | the photo in one format and specification |
//! | `ibm-cos` | time in ms, `REST.GET.OBJECT` and the like, object, its bytes, first and last byte asked for | the object |
//! | `msr` | time in units of 100 ns, host, disk, `Read` or `Write`, offset, bytes, response time | a block of the disk |
//! | `alibaba` | device, `R` or `W`, offset, bytes, time in us | a block of the device |
//! | `tencent-block` | time in s, offset and length in sectors of 512 bytes, 0 or 1 (write), volume | a block of the volume |
//!
//! Lines that name columns, and lines for blocks of length 0, stand for nothing.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use super::super::{Key, Op, Request, TraceError};
use super::bad::Bad;
use super::blocks::{BlockSize, MAX_DEVICE, SECTOR_BYTES, blocks_of_device};
use super::entry::{LineParser, Parsed};
use super::field::{self, number};
use super::operation;
use super::options::{CsvOptions, Delimiter, TimeUnit, unknown_name};
use super::web::compact_time;

/// A public data set of cache or block traces, such as Twitter's, that is read in its own format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DataSet {
    /// Clusters of Twitter's cache, 2020.
    Twitter,
    /// `CacheLib`'s key-value traces.
    MetaKv,
    /// `CacheLib`'s traces of a content network.
    MetaCdn,
    /// Wikimedia's content network, 2019.
    Wiki,
    /// Photos of Tencent QQ, 2016.
    TencentPhoto,
    /// IBM's object store, 2019.
    IbmCos,
    /// Disks of Microsoft Research in Cambridge, 2007.
    Msr,
    /// Block devices of Alibaba, 2020.
    Alibaba,
    /// Block devices of Tencent, 2018.
    TencentBlock,
}

impl DataSet {
    /// All known public data sets of traces.
    pub const ALL: [Self; 9] = [
        Self::Twitter,
        Self::MetaKv,
        Self::MetaCdn,
        Self::Wiki,
        Self::TencentPhoto,
        Self::IbmCos,
        Self::Msr,
        Self::Alibaba,
        Self::TencentBlock,
    ];

    /// Returns the name of the data set on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Twitter => "twitter",
            Self::MetaKv => "meta-kv",
            Self::MetaCdn => "meta-cdn",
            Self::Wiki => "wiki",
            Self::TencentPhoto => "tencent-photo",
            Self::IbmCos => "ibm-cos",
            Self::Msr => "msr",
            Self::Alibaba => "alibaba",
            Self::TencentBlock => "tencent-block",
        }
    }

    /// Returns a description of the data set in one line, such as `IBM's object store, 2019`, for help texts.
    pub fn description(self) -> &'static str {
        match self {
            Self::Twitter => "clusters of Twitter's cache, 2020",
            Self::MetaKv => "CacheLib's key-value traces of Meta",
            Self::MetaCdn => "CacheLib's traces of Meta's content network",
            Self::Wiki => "Wikimedia's content network, 2019",
            Self::TencentPhoto => "photos of Tencent QQ, 2016",
            Self::IbmCos => "IBM's object store, 2019",
            Self::Msr => "disks of Microsoft Research in Cambridge, 2007, in blocks",
            Self::Alibaba => "block devices of Alibaba, 2020, in blocks",
            Self::TencentBlock => "block devices of Tencent, 2018, in blocks",
        }
    }

    /// Returns the CSV options (columns, delimiter and so on) with which a data set is read; `None` if its format is
    /// not CSV.
    pub(super) fn csv(self) -> Option<CsvOptions> {
        let (columns, has_header) = match self {
            Self::Twitter => ("time=1,key=2,size=4,op=6,ttl=7", Some(false)),
            Self::MetaKv => return Some(CsvOptions::default()),
            Self::MetaCdn => ("time=timestamp,key=cacheKey,size=objectSize,op=none", Some(true)),
            _ => return None,
        };
        let mut csv = CsvOptions {
            delimiter: Some(Delimiter::Byte(b',')),
            has_header,
            time_unit: Some(TimeUnit::Seconds),
            ..CsvOptions::default()
        };
        csv.set_columns(columns).expect("columns of the right form");
        Some(csv)
    }
}

impl fmt::Display for DataSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DataSet {
    type Err = TraceError;

    fn from_str(name: &str) -> Result<Self, TraceError> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| unknown_name("data set", name, Self::ALL.map(Self::name)))
    }
}

/// Most fields of a line that are read.
const FIELDS: usize = 8;

/// A parser of the lines of a data set that is not in CSV.
pub(super) struct DataSetLines {
    set: DataSet,
    block_size: BlockSize,
    /// Number of each device, by its name, in order of first appearance.
    devices: HashMap<Vec<u8>, u64>,
    /// Buffer in which a key is put together.
    key: Vec<u8>,
    /// Number of reads of parts of objects, which count as reads of the whole.
    parts: u64,
}

impl DataSetLines {
    pub(super) fn new(set: DataSet, block_size: Option<BlockSize>) -> Self {
        let block_size = block_size.unwrap_or_default();
        Self { set, block_size, devices: HashMap::new(), key: Vec::new(), parts: 0 }
    }

    /// Returns a note on how many reads of a part of an object were taken for reads of the whole object; `None` if
    /// there were none.
    pub(super) fn note(&self) -> Option<String> {
        (self.parts > 0).then(|| {
            format!("{} reads of a part of an object are read as reads of the whole", self.parts)
        })
    }

    fn wiki<'a>(fields: &[&'a [u8]]) -> Result<Parsed<'a>, Bad<'a>> {
        let [time, path, .., size, _] = fields else { return Err(missing(fields)) };
        if *time == b"relative_unix" {
            return Ok(Parsed::Nothing);
        }
        let request = Request::read(field::key(path));
        Ok(Parsed::One(Request {
            size_bytes: Some(number(size, "a size in bytes")?),
            time_us: Some(time_us(time, TimeUnit::Seconds)?),
            ..request
        }))
    }

    fn tencent_photo<'a>(&'a mut self, fields: &[&'a [u8]]) -> Result<Parsed<'a>, Bad<'a>> {
        let [when, photo, format, specification, size, ..] = fields else {
            return Err(missing(fields));
        };
        // The publisher: other formats are errors, and to be left out.
        if !matches!(*format, b"0" | b"5") {
            return Ok(Parsed::Nothing);
        }
        let time_us =
            compact_time(when).ok_or_else(|| Bad::new("a time (YYYYMMDDhhmmss)", *when))?;
        let size_bytes = number(size, "a size in bytes")?;
        self.key.clear();
        for part in [photo, format, specification] {
            self.key.extend_from_slice(part);
            self.key.push(b' ');
        }
        self.key.pop();
        let request = Request::read(Key::Text(&self.key));
        Ok(Parsed::One(Request { size_bytes: Some(size_bytes), time_us: Some(time_us), ..request }))
    }

    fn ibm_cos<'a>(&mut self, fields: &[&'a [u8]]) -> Result<Parsed<'a>, Bad<'a>> {
        let [time, operation, object, rest @ ..] = fields else { return Err(missing(fields)) };
        let op = match *operation {
            b"REST.GET.OBJECT" | b"REST.HEAD.OBJECT" | b"0" => Op::Read,
            b"REST.PUT.OBJECT" | b"REST.COPY.OBJECT" | b"1" => Op::Write,
            b"REST.DELETE.OBJECT" | b"2" => Op::Delete,
            other => {
                return Err(Bad::new(
                    "REST. and GET, HEAD, PUT, COPY or DELETE, and .OBJECT",
                    other,
                ));
            }
        };
        let size_bytes = match rest.first() {
            Some(size) if op != Op::Delete => Some(number(size, "a size in bytes")?),
            _ => None,
        };
        if let ([_, first, last, ..], Some(size)) = (rest, size_bytes) {
            let is_whole = field::decimal(first) == Some(0)
                && field::decimal(last).is_some_and(|last| last.saturating_add(1) >= size);
            self.parts += u64::from(!is_whole);
        }
        let request = Request { op, ..Request::read(field::key(object)) };
        Ok(Parsed::One(Request {
            size_bytes,
            time_us: Some(time_us(time, TimeUnit::Milliseconds)?),
            ..request
        }))
    }

    fn msr<'a>(&mut self, fields: &[&'a [u8]], line: &'a [u8]) -> Result<Parsed<'a>, Bad<'a>> {
        let [ticks, host, disk, op, offset, size, ..] = fields else { return Err(missing(fields)) };
        let ticks = number(ticks, "a time in units of 100 ns")?;
        let device = [*host, *disk].join(&b',');
        let request = Request {
            op: operation(op)?,
            time_us: Some(ticks / 10),
            ..Request::read(Key::Number(0))
        };
        self.blocks(request, &device, bytes(offset, size)?, line)
    }

    fn alibaba<'a>(&mut self, fields: &[&'a [u8]], line: &'a [u8]) -> Result<Parsed<'a>, Bad<'a>> {
        let [device, op, offset, size, time, ..] = fields else { return Err(missing(fields)) };
        if *device == b"device_id" {
            return Ok(Parsed::Nothing);
        }
        let request = Request {
            op: operation(op)?,
            time_us: Some(time_us(time, TimeUnit::Microseconds)?),
            ..Request::read(Key::Number(0))
        };
        self.blocks(request, device, bytes(offset, size)?, line)
    }

    fn tencent_block<'a>(
        &mut self,
        fields: &[&'a [u8]],
        line: &'a [u8],
    ) -> Result<Parsed<'a>, Bad<'a>> {
        let [time, offset, size, op, volume, ..] = fields else { return Err(missing(fields)) };
        let op = match *op {
            b"0" => Op::Read,
            b"1" => Op::Write,
            other => return Err(Bad::new("0 (a read) or 1 (a write)", other)),
        };
        let request = Request {
            op,
            time_us: Some(time_us(time, TimeUnit::Seconds)?),
            ..Request::read(Key::Number(0))
        };
        let sectors = |text, expected| {
            number(text, expected)?
                .checked_mul(SECTOR_BYTES)
                .ok_or_else(|| Bad::new(expected, text))
        };
        let (offset, size) =
            (sectors(offset, "an offset in sectors")?, sectors(size, "a length in sectors")?);
        self.blocks(request, volume, (offset, size), line)
    }

    /// Returns the requests for the blocks of a device, by its name, that some bytes of it touch: the offset and the number of these.
    fn blocks<'a>(
        &mut self,
        request: Request<'a>,
        device: &[u8],
        bytes: (u64, u64),
        line: &'a [u8],
    ) -> Result<Parsed<'a>, Bad<'a>> {
        let next = self.devices.len() as u64;
        let number = match self.devices.get(device) {
            Some(number) => *number,
            None if next > MAX_DEVICE => {
                return Err(Bad::new("one of at most 65,536 devices", line));
            }
            None => *self.devices.entry(device.to_vec()).or_insert(next),
        };
        blocks_of_device(request, number, bytes, self.block_size, line)
    }
}

impl LineParser for DataSetLines {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Bad<'a>> {
        if line.trim_ascii().is_empty() {
            return Ok(Parsed::Nothing);
        }
        let is_comma = matches!(self.set, DataSet::Msr | DataSet::Alibaba | DataSet::TencentBlock);
        let is_delimiter =
            |byte: &u8| if is_comma { *byte == b',' } else { byte.is_ascii_whitespace() };
        let mut fields = [&b""[..]; FIELDS];
        let mut count = 0;
        let parts = line.trim_ascii().split(is_delimiter).map(<[u8]>::trim_ascii);
        for part in parts.filter(|part| is_comma || !part.is_empty()).take(FIELDS) {
            fields[count] = part;
            count += 1;
        }
        let fields = &fields[..count];
        match self.set {
            DataSet::Wiki => Self::wiki(fields),
            DataSet::TencentPhoto => self.tencent_photo(fields),
            DataSet::IbmCos => self.ibm_cos(fields),
            DataSet::Msr => self.msr(fields, line),
            DataSet::Alibaba => self.alibaba(fields, line),
            DataSet::TencentBlock => self.tencent_block(fields, line),
            DataSet::Twitter | DataSet::MetaKv | DataSet::MetaCdn => {
                unreachable!("they are read as CSV")
            }
        }
    }
}

#[cold]
fn missing<'a>(fields: &[&'a [u8]]) -> Bad<'a> {
    let last = fields.last().copied().unwrap_or_default();
    Bad::new("more columns: those of the data set", last)
}

/// Reads an offset and a number of bytes.
fn bytes<'a>(offset: &'a [u8], size: &'a [u8]) -> Result<(u64, u64), Bad<'a>> {
    Ok((number(offset, "an offset in bytes")?, number(size, "a size in bytes")?))
}

fn time_us(text: &[u8], unit: TimeUnit) -> Result<u64, Bad<'_>> {
    field::time_us(text, unit).ok_or_else(|| Bad::new("a time", text))
}

fn operation(text: &[u8]) -> Result<Op, Bad<'_>> {
    operation::operation(text).ok_or_else(|| Bad::new("an operation (R, W, Read, Write)", text))
}
