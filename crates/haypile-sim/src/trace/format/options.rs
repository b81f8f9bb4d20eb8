//! Options for reading traces.

use std::str::FromStr;

use super::super::TraceError;
use super::Format;
use super::blocks::BlockSize;
use super::web::Statuses;

/// Options for reading traces. By default, the format is recognised, and reading stops at the first bad line, except in
/// logs of web servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format of the trace; `None` recognises it by name and content.
    pub format: Option<Format>,
    /// The way to interpret the lines of an SPC trace: each as one object, or as several blocks.
    pub spc_as: SpcAs,
    /// The size of the blocks into which requests of a block trace are divided; `None` for the data set's own size, for
    /// 512 bytes in [`SpcAs::Blocks`], and otherwise for no division.
    pub block_size: Option<BlockSize>,
    /// Options for CSV traces.
    pub csv: CsvOptions,
    /// The HTTP statuses of responses that a cache stores; in logs of web servers, requests with other statuses are
    /// left out.
    pub statuses: Statuses,
    /// Whether bad lines and records of the trace are skipped and counted, instead of ending the reading with an error.
    pub skip_bad: bool,
}

/// A way to interpret a line of an SPC trace: as one operation on one object, or as one on each block of 512 bytes that
/// it touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpcAs {
    /// One line is one operation on the object that the LBA names; the ASU is ignored. This is
    /// how the authors of `RelStorage` read these traces.
    #[default]
    Relstorage,
    /// One line touches `ceil(size / 512)` blocks of 512 bytes, as other simulators read it.
    Blocks,
}

impl FromStr for SpcAs {
    type Err = TraceError;

    fn from_str(name: &str) -> Result<Self, TraceError> {
        match name {
            "relstorage" => Ok(Self::Relstorage),
            "blocks" => Ok(Self::Blocks),
            _ => Err(unknown_name("reading of SPC traces", name, ["relstorage", "blocks"])),
        }
    }
}

/// Options for traces in CSV. By default, all of them are derived from the first line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvOptions {
    /// The delimiter of CSV columns; `None` for the most frequent of comma, tab, semicolon and `|` in the first line,
    /// or for blanks if the line has none of these.
    pub delimiter: Option<Delimiter>,
    /// Whether the first line of the CSV file names the columns; `None` if it does when a column is requested by name,
    /// or when it contains a usual name.
    pub has_header: Option<bool>,
    /// The CSV column that contains the key of the request.
    pub key: CsvColumn,
    /// The CSV column with the size of the value in bytes.
    pub size: CsvColumn,
    /// The CSV column with the operation, such as `get` or `set`.
    pub op: CsvColumn,
    /// The CSV column with the time of the request.
    pub time: CsvColumn,
    /// The CSV column that states how often the request was made.
    pub count: CsvColumn,
    /// The CSV column with the TTL of the value, in seconds unless the column's name ends in `_ms`, `_us` or `_ns`.
    pub ttl: CsvColumn,
    /// The CSV column with the cost of a miss: the time that getting the value takes, in seconds unless the column's name ends
    /// in `_ms`, `_us` or `_ns`.
    pub cost: CsvColumn,
    /// The unit of the times in CSV; `None` for the unit in the column's name (`_ms`, `_us`, `_ns`), or else for
    /// seconds. Fractions are allowed.
    pub time_unit: Option<TimeUnit>,
}

/// The delimiter between CSV columns: a byte such as a comma, or any number of blanks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// One byte. Columns that contain it are quoted with `"`.
    Byte(u8),
    /// Spaces and tabs, any number of them. Nothing is quoted.
    Blanks,
}

impl FromStr for Delimiter {
    type Err = TraceError;

    /// One ASCII character, or a name: `tab`, `comma`, `semicolon`, `blanks`.
    fn from_str(name: &str) -> Result<Self, TraceError> {
        match (name, name.as_bytes()) {
            ("tab" | "\\t", _) => Ok(Self::Byte(b'\t')),
            ("comma", _) => Ok(Self::Byte(b',')),
            ("semicolon", _) => Ok(Self::Byte(b';')),
            ("blanks" | " ", _) => Ok(Self::Blanks),
            (_, &[byte]) if byte.is_ascii() && !b"\"\r\n".contains(&byte) => Ok(Self::Byte(byte)),
            _ => Err(unknown_name(
                "delimiter",
                name,
                ["tab", "comma", "semicolon", "blanks", "one ASCII character other than a quote"],
            )),
        }
    }
}

/// The CSV column for a role (key, size and so on): stated by name, by number, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CsvColumn {
    /// The column with a usual name.
    #[default]
    Auto,
    /// No column, whatever the columns are called.
    None,
    /// The column of this name, in either case.
    Name(String),
    /// The column of this number, counted from 1.
    Number(usize),
}

impl FromStr for CsvColumn {
    type Err = TraceError;

    /// A number counted from 1, `none`, or else a name.
    fn from_str(text: &str) -> Result<Self, TraceError> {
        let text = text.trim();
        match text.parse() {
            Ok(0) => Err(unknown_name("column", text, ["numbers from 1", "names", "none"])),
            Ok(number) => Ok(Self::Number(number)),
            Err(_) if text.is_empty() => {
                Err(unknown_name("column", text, ["numbers from 1", "names", "none"]))
            }
            Err(_) if text.eq_ignore_ascii_case("none") => Ok(Self::None),
            Err(_) => Ok(Self::Name(text.to_owned())),
        }
    }
}

impl CsvOptions {
    /// Sets the CSV columns from a text such as `key=url,size=3,op=none`, the value of the option `--columns`.
    ///
    /// # Errors
    /// For anything but `key`, `size`, `op`, `time`, `count`, `ttl` and `cost` before the `=`, for a role that is named
    /// twice, and for column number 0.
    pub fn set_columns(&mut self, text: &str) -> Result<(), TraceError> {
        let mut roles = Vec::new();
        for part in text.split(',') {
            let (role, column) = part.split_once('=').unwrap_or((part, ""));
            let role = role.trim();
            if roles.contains(&role) {
                return Err(TraceError::RoleTwice { role: role.to_owned() });
            }
            roles.push(role);
            let place = match role {
                "key" => &mut self.key,
                "size" => &mut self.size,
                "op" => &mut self.op,
                "time" => &mut self.time,
                "count" => &mut self.count,
                "ttl" => &mut self.ttl,
                "cost" => &mut self.cost,
                _ => {
                    let allowed = [
                        "key=COLUMN",
                        "size=COLUMN",
                        "op=COLUMN",
                        "time=COLUMN",
                        "count=COLUMN",
                        "ttl=COLUMN",
                        "cost=COLUMN",
                    ];
                    return Err(unknown_name("column assignment", part, allowed));
                }
            };
            *place = column.parse()?;
        }
        Ok(())
    }
}

/// The unit of the times in a trace, from seconds to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds, written `s`.
    Seconds,
    /// Milliseconds, written `ms`.
    Milliseconds,
    /// Microseconds, written `us`.
    Microseconds,
    /// Nanoseconds, written `ns`.
    Nanoseconds,
}

impl TimeUnit {
    /// Returns the unit of the times in a column, by its name: the one that it ends in (`_ms`, `_us` or `_ns`), or else
    /// seconds.
    pub(super) fn of_name(name: &[u8]) -> Self {
        let name = name.to_ascii_lowercase();
        if name.ends_with(b"_ms") {
            Self::Milliseconds
        } else if name.ends_with(b"_us") {
            Self::Microseconds
        } else if name.ends_with(b"_ns") {
            Self::Nanoseconds
        } else {
            Self::Seconds
        }
    }
}

impl FromStr for TimeUnit {
    type Err = TraceError;

    fn from_str(name: &str) -> Result<Self, TraceError> {
        match name {
            "s" => Ok(Self::Seconds),
            "ms" => Ok(Self::Milliseconds),
            "us" => Ok(Self::Microseconds),
            "ns" => Ok(Self::Nanoseconds),
            _ => Err(unknown_name("time unit", name, ["s", "ms", "us", "ns"])),
        }
    }
}

/// Creates the error for a name (of a format, a unit and so on) that is not among the allowed ones.
pub(super) fn unknown_name(
    what: &'static str,
    name: &str,
    allowed: impl IntoIterator<Item = &'static str>,
) -> TraceError {
    let allowed = allowed.into_iter().collect::<Vec<_>>().join(", ");
    TraceError::UnknownName { what, name: name.to_owned(), allowed }
}
