//! Which format is recognised for which name and content.

use crate::support::options;
use haypile_sim::trace::format::{Format, ReadOptions, TraceReader};

const BINARY: &str = "u32le, i32be, u64le, oracle-general, vscsi";
const TEXT: &str = "csv, lirs, spc, arc, address, redis-monitor, memcached-watch, access-log, json-log, w3c, squid, elb, s3-log, haproxy";

fn recognise(name: &str, content: &[u8]) -> Result<Format, String> {
    TraceReader::from_reader(name, content, &ReadOptions::default())
        .map(|reader| reader.format())
        .map_err(|error| error.to_string())
}

const SPC: &[u8] = b"0,20941264,8192,W,0.551706\n1,5,512,r,0.6\n";
const ARC: &[u8] = b"1 1 0 0\n2 1 0 1\n";
const LIRS: &[u8] = b"0\n1\n*\n2\n";
const CSV: &[u8] = b"version,time,op,size,lbn\n1,5,2a,512,9\n";
const NUMBERS: &[u8] = b"1 0 68\n2 1 7454\n";
const ADDRESS: &[u8] = b"s 0x1fffff60 1\nl 0x1fffff68 1\n";
const LOG: &[u8] = b"h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1\n";

#[test]
fn content_tells_text_formats() {
    for (content, format) in [
        (SPC, Format::Spc),
        (ARC, Format::Arc),
        (LIRS, Format::Lirs),
        (CSV, Format::Csv),
        (NUMBERS, Format::Csv),
        (b"time\tid\tsize\n1\t2\t3\n", Format::Csv),
        // A table of one column, and not a list of keys.
        (b"key\n1\n2\n1\n", Format::Csv),
        (b"key\n/a\n/b\n", Format::Csv),
        (ADDRESS, Format::Address),
        (LOG, Format::AccessLog),
    ] {
        for name in ["trace", "standard input", "a.txt", "a.trace.gz", "access.log"] {
            assert_eq!(recognise(name, content), Ok(format), "{name}");
        }
        let without_end = &content[..content.len() - 1];
        assert_eq!(recognise("trace", without_end), Ok(format), "no line break at the end");
        let marked = [b"\xef\xbb\xbf", content].concat();
        assert_eq!(recognise("trace", &marked), Ok(format), "with a byte order mark");
    }
}

#[test]
fn a_few_bad_lines_do_not_hide_a_format() {
    let arc = (0..40).fold(String::new(), |lines, number| format!("{lines}7 1 0 {number}\n"));
    assert_eq!(recognise("trace", format!("{arc}garbage\n").as_bytes()), Ok(Format::Arc));
    // Other traces have four columns too.
    for last in ["GET", "0", "200"] {
        let lines: String =
            (0..20).fold(String::new(), |lines, at| format!("{lines}{at} {} 64 {last}\n", at % 7));
        assert_ne!(recognise("trace", lines.as_bytes()), Ok(Format::Arc), "{last}");
    }
    // Of a short log, most lines can be such.
    let mut log = b"h - - [10/Oct/2000:13:55:36 -0700] \"-\" 408 0\n".repeat(9);
    log.extend(LOG);
    assert_eq!(recognise("trace", &log), Ok(Format::AccessLog));
}

#[test]
fn our_own_magic_number_goes_before_the_name() {
    let content = [&haypile_sim::trace::hpt::MAGIC[..], &[0; 64]].concat();
    for name in ["trace", "a.hpt", "a.csv"] {
        assert_eq!(recognise(name, &content), Ok(Format::Hpt), "{name}");
    }
}

#[test]
fn names_go_first() {
    for (name, format) in [
        ("Financial1.spc", Format::Spc),
        ("Financial1.SPC.bz2", Format::Spc),
        ("OLTP.lis.zst", Format::Arc),
        ("a.csv", Format::Csv),
        ("dir.spc/a.tsv.xz", Format::Csv),
        ("w106.vscsi.gz", Format::Vscsi),
        ("x.oracleGeneral", Format::OracleGeneral),
        ("x.oracleGeneral.bin.zst", Format::OracleGeneral),
        ("x.oracleGeneral.sample10.zstd", Format::OracleGeneral),
        ("keys.u32le", Format::U32Le),
        ("keys.i32be.xz", Format::I32Be),
        ("keys.u64le", Format::U64Le),
        ("a.hpt", Format::Hpt),
    ] {
        for content in [LIRS, ARC, &[0; 64]] {
            assert_eq!(recognise(name, content), Ok(format), "{name}");
        }
    }
    for name in ["spc", "dir.spc/trace", "a.spc.txt", "csv.gz"] {
        assert_eq!(recognise(name, LIRS), Ok(Format::Lirs), "{name}");
    }
}

#[test]
fn integers_are_never_guessed() {
    let binary = "a binary trace has to be named, because any bytes read as numbers";
    let unrecognised = |content: &[u8], candidates: &str, recipe: &str| {
        let error = recognise("t", content).expect_err("it is not recognised");
        let begin =
            "t: cannot recognise the format from the file's name or content, which begins with ";
        assert!(error.starts_with(begin), "{error}");
        assert!(error.ends_with(&format!("; {recipe}; or state one of {candidates}")), "{error}");
    };
    let little: Vec<u8> = (20_000_000u32..20_001_000).flat_map(u32::to_le_bytes).collect();
    let big: Vec<u8> = (0x0028_0100u32..0x0028_0200).flat_map(u32::to_be_bytes).collect();
    let wide: Vec<u8> = (0u64..1000).flat_map(u64::to_le_bytes).collect();
    let mut oracle = Vec::new();
    for time in 0u32..100 {
        oracle.extend([&time.to_le_bytes()[..], &[7; 12], &[0xff; 8]].concat());
    }
    for content in [little, big, wide, oracle, vec![0; 9]] {
        unrecognised(&content, BINARY, binary);
    }
    unrecognised(b"\x01\x02\x03\x04", BINARY, binary);
    unrecognised(b"\xff\xfe\xfd\xfc\n", BINARY, binary);
    let columns = "columns are read by their numbers, such as --columns time=1,key=2,size=3, and with --delimiter";
    unrecognised(b"# a comment\nDear reader,\nthis is prose.\n", TEXT, columns);
    let lirs = "one key in each line is read with --format lirs";
    unrecognised(b"/etc/passwd\n", TEXT, lirs);
    assert_eq!(recognise("t", b"/etc/passwd\n/bin/sh\n"), Ok(Format::Lirs));
    let monitor = b"OK\n1795918812.163978 [0 127.0.0.1:44694] \"set\" \"a\" \"1\"\n";
    assert_eq!(recognise("t", monitor), Ok(Format::RedisMonitor));
    unrecognised(b"\n\n \n", TEXT, columns);
    let long_line = "x".repeat(200_000);
    unrecognised(long_line.as_bytes(), TEXT, lirs);
}

#[test]
fn vscsi_is_told_by_its_versions_and_commands() {
    for (length, command_at, version) in [(32, 12, 1), (40, 0, 2)] {
        let mut record = vec![9; length];
        record[command_at..command_at + 4].copy_from_slice(&[0x2a, 0, 0, version]);
        let content = record.repeat(3);
        assert_eq!(recognise("t", &content), Ok(Format::Vscsi));
        let unknown_command: Vec<u8> =
            content.iter().map(|&byte| if byte == 0x2a { 0x35 } else { byte }).collect();
        assert!(recognise("t", &unknown_command).is_err());
    }
}

#[test]
fn columns_that_are_asked_for_make_it_csv() {
    let mut read = ReadOptions::default();
    read.csv.set_columns("key=2").expect("columns");
    let reader = TraceReader::from_reader("t", ARC, &read).expect("a CSV file");
    assert_eq!(reader.format(), Format::Csv);
}

#[test]
fn a_format_that_is_given_is_not_doubted() {
    let reader = TraceReader::from_reader("a.csv", SPC, &options(Format::U32Le));
    assert_eq!(reader.expect("a trace").format(), Format::U32Le);
}
