//! Each kind of bad entry, and the exact text that tells of it.

use crate::support::{error, key, options, read_named};
use haypile_sim::trace::format::{
    BadPlace, CsvColumn, CsvOptions, Delimiter, Format, ReadOptions, SpcAs, TimeUnit, TraceReader,
};
use haypile_sim::trace::{BuildOptions, TraceBuilder, TraceError};

/// Checks the message for a bad entry, without the path and the hint.
fn bad(options: &ReadOptions, bytes: impl AsRef<[u8]>, expected: &str) {
    assert_eq!(error(&bytes, options), format!("t:{expected}"));
}

#[test]
fn spc() {
    let spc = options(Format::Spc);
    let blocks = ReadOptions { spc_as: SpcAs::Blocks, ..spc.clone() };
    bad(&spc, "0,1,2,r", r#"1: expected ASU,LBA,size,opcode,timestamp, found "0,1,2,r""#);
    bad(&spc, "0,1,2,r,0\n\nx,1,2,r,0", r#"3: expected an ASU (decimal number), found "x""#);
    bad(&spc, "0,-1,2,r,0", r#"1: expected an LBA (decimal number), found "-1""#);
    bad(&spc, "0,1,,r,0", "1: expected a size in bytes (decimal number), found nothing");
    bad(&spc, "0,1,2,read,0", r#"1: expected an opcode (r or w), found "read""#);
    bad(&spc, "0,1,2,r,-0.1", r#"1: expected a timestamp in seconds, found "-0.1""#);
    bad(&blocks, "65536,1,2,r,0", r#"1: expected an ASU below 65536, found "65536""#);
    bad(
        &blocks,
        "0,281474976710655,512,r,0",
        r#"1: expected blocks below 2^48, found "0,281474976710655,512,r,0""#,
    );
    bad(
        &blocks,
        "0,0,536870913,r,0",
        r#"1: expected at most 1048576 blocks, all of 64-bit numbers, found "0,0,536870913,r,0""#,
    );
}

#[test]
fn arc() {
    let arc = options(Format::Arc);
    let four = "1: expected four numbers: start, count, ignored, request number, found ";
    bad(&arc, "1 2 3", &format!("{four}\"1 2 3\""));
    bad(&arc, "1 2 3 4 5", &format!("{four}\"1 2 3 4 5\""));
    bad(&arc, "a 1 0 0", r#"1: expected a first block (decimal number), found "a""#);
    bad(&arc, "1 -1 0 0", r#"1: expected a count of blocks (decimal number), found "-1""#);
    let most = "1: expected at most 1048576 blocks, all of 64-bit numbers, found ";
    bad(&arc, "1 1048577 0 0", &format!("{most}\"1 1048577 0 0\""));
    bad(&arc, "18446744073709551615 2 0 0", &format!("{most}\"18446744073709551615 2 0 0\""));
}

#[test]
fn lirs_and_addresses() {
    bad(
        &options(Format::Lirs),
        b"1\n\x01\x02\xff",
        "2: expected a key without control characters, found \"\\u{1}\\u{2}\u{fffd}\"",
    );
    let address = options(Format::Address);
    bad(&address, "x 1", r#"1: expected l, s, r or w and an address, found "x 1""#);
    let number = "1: expected an address (decimal, or hexadecimal after 0x), found ";
    bad(&address, "l", &format!("{number}nothing"));
    bad(&address, "l 1fff", &format!("{number}\"1fff\""));
    bad(&address, "l 0x10000000000000000", &format!("{number}\"0x10000000000000000\""));
}

#[test]
fn access_logs() {
    let log = options(Format::AccessLog);
    let shape = "1: expected host ident user [time] \"request\" status bytes, found ";
    for line in ["hello", "h - - [x", "h - - [x] GET", "h - - [x] \\\"GET", "h [x] \"G\" 200"] {
        let shown = line.replace('\\', "\\\\").replace('"', "\\\"");
        bad(&log, line, &format!("{shape}\"{shown}\""));
    }
    bad(&log, "h [x] \"a\\", &format!("{shape}\"h [x] \\\"a\\\\\""));
    let with =
        |time: &str, request: &str, rest: &str| format!("h - - [{time}] \"{request}\" {rest}");
    let time = "10/Oct/2000:13:55:36 -0700";
    // These are in every log, and are left out; a log of nothing else has no request.
    for text in ["-", "", r"\x16\x03\x01", "GET  HTTP/1.1", "OPTIONS *", "get / HTTP/1.0"] {
        let error = error(with(time, text, "400 0"), &log);
        let expected = "t contains no request when read as access-log: t: left out lines: 1 \
        without a \
                        request that is HTTP";
        assert_eq!(error, expected, "{text}");
    }
    bad(
        &log,
        with(time, "GET / HTTP/1.1", "2xx 1"),
        r#"1: expected a status of three digits, found "2xx""#,
    );
    bad(
        &log,
        with(time, "GET / HTTP/1.1", "200 1k"),
        r#"1: expected a size in bytes (decimal number or -), found "1k""#,
    );
    for time in [
        "",
        "10/Okt/2000:13:55:36 -0700",
        "31/Feb/2000:13:55:36 -0700",
        "31/Dec/1969:23:59:59 +0000",
    ] {
        let shown = if time.is_empty() { "nothing".to_owned() } else { format!("{time:?}") };
        bad(
            &log,
            with(time, "GET / HTTP/1.1", "200 1"),
            &format!(
                "1: expected a time like 10/Oct/2000:13:55:36 -0700, from 1970 on, found {shown}"
            ),
        );
    }
}

#[test]
fn a_role_has_one_column() {
    let error = CsvOptions::default().set_columns("key=a,size=2,key=b").expect_err("two keys");
    assert_eq!(error.to_string(), "the role 'key' is given to two columns; give it to one");
}

/// Windows counts time in tenths of microseconds: as seconds it is beyond all numbers.
#[test]
fn a_time_that_does_not_fit_is_told_from_one_that_is_not_a_time() {
    let csv = options(Format::Csv);
    let too_large =
        "a time below 2^64 microseconds; if its unit is not the one that was assumed, state it";
    for (time, expected) in [
        ("128166372003061629", too_large),
        ("128166372003061629.5", too_large),
        ("-1", "a time (number, not negative)"),
        ("noon", "a time (number, not negative)"),
    ] {
        let text = format!("key,timestamp\n1,{time}\n");
        bad(&csv, text, &format!("2: expected {expected}, found \"{time}\""));
    }
}

#[test]
fn csv_lines() {
    let csv = options(Format::Csv);
    let header = "key,size,op,time\n";
    let line = |line: &str, expected: &str| bad(&csv, format!("{header}{line}"), expected);
    line("1,2,r", r#"2: expected 4 columns as in the first line, found "1,2,r""#);
    line("1,2,r,0,5", r#"2: expected 4 columns as in the first line, found "1,2,r,0,5""#);
    line("\"1,2,r,0", r#"2: expected a closing quote on the same line, found "\"1,2,r,0""#);
    line(",2,r,0", r#"2: expected a key, found ",2,r,0""#);
    line("1,2.5,r,0", r#"2: expected a size in bytes (decimal number), found "2.5""#);
    line("1,,r,0", "2: expected a size in bytes (decimal number), found nothing");
    line(
        "1,2,flush,0",
        "2: expected an operation (r, read, get, load, 28; w, write, set, put, store, 2a; d, \
         delete, ...), found \"flush\"",
    );
    line("1,2,r,now", r#"2: expected a time (number, not negative), found "now""#);
}

#[test]
fn csv_columns() {
    let with = |columns: &str| {
        let mut read = options(Format::Csv);
        if !columns.is_empty() {
            read.csv.set_columns(columns).expect("columns");
        }
        read
    };
    for (columns, text, expected) in [
        (
            "",
            "a,size\n1,2\n",
            "no column is called key, id, obj_id, object_id, object, lbn, lba, block, url, uri, \
             path: the columns are \"a\", \"size\": state key=NAME",
        ),
        (
            "",
            "1,2\n",
            "the first line names no column the usual way: it is \"1\", \"2\": state key=NAME or \
             key=NUMBER",
        ),
        (
            "",
            "id,url\n",
            "columns 1 and 2 (\"id\" and \"url\") could both be the key: state key=NUMBER",
        ),
        ("key=x", "id,url\n", "no column is called \"x\": the columns are \"id\", \"url\""),
        ("key=3", "1,2\n", "there is no column 3: the first line has 2"),
        (
            "size=1",
            "1,2\n",
            "the first line names no column the usual way: it is \"1\", \"2\": \
             state key=NAME or key=NUMBER",
        ),
        (
            "",
            "\"id\n1\n",
            "first line: expected a closing quote on the same line, found \"\\\"id\"",
        ),
        ("", "\n\n \n", "there are only blank lines"),
    ] {
        assert_eq!(error(text, &with(columns)), format!("t: {expected}"));
    }
    let mut no_header = with("key=x");
    no_header.csv.has_header = Some(false);
    assert_eq!(
        error("1,2\n", &no_header),
        "t: column \"x\" is asked for by name, but there is no header"
    );
    assert_eq!(
        error("x".repeat(70_000), &options(Format::Csv)),
        "t: the first line is longer than 65536 bytes"
    );
}

#[test]
fn binary_records() {
    let cut = ": it is truncated, or of another format";
    bad(
        &options(Format::U32Le),
        [0; 6],
        &format!(" record 2 at byte 4: expected 4 bytes, found the end of the file after 2{cut}"),
    );
    bad(
        &options(Format::OracleGeneral),
        [0; 23],
        &format!(
            " record 1 at byte 0: expected 24 bytes, found the end of the file after \
        23{cut}"
        ),
    );
    let mut vscsi = vec![0; 32 * 3];
    for (number, command, version) in [(0, 0x28, 1), (1, 0x35, 1), (2, 0x28, 9)] {
        vscsi[number * 32 + 12] = command;
        vscsi[number * 32 + 15] = version;
    }
    bad(
        &options(Format::Vscsi),
        &vscsi,
        " record 2 at byte 32: expected a SCSI read (08, 28, 88, a8) or write (0a, 2a, 8a, aa) \
         command, found \"35\"",
    );
    vscsi[32 + 12] = 0x28;
    bad(
        &options(Format::Vscsi),
        &vscsi,
        " record 3 at byte 64: expected version 1 as in the first records, found \"9\"",
    );
    assert_eq!(
        error([3; 200], &options(Format::Vscsi)),
        "t: the first records are of neither version 1 nor version 2"
    );
}

#[test]
fn skipped_entries_are_counted_and_the_first_described() {
    let options = ReadOptions { skip_bad: true, ..options(Format::Address) };
    let mut text = String::from("l 1\n");
    for _ in 0..25 {
        text.push_str("?\n");
    }
    text.push_str("l 2");
    let (report, requests) = read_named("t", text.as_bytes(), &options).expect("two good lines");
    assert_eq!(requests, [key(1), key(2)]);
    assert_eq!((report.requests, report.bad, report.first_bad.len()), (2, 25, 10));
    assert_eq!(report.first_bad[9].place, BadPlace::Line(11));
    assert_eq!(
        report.first_bad[0].to_string(),
        "t:2: expected l, s, r or w and an address, found \"?\""
    );
}

#[test]
fn a_file_of_bad_entries_is_an_error_all_the_same() {
    let options = ReadOptions { skip_bad: true, ..options(Format::Address) };
    assert_eq!(
        error("\n?\n?\n", &options),
        "no line or record of this file can be read as address: the first of 2 bad ones is t:2: \
         expected l, s, \
         r or w and an address, found \"?\""
    );
    assert_eq!(error("\n \n", &options), "t contains no request when read as address");
}

#[test]
fn enormous_lines_are_bad_and_what_follows_is_read() {
    let longest = 1 << 20;
    for (length, ending) in [(longest + 1, "\n"), (longest + 2, "\r\n"), (5 * longest, "\n")] {
        let text = format!("1\n{}{ending}2\n", "7".repeat(length));
        let mut options = options(Format::Lirs);
        assert_eq!(error(&text, &options), "t:2: expected a line of at most 1048576 bytes");
        options.skip_bad = true;
        let (report, requests) = read_named("t", text.as_bytes(), &options).expect("good lines");
        assert_eq!((report.bad, requests), (1, vec![key(1), key(2)]), "{length}");
        assert_eq!(report.bytes_read, text.len() as u64);
    }
    let text = format!("{}\r\n", "a".repeat(longest));
    let requests = crate::support::requests(text, &options(Format::Lirs));
    assert_eq!(requests, [key("a".repeat(longest).as_str())], "the longest line that is read");
}

#[test]
fn shown_text_is_escaped_and_short() {
    let line = format!("x\t\u{1b}[31m\"{}", "\u{1f600}".repeat(100));
    let shown = format!("x\\t\\u{{1b}}[31m\\\"{}", "\u{1f600}".repeat(32));
    bad(
        &options(Format::Address),
        line,
        &format!("1: expected l, s, r or w and an address, found \"{shown}\"..."),
    );
}

#[test]
fn names_list_what_is_allowed() {
    let text = |error: TraceError| error.to_string();
    assert_eq!(
        text("SPC".parse::<Format>().expect_err("names are in lower case")),
        "unknown trace format 'SPC' (known: spc, arc, lirs, csv, u32le, i32be, u64le, \
         oracle-general, lcs, vscsi, address, access-log, json-log, w3c, squid, elb, s3-log, haproxy, \
         redis-monitor, memcached-watch, hpt, recording, twitter, meta-kv, meta-cdn, wiki, tencent-photo, ibm-cos, msr, alibaba, \
         tencent-block)"
    );
    assert_eq!(
        text("x".parse::<SpcAs>().expect_err("no such reading")),
        "unknown reading of SPC traces 'x' (known: relstorage, blocks)"
    );
    assert_eq!(
        text("h".parse::<TimeUnit>().expect_err("no such unit")),
        "unknown time unit 'h' (known: s, ms, us, ns)"
    );
    assert_eq!(
        text("\"".parse::<Delimiter>().expect_err("a quote delimits nothing")),
        "unknown delimiter '\"' (known: tab, comma, semicolon, blanks, one ASCII character \
         other than a quote)"
    );
    assert_eq!(
        text("0".parse::<CsvColumn>().expect_err("columns count from 1")),
        "unknown column '0' (known: numbers from 1, names, none)"
    );
    assert_eq!(
        text(CsvOptions::default().set_columns("value=1").expect_err("no such role")),
        "unknown column assignment 'value=1' (known: key=COLUMN, size=COLUMN, op=COLUMN, \
         time=COLUMN, count=COLUMN, \
         ttl=COLUMN, cost=COLUMN)"
    );
    for &format in Format::all() {
        assert_eq!(format.name().parse::<Format>().expect("its own name"), format);
        assert_eq!(format.to_string(), format.name());
        assert!(!format.description().is_empty());
    }
}

#[test]
fn formats_that_are_read_elsewhere_say_so() {
    assert_eq!(
        error("x", &options(Format::Hpt)),
        "t: hpt cannot be read here: it is opened as a whole, alone, and from a file: convert \
         other traces to join them"
    );
    assert_eq!(
        error("x".repeat(64), &options(Format::Recording)),
        "t: the file is not a recording of cache operations, because it begins with other bytes; name \
         another file"
    );
}

/// An entry that a trace cannot hold is a bad one, with its file and line.
#[test]
fn a_size_beyond_the_limit_is_one_bad_entry() {
    let text = "1,2,4294967296,r,1\n1,2,512,r,2\n";
    let mut options = options(Format::Spc);
    let read = |options: &ReadOptions| {
        let mut builder = TraceBuilder::new(BuildOptions::default());
        let reader = TraceReader::from_reader("t", text.as_bytes(), options).expect("SPC");
        reader.read(&mut builder).map(|report| (report, builder.requests()))
    };
    let message = read(&options).unwrap_err().to_string();
    assert_eq!(
        message,
        "t:1: a value of 4294967296 bytes is above a trace's limit of 4,294,967,295 bytes"
    );
    options.skip_bad = true;
    let (report, requests) = read(&options).expect("one good line");
    assert_eq!((report.bad, report.requests, requests), (1, 1, 1));
}

#[test]
fn units_whose_addresses_become_one_key_are_told_of() {
    let notes = |text: &str, spc_as| {
        let options = ReadOptions { spc_as, ..options(Format::Spc) };
        read_named("t", text.as_bytes(), &options).expect("good lines").0.notes
    };
    let several = "0,2,512,r,1\n1,2,512,r,2\n";
    let [note] = &notes(several, SpcAs::Relstorage)[..] else { panic!("one note") };
    assert!(note.contains("--as blocks keeps units apart"), "{note}");
    assert!(notes(several, SpcAs::Blocks).is_empty());
    assert!(notes("3,2,512,r,1\n3,2,512,r,2\n", SpcAs::Relstorage).is_empty());
}
