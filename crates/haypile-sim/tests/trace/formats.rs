//! Each format: a small input and exactly the requests it holds.

use crate::support::{Owned, OwnedKey, error, key, options, read_named, request, requests};
use haypile_sim::trace::Op::{self, Read, Write};
use haypile_sim::trace::format::{
    CsvColumn, CsvOptions, Delimiter, Format, MAX_RUN, ReadOptions, SpcAs, TimeUnit, TraceReader,
};
use haypile_sim::trace::{BuildOptions, TraceBuilder};

const SPC: &str = "0,303567,3584,w,0.000000\r\n\
                   1, 55590 ,1024,R,0.5,0,0\n\
                   \n\
                   0,7,0,r,12";

#[test]
fn spc_as_relstorage_is_one_operation_per_line() {
    assert_eq!(
        requests(SPC, &options(Format::Spc)),
        [
            request(Write, 303_567, 3_584, 0),
            request(Read, 55_590, 1_024, 500_000),
            request(Read, 7, 0, 12_000_000),
        ]
    );
}

#[test]
fn spc_as_blocks_is_one_request_per_block() {
    let options = ReadOptions { spc_as: SpcAs::Blocks, ..options(Format::Spc) };
    let asu = 1 << 48;
    let mut expected: Vec<Owned> =
        (303_567..303_574).map(|block| request(Write, block, 512, 0)).collect();
    expected.push(request(Read, asu + 55_590, 512, 500_000));
    expected.push(request(Read, asu + 55_591, 512, 500_000));
    assert_eq!(requests(SPC, &options), expected);
    assert_eq!(requests("0,1,513,r,0", &options).len(), 2, "a part of a block is a block");
    assert_eq!(requests("0,0,536870912,r,0", &options).len(), 1 << 20, "the largest line");
}

#[test]
fn arc_lines_expand_to_their_blocks() {
    assert_eq!(
        requests("5 3 0 0\n\n  9\t1 0 1  \r\n1 0 0 2\n5 2 0 3", &options(Format::Arc)),
        [key(5), key(6), key(7), key(9), key(5), key(6)]
    );
    let last = format!("{} 1 0 0", u64::MAX - 1);
    assert_eq!(requests(last, &options(Format::Arc)), [key(u64::MAX - 1)]);
}

#[test]
fn lirs_has_a_key_per_line() {
    assert_eq!(
        requests("2819\n*\n 85 \r\n\n/usr/a b\n0085\n*", &options(Format::Lirs)),
        [key(2819), key(85), key("/usr/a b"), key("0085")]
    );
}

#[test]
fn integers_of_each_width_and_order() {
    assert_eq!(
        requests([1, 0, 0, 0, 0, 0, 0, 0x80], &options(Format::U32Le)),
        [key(1), key(0x8000_0000)]
    );
    assert_eq!(
        requests([0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe], &options(Format::I32Be)),
        [key(1), key(0xffff_fffe)]
    );
    assert_eq!(
        requests([1, 0, 0, 0, 0, 0, 0, 0x80], &options(Format::U64Le)),
        [key(0x8000_0000_0000_0001)]
    );
}

#[test]
fn oracle_general_has_times_and_sizes() {
    let mut bytes = Vec::new();
    for (time, key, size, next) in [(7u32, u64::MAX, 512u32, 2i64), (u32::MAX, 1, u32::MAX, -1)] {
        bytes.extend(time.to_le_bytes());
        bytes.extend(key.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(next.to_le_bytes());
    }
    assert_eq!(
        requests(bytes, &options(Format::OracleGeneral)),
        [
            request(Read, u64::MAX, 512, 7_000_000),
            request(Read, 1, 4_294_967_295, 4_294_967_295_000_000),
        ]
    );
}

#[test]
fn vscsi_of_both_versions() {
    let commands = [(0x28u16, Read), (0x2a, Write), (0x88, Read), (0xaa, Write)];
    let mut expected = Vec::new();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for (number, (command, op)) in (0u32..).zip(commands) {
        let (length, block, time) = (512 * number, 1u64 << 40 | u64::from(number), 1_000_000u64);
        first.extend([number, length, 1].map(u32::to_le_bytes).concat());
        first.extend([command, 0x0100].map(u16::to_le_bytes).concat());
        first.extend([block, time].map(u64::to_le_bytes).concat());
        second.extend([command, 0x0200].map(u16::to_le_bytes).concat());
        second.extend([number, length, 1].map(u32::to_le_bytes).concat());
        second.extend([block, time, 99].map(u64::to_le_bytes).concat());
        expected.push(request(op, block, u64::from(length), time));
    }
    assert_eq!(requests(first, &options(Format::Vscsi)), expected);
    assert_eq!(requests(second, &options(Format::Vscsi)), expected);
}

#[test]
fn addresses_are_loaded_and_stored() {
    assert_eq!(
        requests("s 0x1fffff60 1\nl 4096\n\nR 0XfF\r\nW\t7", &options(Format::Address)),
        [
            request(Write, 0x1fff_ff60, None, None),
            key(4096),
            key(255),
            request(Write, 7, None, None),
        ]
    );
}

#[test]
fn a_count_repeats_its_request() {
    let csv = options(Format::Csv);
    let one = request(Read, 7, 10, None);
    let cachelib = "key,op,size,op_count,key_size\n7,GET,10,3,4\n8,SET,5,0,4\n7,GET,10,1,4\n";
    assert_eq!(requests(cachelib, &csv), vec![one; 4]);
    let mut named = options(Format::Csv);
    named.csv.set_columns("key=1,count=2").expect("columns");
    assert_eq!(requests("a,2\nb,1\n", &named), [key("a"), key("a"), key("b")]);
    // A line does not ask for more memory or time than a file of ordinary length.
    let most = MAX_RUN + 1;
    let error = error(format!("a,{most}\n"), &named);
    assert_eq!(
        error,
        format!("t:1: expected a count of at most {MAX_RUN} requests, found \"{most}\"")
    );
}

#[test]
fn times_that_go_backwards_are_counted_and_stay() {
    let text = b"key,time\n1,5\n2,4\n3,6\n4,1\n";
    let (report, read) = read_named("t", text, &options(Format::Csv)).expect("a trace");
    assert_eq!(
        read.iter().map(|one| one.key.clone()).collect::<Vec<_>>(),
        [1, 2, 3, 4].map(OwnedKey::from)
    );
    let expected = "t: 2 of 4 requests have an earlier time than one before them; they stay in the order of \
                    the file";
    assert_eq!(report.notes, [expected]);
}

#[test]
fn csv_finds_its_columns_by_their_usual_names() {
    let csv = options(Format::Csv);
    let expected = [request(Write, 42, 512, 5_633_898_000_000), request(Read, "07", 1, 500_000)];
    for text in [
        "version,time,op,size,lbn\n1,5633898,2a,512,42\n1,0.5,28,1,07\n",
        "\u{feff}\n\nKEY;Size;Operation;TimeStamp\n42;512;set;5633898\n\n07;1;get;0.5",
        "id\tbytes\tmethod\ttime_ms\r\n42\t512\tPUT\t5633898000\r\n07\t1\tGET\t500\r\n",
        "\"url\",\"len\",\"type\",\"ts\"\n\"42\",\"512\",\"w\",\"5633898\"\n07,1,r,5e-1\n",
        "obj_id size op time_us\n42 512 w 5633898000000\n07  1  r  500000 \n",
    ] {
        assert_eq!(requests(text, &csv), expected, "{text}");
    }
    assert_eq!(requests("path\n\"/a,\"\"b\"\"\"\n", &csv), [key("/a,\"b\"")]);
    assert_eq!(requests("key\n-1\n", &csv), [key("-1")], "numbers have no sign");
}

#[test]
fn csv_takes_columns_by_name_and_number() {
    let with = |columns: &str, change: fn(&mut CsvOptions)| {
        let mut read = options(Format::Csv);
        read.csv.set_columns(columns).expect("columns");
        change(&mut read.csv);
        read
    };
    let by_name = with("key=What, size=2,op=none", |_| {});
    assert_eq!(requests("id,type,what\n1,99,a\n", &by_name), [request(Read, "a", 99, None)]);
    let by_number = with("key=2,size=3,time=1", |csv| csv.time_unit = Some(TimeUnit::Nanoseconds));
    assert_eq!(requests("5000,a,9\n", &by_number), [request(Read, "a", 9, 5)]);
    let no_header = with("key=1", |csv| csv.has_header = Some(false));
    assert_eq!(requests("key\nsize\n", &no_header), [key("key"), key("size")]);
    let header = with("key=1", |csv| csv.has_header = Some(true));
    assert_eq!(requests("1\n2\n", &header), [key(2)]);
    let colon = with("key=2", |csv| csv.delimiter = Some(Delimiter::Byte(b':')));
    assert_eq!(requests("a,1:b,2\n", &colon), [key("b,2")]);
    assert_eq!("none".parse::<CsvColumn>().expect("a column"), CsvColumn::None);
}

#[test]
fn three_numbers_are_time_key_and_size() {
    let expected = [request(Read, 0, 68, 1_000_000), request(Read, 7454, 9, 2_000_000)];
    assert_eq!(requests("1 0 68\n2 7454 9\n", &options(Format::Csv)), expected);
    assert_eq!(requests("1\t0\t68\n2\t7454\t9\n", &options(Format::Csv)), expected);
}

#[test]
fn a_bad_first_line_decides_nothing() {
    let mut numbered = options(Format::Csv);
    numbered.csv.set_columns("time=1,key=2,size=3").expect("columns");
    let text = "1 2 3 4\n1 a 5\n2 b 6\n";
    let expected = "t:1: expected 3 columns as in most of the first lines, found \"1 2 3 4\"";
    assert_eq!(error(text, &numbered), expected);
    let skipping = ReadOptions { skip_bad: true, ..numbered };
    let (report, read) = read_named("t", text.as_bytes(), &skipping).expect("a trace");
    assert_eq!(report.bad, 1);
    assert_eq!(read, [request(Read, "a", 5, 1_000_000), request(Read, "b", 6, 2_000_000)]);
    // A header does decide.
    let expected = "t:2: expected 2 columns as in the first line, found \"1,2,3\"";
    assert_eq!(error("key,size\n1,2,3\n1,2,3\n", &options(Format::Csv)), expected);
}

#[test]
fn comments_are_no_requests() {
    let mut numbered = options(Format::Csv);
    numbered.csv.set_columns("key=1,size=2").expect("columns");
    let text = "# made by a tool\n#key,size\n1,2\n# 3, in words, three\n#4,5\n";
    assert_eq!(
        requests(text, &numbered),
        [request(Read, 1, 2, None), request(Read, "#4", 5, None)]
    );
    // Keys that all begin with it.
    let text = "#1,2\n#3,4\n";
    assert_eq!(
        requests(text, &numbered),
        [request(Read, "#1", 2, None), request(Read, "#3", 4, None)]
    );
}

#[test]
fn files_that_were_joined_have_several_headers() {
    let text = "key,size\n1,2\nkey,size\n3,4\n";
    let expected = [request(Read, 1, 2, None), request(Read, 3, 4, None)];
    assert_eq!(requests(text, &options(Format::Csv)), expected);
}

/// Most of these lines were printed by Redis 7.0.
#[test]
fn redis_monitor_has_several_keys_in_a_line() {
    let text = r#"OK
1795918812.163978 [0 127.0.0.1:44694] "set" "a" "hello" "ex" "10"
1795918812.168089 [3 127.0.0.1:44696] "SELECT" "3"
1795918812.168254 [3 127.0.0.1:44696] "get" "a b\"c"
1795918812.171642 [0 127.0.0.1:44702] "mget" "a" "b"
1795918812.174873 [0 127.0.0.1:44714] "eval" "return redis.call(\"get\",KEYS[1])" "1" "kk"
1795918812.174925 [0 lua] "get" "kk"
1795918812.180420 [0 unix:/run/[x] y] "SET" "bin" "\x00\xff\n"
1795918812.180612 [0 127.0.0.1:44720] "DEL" "a" "7"
1795918812.180657 [0 127.0.0.1:44720] "HSET" "h" "f" "v"
1795918812.180693 [0 127.0.0.1:44720] "GETDEL" "q"
1795918812.2 [0 127.0.0.1:44720] "psetex" "p" "1500" "four"
1795918812.2 [0 127.0.0.1:44720] "mset" "x" "1" "y" "22"
"#;
    let at = |us: u64| 1_795_918_812_000_000 + us;
    let (report, requests) =
        read_named("t", text.as_bytes(), &options(Format::RedisMonitor)).expect("it is sound");
    assert_eq!(
        requests,
        [
            request(Op::Write, "a", 5, at(163_978)),
            request(Op::Read, "3/a b\"c", None, at(168_254)),
            request(Op::Read, "a", None, at(171_642)),
            request(Op::Read, "b", None, at(171_642)),
            request(Op::Read, "kk", None, at(174_925)),
            request(Op::Write, "bin", 3, at(180_420)),
            request(Op::Delete, "a", None, at(180_612)),
            request(Op::Delete, 7, None, at(180_612)),
            request(Op::Write, "h", None, at(180_657)),
            request(Op::Read, "q", None, at(180_693)),
            request(Op::Delete, "q", None, at(180_693)),
            request(Op::Write, "p", 4, at(200_000)),
            request(Op::Write, "x", 1, at(200_000)),
            request(Op::Write, "y", 2, at(200_000)),
        ]
    );
    assert_eq!(report.notes, ["2 commands that read and write no value of a key are passed over"]);
    for bad in [
        "1.5 [0 c] \"get",
        "1.5 [x c] \"get\" \"a\"",
        "[0 c] \"get\" \"a\"",
        "1 [0 c] \"get\" \"\\x0\"",
    ] {
        assert!(!error(format!("{bad}\n"), &options(Format::RedisMonitor)).is_empty(), "{bad}");
    }
    let mut builder = TraceBuilder::new(BuildOptions::default());
    TraceReader::from_reader("t", text.as_bytes(), &options(Format::RedisMonitor))
        .expect("it is sound")
        .read(&mut builder)
        .expect("it is sound");
    let ttls: Vec<u64> = builder
        .finish()
        .expect("it is sound")
        .ttls_us()
        .expect("it is sound")
        .iter()
        .map(|ttl| ttl.get())
        .collect();
    assert_eq!((ttls[0], ttls[11]), (10_000_000, 1_500_000));
}

#[test]
fn lcs_has_eight_versions() {
    let magic = 0x1234_5678_9abc_def0_u64.to_le_bytes();
    let header = |version: u64| {
        let mut header = [&magic[..], &version.to_le_bytes()].concat();
        header.resize(8_184, 0);
        [header, magic.to_vec()].concat()
    };
    let (time, key) = (3_u32.to_le_bytes(), 77_u64.to_le_bytes());
    let (size, wide, next) = (500_u32.to_le_bytes(), 500_u64.to_le_bytes(), (-1_i64).to_le_bytes());
    let set = [3, 1, 0, 0];
    let first = [&time[..], &key, &size, &next].concat();
    let second = [&time[..], &key, &size, &set, &next].concat();
    let third = [&time[..], &key, &wide, &set, &60_u32.to_le_bytes(), &next].concat();
    let write = request(Op::Write, 77, 500, 3_000_000);
    for (version, record, expected) in [
        (1, first, request(Op::Read, 77, 500, 3_000_000)),
        (2, second, write.clone()),
        (3, third.clone(), write.clone()),
        (4, [third.clone(), vec![0; 4]].concat(), write.clone()),
        (5, [third.clone(), vec![0; 8]].concat(), write.clone()),
        (6, [third.clone(), vec![0; 16]].concat(), write.clone()),
        (7, [third.clone(), vec![0; 32]].concat(), write.clone()),
        (8, [third.clone(), vec![0; 64]].concat(), write),
    ] {
        let file = [header(version), record.clone(), record].concat();
        assert_eq!(requests(&file, &ReadOptions::default()), [expected.clone(), expected]);
    }
    for version in [0, 9, u64::MAX] {
        let unknown = error([header(version), third.clone()].concat(), &ReadOptions::default());
        assert!(unknown.contains("version 1 to 8"), "{unknown}");
    }
    let cut = error(&header(1)[..8_000], &ReadOptions::default());
    assert!(cut.contains("version 1 to 8"), "{cut}");
    let bad = [&third[..20], &[15], &third[21..]].concat();
    assert!(error([header(3), bad].concat(), &ReadOptions::default()).contains("from 0 to 14"));
    let mut builder = TraceBuilder::new(BuildOptions::default());
    TraceReader::from_reader("t", &[header(3), third].concat()[..], &ReadOptions::default())
        .expect("a header")
        .read(&mut builder)
        .expect("a record");
    let trace = builder.finish().expect("there is a request");
    assert_eq!(trace.ttls_us().map(|ttls| ttls[0].get()), Some(60_000_000));
}

/// Lines of memcached 1.6.18: `set foo`, `get foo`, `get nope`, `set "a b"`, `append foo`, `replace zz`, and another connection between.
#[test]
fn memcached_watch_tells_lookups_of_stores_from_reads() {
    let text = "OK
ts=100.429484 gid=2 type=item_get key=foo status=not_found clsid=0 cfd=26 size=0
ts=100.429491 gid=3 type=item_store key=foo status=stored cmd=set ttl=60 clsid=1 cfd=26 size=5
ts=100.479351 gid=4 type=item_get key=foo status=found clsid=1 cfd=26 size=5
ts=100.529470 gid=5 type=item_get key=nope status=not_found clsid=0 cfd=26 size=0
ts=100.529471 gid=5 type=item_get key=foo status=found clsid=1 cfd=27 size=5
skipped=3
ts=100.629922 gid=8 type=item_get key=a%20b status=not_found clsid=0 cfd=26 size=0
ts=100.629935 gid=9 type=item_store key=a%20b status=stored cmd=set ttl=0 clsid=1 cfd=26 size=2
ts=101.31718 gid=19 type=item_get key=foo status=found clsid=1 cfd=26 size=5
ts=101.31721 gid=20 type=item_store key=foo status=stored cmd=append ttl=0 clsid=1 cfd=26 size=6
ts=101.132157 gid=22 type=item_get key=zz status=not_found clsid=0 cfd=26 size=0
ts=101.132158 gid=23 type=item_store key=zz status=not_stored cmd=replace ttl=0 clsid=1 cfd=26 size=1
ts=105.5 gid=24 type=eviction key=x fetch=yes ttl=0 la=1 clsid=1 size=9
ts=105.6 gid=25 type=item_get key=foo status=found clsid=1 cfd=26 size=6
";
    let at = |us: u64| 100_000_000 + us;
    let (report, requests) =
        read_named("t", text.as_bytes(), &ReadOptions::default()).expect("lines of a watcher");
    assert_eq!(report.format, Format::MemcachedWatch);
    assert_eq!(
        requests,
        [
            request(Op::Write, "foo", 5, at(429_491)),
            request(Op::Read, "foo", 5, at(479_351)),
            request(Op::Read, "nope", None, at(529_470)),
            request(Op::Read, "foo", 5, at(529_471)),
            request(Op::Write, "a b", 2, at(629_935)),
            request(Op::Write, "foo", 6, at(1_031_721)),
            request(Op::Read, "foo", 6, at(5_000_006)),
        ]
    );
    let [note] = &report.notes[..] else { panic!("one note: {:?}", report.notes) };
    assert!(note.starts_with("3 lines are missing"), "{note}");
    // Counts whose sum does not fit 64 bits do not end the reading.
    let lost = format!("skipped={}\nskipped=9\n{}", u64::MAX, text);
    let (report, _) = read_named("t", lost.as_bytes(), &options(Format::MemcachedWatch))
        .expect("lines of a watcher");
    assert!(report.notes[0].starts_with(&u64::MAX.to_string()), "{:?}", report.notes);
    for bad in
        ["ts=1 type=item_get key=a cfd=1", "ts=1.5 type=item_get cfd=1", "gid=1 type=item_get"]
    {
        assert!(!error(format!("{bad}\n"), &options(Format::MemcachedWatch)).is_empty(), "{bad}");
    }
}
