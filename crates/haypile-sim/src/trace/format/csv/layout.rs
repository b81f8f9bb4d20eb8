//! Layout of the columns.

use super::super::bad::Shown;
use super::super::field;
use super::super::options::{CsvColumn, CsvOptions, Delimiter, TimeUnit};
use super::split::Fields;

/// The columns of a CSV trace by their role (key, size, time and so on), numbered from 0.
pub(super) struct Layout {
    pub(super) has_header: bool,
    pub(super) columns: usize,
    pub(super) key: usize,
    pub(super) size: Option<usize>,
    pub(super) op: Option<usize>,
    pub(super) time: Option<usize>,
    pub(super) time_unit: TimeUnit,
    /// The CSV column that states how often the request was made; `None` if the trace has no such column.
    pub(super) count: Option<usize>,
    pub(super) ttl: Option<usize>,
    pub(super) ttl_unit: TimeUnit,
    pub(super) cost: Option<usize>,
    pub(super) cost_unit: TimeUnit,
    /// The name of a CSV column with expiry times (points in time instead of TTLs), which is ignored; `None` if there
    /// is none.
    pub(super) ignored_expiry: Option<String>,
}

/// Role of a column: its name in messages and options, and its usual names in headers.
struct Role {
    name: &'static str,
    usual: &'static [&'static str],
}

const KEY: Role = Role {
    name: "key",
    usual: &[
        "key",
        "id",
        "obj_id",
        "object_id",
        "object",
        "lbn",
        "lba",
        "block",
        "url",
        "uri",
        "path",
    ],
};
const SIZE: Role = Role {
    name: "size",
    usual: &["size", "bytes", "length", "len", "size_bytes", "obj_size", "object_size"],
};
const OP: Role = Role { name: "op", usual: &["op", "opcode", "type", "method", "operation"] };
const TIME: Role = Role {
    name: "time",
    usual: &[
        "time",
        "timestamp",
        "ts",
        "time_s",
        "time_ms",
        "time_us",
        "time_ns",
        "timestamp_s",
        "timestamp_ms",
        "timestamp_us",
        "timestamp_ns",
        "ts_ms",
        "ts_us",
        "ts_ns",
        "op_time",
    ],
};

/// Only the name in the traces of `CacheLib`: a `count` can be of anything.
const COUNT: Role = Role { name: "count", usual: &["op_count"] };
const TTL: Role = Role { name: "ttl", usual: &["ttl", "ttl_s", "ttl_ms", "exptime"] };
const COST: Role =
    Role { name: "cost", usual: &["cost", "cost_s", "cost_ms", "cost_us", "cost_ns"] };
/// Not a role: these are times of an unknown clock.
const EXPIRY: Role = Role { name: "expiry", usual: &["expiry", "expires"] };

impl Role {
    fn is_usual(&self, name: &[u8]) -> bool {
        self.usual.iter().any(|usual| usual.as_bytes().eq_ignore_ascii_case(name))
    }
}

/// Returns the delimiter of a CSV file: the one that the options state, or the one that the file's first line suggests.
pub(super) fn delimiter(first_line: &[u8], options: &CsvOptions) -> Delimiter {
    if let Some(delimiter) = options.delimiter {
        return delimiter;
    }
    let count = |byte| memchr::memchr_iter(byte, first_line).count();
    // Of equals max_by_key takes the last.
    let byte = [b'|', b';', b'\t', b','].into_iter().max_by_key(|&byte| count(byte));
    match byte {
        Some(b'\t') if three_numbers(first_line) => Delimiter::Blanks,
        Some(byte) if count(byte) > 0 => Delimiter::Byte(byte),
        _ if count(b' ') > 0 && count(b'"') == 0 => Delimiter::Blanks,
        _ => Delimiter::Byte(b','),
    }
}

/// Whether a line is `time key size` without a header.
fn three_numbers(line: &[u8]) -> bool {
    let mut columns = line.split(u8::is_ascii_whitespace).filter(|column| !column.is_empty());
    columns.by_ref().take(3).filter(|column| field::decimal(column).is_some()).count() == 3
        && columns.next().is_none()
}

impl Layout {
    pub(super) fn of(
        first: &Fields<'_>,
        delimiter: Delimiter,
        options: &CsvOptions,
    ) -> Result<Self, String> {
        let CsvOptions { key, size, op, time, count, ttl, cost, .. } = options;
        let asked = [key, size, op, time, count, ttl, cost];
        let has_header = options.has_header.unwrap_or_else(|| {
            asked.iter().any(|column| matches!(column, CsvColumn::Name(_)))
                || first
                    .iter()
                    .any(|name| [&KEY, &SIZE, &OP, &TIME].iter().any(|role| role.is_usual(name)))
        });
        let default_order = !has_header
            && delimiter == Delimiter::Blanks
            && asked.iter().all(|column| **column == CsvColumn::Auto)
            && first.len() == 3
            && first.iter().all(|text| field::decimal(text).is_some());
        if default_order {
            return Ok(Self {
                has_header,
                columns: 3,
                key: 1,
                size: Some(2),
                op: None,
                time: Some(0),
                time_unit: options.time_unit.unwrap_or(TimeUnit::Seconds),
                count: None,
                ttl: None,
                ttl_unit: TimeUnit::Seconds,
                cost: None,
                cost_unit: TimeUnit::Seconds,
                ignored_expiry: None,
            });
        }
        let header = has_header.then_some(first);
        let find = |role, column| find(role, column, header, first.len());
        let time = find(&TIME, &options.time)?;
        let ttl = find(&TTL, &options.ttl)?;
        let cost = find(&COST, &options.cost)?;
        let key = find(&KEY, &options.key)?.ok_or_else(|| no_key(first, has_header))?;
        Ok(Self {
            has_header,
            columns: first.len(),
            key,
            size: find(&SIZE, &options.size)?,
            op: find(&OP, &options.op)?,
            count: find(&COUNT, &options.count)?,
            ignored_expiry: header
                .and_then(|names| names.iter().find(|name| EXPIRY.is_usual(name)))
                .map(|name| Shown(name).to_string()),
            ttl_unit: unit_of(ttl.zip(header).map(|(at, names)| names.get(at))),
            ttl,
            cost_unit: unit_of(cost.zip(header).map(|(at, names)| names.get(at))),
            cost,
            time,
            time_unit: options
                .time_unit
                .unwrap_or_else(|| unit_of(time.zip(header).map(|(at, names)| names.get(at)))),
        })
    }
}

/// The number of a column, `None` if there is none.
fn find(
    role: &Role,
    column: &CsvColumn,
    header: Option<&Fields<'_>>,
    columns: usize,
) -> Result<Option<usize>, String> {
    let wanted = |name: &[u8]| match column {
        CsvColumn::Name(wanted) => wanted.as_bytes().eq_ignore_ascii_case(name),
        _ => role.is_usual(name),
    };
    match (column, header) {
        (CsvColumn::None, _) | (CsvColumn::Auto, None) => Ok(None),
        (&CsvColumn::Number(number), _) => match number.checked_sub(1) {
            Some(at) if at < columns => Ok(Some(at)),
            _ => Err(format!("there is no column {number}: the first line has {columns}")),
        },
        (CsvColumn::Name(name), None) => {
            Err(format!("column {name:?} is asked for by name, but there is no header"))
        }
        (CsvColumn::Name(_) | CsvColumn::Auto, Some(names)) => {
            let mut found = (0..columns).filter(|&at| wanted(names.get(at)));
            let first = found.next();
            if let (Some(first), Some(second)) = (first, found.next()) {
                return Err(format!(
                    "columns {} and {} ({} and {}) could both be the {role}: state \
                     {role}=NUMBER",
                    first + 1,
                    second + 1,
                    Shown(names.get(first)),
                    Shown(names.get(second)),
                    role = role.name,
                ));
            }
            match (first, column) {
                (None, CsvColumn::Name(name)) => {
                    Err(format!("no column is called {name:?}: the columns are {}", list(names)))
                }
                _ => Ok(first),
            }
        }
    }
}

fn no_key(first: &Fields<'_>, has_header: bool) -> String {
    if has_header {
        format!(
            "no column is called {}: the columns are {}: state key=NAME",
            KEY.usual.join(", "),
            list(first)
        )
    } else {
        format!(
            "the first line names no column the usual way: it is {}: state key=NAME or key=NUMBER",
            list(first)
        )
    }
}

/// Columns that a message lists.
const LISTED: usize = 10;

fn list(fields: &Fields<'_>) -> String {
    let mut list =
        fields.iter().take(LISTED).map(|text| Shown(text).to_string()).collect::<Vec<_>>();
    if fields.len() > LISTED {
        list.push("...".to_owned());
    }
    list.join(", ")
}

fn unit_of(name: Option<&[u8]>) -> TimeUnit {
    TimeUnit::of_name(name.unwrap_or_default())
}
