//! Any bytes whatever, and valid traces with a few changes, in every format: an error or requests,
//! never a panic.

use std::io::Write;

use haypile_sim::trace::format::{DataSet, Format};
use proptest::prelude::*;

use crate::hostile;

/// A valid trace of each format, by the position of the format in the list.
fn sample(format: Format) -> Vec<u8> {
    match format {
        Format::Spc => b"0,303567,3584,w,0.5\r\n1,55590,1024,R,0.6,0,0\n0,7,512,r,12\n".to_vec(),
        Format::Arc => b"5 3 0 0\n9 1 0 1\n18446744073709551000 64 0 2\n".to_vec(),
        Format::Lirs => b"2819\n*\n85\n\n/usr/a\n0085\n".to_vec(),
        Format::Csv => {
            b"time,key,size,op\n1,a,512,get\n2,\"b,\"\"c\",1,set\n3.5,7,0,del\n".to_vec()
        }
        Format::DataSet(set) => match set {
            DataSet::Twitter => b"0,nz:u:eeW,6,304,0,get,0\n7,q:q,3,213,4,set,3600\n".to_vec(),
            DataSet::MetaKv => b"key,op,size,op_count,key_size\n16,GET,82,3,64\n16,SET,9,1,64\n".to_vec(),
            DataSet::MetaCdn => b"timestamp,cacheKey,OpType,objectSize\n16,12,1,50\n17,13,1,9\n".to_vec(),
            DataSet::Wiki => b"relative_unix\thash\tsize\ttime\n0\t3154\t7\t0.1\n".to_vec(),
            DataSet::TencentPhoto => b"20160201164604 085a 5 m 12903 1 PHONE 1\n".to_vec(),
            DataSet::IbmCos => b"12 REST.GET.OBJECT 39d1 528 0 9\n13 REST.DELETE.OBJECT 39d1\n".to_vec(),
            DataSet::Msr => b"128166372003061629,hm,0,Read,383496192,32768,413\n".to_vec(),
            DataSet::Alibaba => b"419,W,8192,4096,1577808000000046\n725,R,0,0,3\n".to_vec(),
            _ => b"1538323200,12910952,128,0,1063\n1538323201,7,2,1,1063\n".to_vec(),
        },
        Format::Lcs => {
            let mut bytes = 0x1234_5678_9abc_def0_u64.to_le_bytes().to_vec();
            bytes.extend(3_u64.to_le_bytes());
            bytes.resize(8_184, 0);
            bytes.extend(0x1234_5678_9abc_def0_u64.to_le_bytes());
            for op in [1_u8, 3, 9] {
                bytes.extend([[7; 20].as_slice(), &[op, 0, 0, 0], &[9; 12]].concat());
            }
            // A size above 2^32 is a bad record.
            for record in bytes[8_192..].chunks_exact_mut(36) {
                record[16..20].fill(0);
            }
            bytes
        }
        Format::MemcachedWatch => b"OK\nts=1.5 gid=2 type=item_get key=a%20 status=found clsid=1 cfd=26 size=5\nskipped=7\nts=1.7 gid=3 type=item_get key=b status=not_found clsid=0 cfd=26 size=0\nts=1.9 gid=4 type=item_store key=b status=stored cmd=set ttl=60 clsid=1 cfd=26 size=5\n".to_vec(),
        Format::RedisMonitor => br#"OK
1.5 [0 127.0.0.1:1] "set" "a" "b\"" "ex" "10"
2.5 [3 lua] "mget" "a" "\x00\n"
"#.to_vec(),
        Format::Address => b"s 0x1fffff60 1\nl 4096\nR 0xfF\r\nw 7\n".to_vec(),
        Format::AccessLog => concat!(
            "h - - [10/Oct/2000:13:55:36 -0700] \"GET /a\\\"b HTTP/1.0\" 200 2326\n",
            "h - - [10/Oct/2000:13:55:37 -0700] \"POST /c HTTP/1.0\" 200 - \"r\" \"a\"\r\n",
        )
        .into(),
        Format::JsonLog => concat!(
            "{\"request\":{\"method\":\"GET\",\"host\":\"h\",\"uri\":\"/a\"},\"ts\":1.5,\"status\":200,\"size\":9}\n",
            "{\"request\":\"PUT /b HTTP/1.1\",\"time\":\"2023-12-23T23:17:54Z\",\"status\":\"204\"}\n",
        )
        .into(),
        Format::W3c => concat!(
            "#Date: 2020-01-01 00:00:00\n#Fields: time cs-method cs-uri-stem cs-uri-query sc-status sc-bytes\n",
            "10:00:00 GET /a - 200 9\n10:00:01 GET \"/b \"\"c\"\"\" q=1 200 7\n#Fields: cs-uri sc-status\n/c\t200\n",
        )
        .into(),
        Format::Squid => concat!(
            "1584345236.354 15 192.0.2.1 TCP_MISS/200 1234 GET http://h/ - HIER_DIRECT/192.0.2.2 text/html\n",
            "1584345237.354 15 192.0.2.1 TCP_DENIED/403 99 CONNECT h:443 - HIER_NONE/- -\n",
        )
        .into(),
        Format::Elb => concat!(
            "h2 2020-01-01T00:55:04.1Z b 1.2.3.4:1 10.0.0.1:80 0 0 0 200 200 9 24 \"GET https://h:443/ HTTP/2.0\" \"a\"\n",
            "2020-01-01T00:55:05Z b 1.2.3.4:1 10.0.0.1:80 0 0 0 - - 9 24 \"- - - \" \"-\"\n",
        )
        .into(),
        Format::S3Log => concat!(
            "o b [10/Feb/2012:16:42:07 -0500] 1.2.3.4 r I REST.GET.OBJECT k \"GET /k HTTP/1.1\" 200 - 3 9 1 1 \"-\"\n",
            "o b [10/Feb/2012:16:42:07 -0500] 1.2.3.4 r I REST.GET.BUCKET - \"GET / HTTP/1.1\" 200 - 3 - 1 1 \"-\"\n",
        )
        .into(),
        Format::Haproxy => concat!(
            "haproxy[1]: 4.3.2.1:1 [25/Sep/2018:06:05:27.584] f~ b/s 0/0/0/72/72 200 7456 - - ---- 5/4/0/1/0 0/0 \"GET / HTTP/1.1\"\n",
            "haproxy[1]: Proxy f started.\n",
        )
        .into(),
        Format::Vscsi => {
            let mut record = [0; 32];
            record[12..16].copy_from_slice(&[0x28, 0, 0, 1]);
            record.repeat(4)
        }
        _ => (0..96).collect(),
    }
}

/// One change to some bytes.
#[derive(Clone, Debug)]
enum Change {
    Set(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Cut(prop::sample::Index),
    Repeat(prop::sample::Index),
}

fn change() -> impl Strategy<Value = Change> {
    let telling = prop::sample::select(b"\0\t\n\r \"*,-.0129\\[]ex\x7f\xff".to_vec());
    let byte = prop_oneof![telling, any::<u8>()];
    prop_oneof![
        (any::<prop::sample::Index>(), byte.clone()).prop_map(|(at, byte)| Change::Set(at, byte)),
        (any::<prop::sample::Index>(), prop::collection::vec(byte, 1..20))
            .prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        any::<prop::sample::Index>().prop_map(Change::Cut),
        any::<prop::sample::Index>().prop_map(Change::Repeat),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: Change) {
    if bytes.is_empty() {
        return;
    }
    match change {
        Change::Set(at, byte) => *at.get_mut(bytes) = byte,
        Change::Insert(at, new) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, new);
        }
        Change::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Change::Repeat(at) => {
            let copy = bytes[at.index(bytes.len())..].to_vec();
            bytes.extend(copy);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_in_every_format(
        option: u8,
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        for format in 0..=u8::try_from(Format::all().len()).expect("few formats") {
            hostile::check(&bytes, &hostile::options_of(format, option));
        }
    }

    #[test]
    fn changed_traces_in_their_own_format_and_recognised(
        option: u8,
        changes in prop::collection::vec(change(), 0..5),
    ) {
        let recognise = u8::try_from(Format::all().len()).expect("few formats");
        for (number, &format) in (0..).zip(Format::all()) {
            let mut bytes = sample(format);
            for change in changes.clone() {
                apply(&mut bytes, change);
            }
            hostile::check(&bytes, &hostile::options_of(number, 0));
            hostile::check(&bytes, &hostile::options_of(number, option));
            hostile::check(&bytes, &hostile::options_of(recognise, option));
        }
    }

    #[test]
    fn damaged_compressed_traces(
        kind in 0..6usize,
        changes in prop::collection::vec(change(), 0..5),
    ) {
        let plain = sample(Format::Arc);
        let level = 3;
        let mut bytes = match kind {
            0 => {
                let mut encoder =
                    flate2::bufread::GzEncoder::new(&plain[..], flate2::Compression::new(level));
                drain(&mut encoder)
            }
            1 => drain(&mut bzip2::bufread::BzEncoder::new(&plain[..], bzip2::Compression::new(level))),
            2 => drain(&mut liblzma::bufread::XzEncoder::new(&plain[..], level)),
            3 => zstd::stream::encode_all(&plain[..], 3).expect("memory takes everything"),
            4 => {
                let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
                encoder.write_all(&plain).expect("memory takes everything");
                encoder.finish().expect("memory takes everything")
            }
            _ => {
                let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
                let options = zip::write::SimpleFileOptions::default();
                archive.start_file("a.lis", options).expect("a file");
                archive.write_all(&plain).expect("memory takes everything");
                archive.finish().expect("memory takes everything").into_inner()
            }
        };
        for change in changes {
            apply(&mut bytes, change);
        }
        let arc = Format::all().iter().position(|&format| format == Format::Arc);
        let arc = u8::try_from(arc.expect("it is listed")).expect("few formats");
        hostile::check(&bytes, &hostile::options_of(arc, 0));
    }
}

fn drain(reader: &mut impl std::io::Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).expect("memory takes everything");
    bytes
}

#[test]
fn the_samples_are_valid() {
    use haypile_sim::trace::Request;
    use haypile_sim::trace::format::{ReadOptions, TraceReader};
    for &format in Format::all() {
        if matches!(format, Format::Hpt | Format::Recording) {
            continue;
        }
        let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
        let sample = sample(format);
        TraceReader::from_reader("t", &sample[..], &options)
            .and_then(|reader| reader.read(&mut |_: Request<'_>| Ok(())))
            .unwrap_or_else(|error| panic!("{format}: {error}"));
    }
}
