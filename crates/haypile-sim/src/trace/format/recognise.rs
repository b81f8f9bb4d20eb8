//! Recognition of a file's format by name and content.

use std::path::Path;

use super::address::Address;
use super::arc::Arc;
use super::bad::Shown;
use super::csv::Csv;
use super::entry::{LineParser, Parsed};
use super::options::{CsvOptions, ReadOptions, SpcAs};
use super::redis_monitor::RedisMonitor;
use super::spc::Spc;
use super::vscsi::Vscsi;
use super::web::{self, WebLog};
use super::{Format, field, lcs};
use crate::trace::TraceError;
use crate::trace::hpt::MAGIC;
use crate::trace::input::Input;

/// Most lines that recognition reads.
const LINES: usize = 100;

/// Bytes of a binary file that a message shows.
const SHOWN_BYTES: usize = 8;

/// Formats that a binary file may have.
const BINARY: [Format; 5] =
    [Format::U32Le, Format::I32Be, Format::U64Le, Format::OracleGeneral, Format::Vscsi];

/// Formats that a text file may have, in addition to those of logs.
const TEXT: [Format; 7] = [
    Format::Csv,
    Format::Lirs,
    Format::Spc,
    Format::Arc,
    Format::Address,
    Format::RedisMonitor,
    Format::MemcachedWatch,
];

/// Returns the format of a trace file with the name `name` that starts with the bytes `head`, or all possible formats
/// if it is uncertain. Magic numbers of binary formats have precedence, then the name, then content that cannot be
/// another format.
pub(super) fn recognise(
    name: &Path,
    head: &[u8],
    whole: bool,
    options: &ReadOptions,
) -> Result<Format, Vec<Format>> {
    if head.starts_with(&MAGIC) {
        return Ok(Format::Hpt);
    }
    if head.starts_with(&haypile_policy::recording::MAGIC) {
        return Ok(Format::Recording);
    }
    if head.starts_with(&lcs::MAGIC) {
        return Ok(Format::Lcs);
    }
    if let Some(format) = by_name(name) {
        return Ok(format);
    }
    if head.contains(&0) {
        return if Vscsi::is_certain(head) { Ok(Format::Vscsi) } else { Err(BINARY.to_vec()) };
    }
    if options.csv != CsvOptions::default() {
        let is_object = text(head).trim_ascii_start().starts_with(b"{\"");
        return Ok(if is_object { Format::JsonLog } else { Format::Csv });
    }
    by_text(head, whole, options).ok_or_else(|| {
        if is_binary(head) {
            BINARY.to_vec()
        } else {
            TEXT.into_iter().chain(web::FORMATS).collect()
        }
    })
}

fn is_binary(head: &[u8]) -> bool {
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    head.iter().any(is_control) || str::from_utf8(text(head)).is_err()
}

/// Returns the beginning of an unrecognised file as text for a message, and advice on how to read
/// it.
pub(super) fn recipe(head: &[u8], whole: bool) -> (String, &'static str) {
    if is_binary(head) {
        let bytes: Vec<String> =
            head.iter().take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect();
        let recipe = "a binary trace has to be named, because any bytes read as numbers";
        return (format!("the bytes {}", bytes.join(" ")), recipe);
    }
    let lines = lines(head, whole);
    let begin = lines.iter().find(|line| !line.starts_with(b"#")).copied().unwrap_or(head);
    let recipe = if begin.iter().any(|byte| b" \t,;|".contains(byte)) {
        "columns are read by their numbers, such as --columns time=1,key=2,size=3, and with --delimiter"
    } else {
        "one key in each line is read with --format lirs"
    };
    (Shown(begin).to_string(), recipe)
}

/// The head up to its last line break: a character may be cut in two at the end.
fn text(head: &[u8]) -> &[u8] {
    memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end])
}

fn by_name(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let name = [".gz", ".bz2", ".xz", ".zst", ".zstd", ".lz4", ".zip"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(&name);
    if name.contains(".oraclegeneral") {
        return Some(Format::OracleGeneral);
    }
    Some(match name.rsplit_once('.')?.1 {
        "spc" => Format::Spc,
        "lis" => Format::Arc,
        "csv" | "tsv" => Format::Csv,
        "vscsi" => Format::Vscsi,
        "lcs" => Format::Lcs,
        "hpt" => Format::Hpt,
        "u32le" => Format::U32Le,
        "i32be" => Format::I32Be,
        "u64le" => Format::U64Le,
        _ => return None,
    })
}

fn by_text(head: &[u8], whole: bool, options: &ReadOptions) -> Option<Format> {
    let lines = lines(head, whole);
    let first = lines.first()?;
    let is_lirs = |line: &[u8]| field::decimal(line).is_some() || line == b"*";
    let is_log = |&format: &Format| {
        let mut log = WebLog::of(format, options).expect("a log");
        let good = lines.iter().filter(|line| log.parse(line).is_ok()).count();
        good > lines.len() / 2 && log.has_exchanges()
    };
    let log = web::FORMATS.into_iter().find(is_log);
    // What is wrong with such a file is said best by its reader.
    let certain = if lines.iter().any(|line| line.starts_with(b"#Fields:")) {
        Some(Format::W3c)
    } else {
        first.starts_with(b"{\"").then_some(Format::JsonLog)
    };
    if let Some(format) = log.or(certain) {
        Some(format)
    } else if first.trim_ascii_end() == b"key" {
        // The head of a table, as `haypile trace generate` writes it, and not the first of the keys.
        Some(Format::Csv)
    } else if fits(&mut RedisMonitor::default(), &lines) {
        Some(Format::RedisMonitor)
    } else if lines.iter().any(|line| line.starts_with(b"ts=") && contains(line, b" type=item_")) {
        Some(Format::MemcachedWatch)
    } else if fits(&mut Spc::new(SpcAs::Relstorage, None), &lines) {
        Some(Format::Spc)
    } else if fits(&mut Address, &lines) {
        Some(Format::Address)
    } else if fits(&mut Arc, &lines) && has_request_numbers(&lines) {
        Some(Format::Arc)
    } else if mostly(&lines, is_lirs) {
        Some(Format::Lirs)
    } else {
        let is_csv = Csv::new(&lines, &options.csv)
            .is_ok_and(|mut csv| csv.columns() > 1 && fits(&mut csv, &lines));
        // One key in each line: a text without blanks is not prose, and without separators not CSV.
        let is_key = |line: &[u8]| !line.iter().any(|byte| b" \t,;|".contains(byte));
        let are_keys = !is_binary(head) && lines.len() > 1 && lines.iter().all(|line| is_key(line));
        match (is_csv, are_keys) {
            (true, _) => Some(Format::Csv),
            (false, true) => Some(Format::Lirs),
            (false, false) => None,
        }
    }
}

fn fits(parser: &mut impl LineParser, lines: &[&[u8]]) -> bool {
    let mut has_request = false;
    let is_mostly = mostly(lines, |line| match parser.parse(line) {
        Ok(parsed) => {
            has_request |= parsed != Parsed::Nothing;
            true
        }
        Err(_) => false,
    });
    is_mostly && has_request
}

/// Whether the last columns of most lines are numbers that rise, as those of requests do. Other traces have four columns too, and
/// an operation or a size as the last.
fn has_request_numbers(lines: &[&[u8]]) -> bool {
    let last = |line: &&[u8]| line.rsplit(u8::is_ascii_whitespace).next().and_then(field::decimal);
    let numbers: Vec<u64> = lines.iter().filter_map(last).collect();
    let rising = numbers.windows(2).filter(|pair| pair[0] < pair[1]).count();
    // Of sizes that are random half rise.
    !numbers.is_empty() && 4 * rising >= 3 * (numbers.len() - 1)
}

fn contains(line: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(line, text).is_some()
}

/// Returns whether the requests of a web server's log, of which nothing has been read yet, have times.
pub(super) fn has_times(
    input: &mut Input<'_>,
    format: Format,
    options: &ReadOptions,
) -> Result<bool, TraceError> {
    let (head, whole) = input.head()?;
    let mut log = WebLog::of(format, options);
    let mut time_us = |line: &[u8]| match log.as_mut()?.parse(line) {
        Ok(Parsed::One(request)) => request.time_us,
        _ => None,
    };
    Ok(lines(head, whole).into_iter().any(|line| time_us(line).is_some()))
}

/// Whether nine of ten lines are good. A file with a few bad lines is recognised, because reading it
/// reports them.
fn mostly(lines: &[&[u8]], mut is_good: impl FnMut(&[u8]) -> bool) -> bool {
    let good = lines.iter().filter(|line| is_good(line)).count();
    good * 10 >= lines.len() * 9
}

/// Returns the lines that are not blank in the bytes `head` at the start of a trace file, without a line that is cut
/// off at their end.
pub(super) fn lines(head: &[u8], whole: bool) -> Vec<&[u8]> {
    let head = super::super::input::without_mark(head);
    let complete = match memchr::memrchr(b'\n', head) {
        Some(end) if !whole => &head[..end],
        None if !whole => &[],
        _ => head,
    };
    complete
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty())
        .take(LINES)
        .collect()
}
