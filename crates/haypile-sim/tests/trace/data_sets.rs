//! Public data sets: lines in the documented layouts, and the requests that they stand for.

use haypile_sim::trace::Op::{Delete, Read, Write};
use haypile_sim::trace::format::{BlockSize, DataSet, Format, ReadOptions};

use crate::support::{Owned, error, options, read_named, request, requests};

fn of(set: DataSet) -> ReadOptions {
    options(Format::DataSet(set))
}

fn in_blocks(options: ReadOptions, bytes: u64) -> ReadOptions {
    ReadOptions { block_size: Some(BlockSize::new(bytes).unwrap()), ..options }
}

#[test]
fn key_value_caches() {
    let twitter = "0,nz:u:eeW511W3dcH3de3d15ec,22,304,0,get,0\n\
                   7,q:q:1:8WTfjZU14ee,17,213,4,set,3600\n\
                   8,q:q:1:8WTfjZU14ee,17,0,4,delete,0\n";
    assert_eq!(
        requests(twitter, &of(DataSet::Twitter)),
        [
            request(Read, "nz:u:eeW511W3dcH3de3d15ec", 304, 0),
            request(Write, "q:q:1:8WTfjZU14ee", 213, 7_000_000),
            request(Delete, "q:q:1:8WTfjZU14ee", 0, 8_000_000),
        ]
    );
    let meta = "key,op,size,op_count,key_size\n1668,GET,82,3,64\n1668,SET,90,1,64\n";
    assert_eq!(
        requests(meta, &of(DataSet::MetaKv)),
        [
            request(Read, 1668, 82, None),
            request(Read, 1668, 82, None),
            request(Read, 1668, 82, None),
            request(Write, 1668, 90, None),
        ]
    );
}

#[test]
fn content_networks() {
    let meta = "timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,rangeStart,rangeEnd\n\
                1679000000,1234567890,1,5000000,1048576,300,0,1048575\n";
    let expected = [request(Read, 1_234_567_890, 5_000_000, 1_679_000_000_000_000)];
    assert_eq!(requests(meta, &of(DataSet::MetaCdn)), expected);
    let upload = "relative_unix\thashed_path_query\timage_type\tresponse_size\ttime_firstbyte\n\
                  0\t833946053\tjpeg\t7665\t0.000138\n2\t-1\tpng\t5\t0.1\n";
    assert_eq!(
        requests(upload, &of(DataSet::Wiki)),
        [request(Read, 833_946_053, 7_665, 0), request(Read, "-1", 5, 2_000_000)]
    );
    let text = "3\t3154\t7\t0.000138\n";
    assert_eq!(requests(text, &of(DataSet::Wiki)), [request(Read, 3154, 7, 3_000_000)]);
}

#[test]
fn photos_are_told_apart_by_format_and_size() {
    let line = "20160201164604 085abb02 5 m 12903 1 PHONE 1\n\
                20160201164605 085abb02 0 m 12903 1 PC 0\n\
                20160201164605 085abb02 7 m 12903 1 PC 0\n";
    assert_eq!(
        requests(line, &of(DataSet::TencentPhoto)),
        [
            request(Read, "085abb02 5 m", 12_903, 1_454_345_164_000_000),
            request(Read, "085abb02 0 m", 12_903, 1_454_345_165_000_000),
        ]
    );
    let bad = error("201602011646 085abb02 5 m 12903 1 PHONE 1\n", &of(DataSet::TencentPhoto));
    assert!(bad.contains("YYYYMMDDhhmmss"), "{bad}");
}

#[test]
fn object_stores() {
    let lines = "1219008 REST.PUT.OBJECT 8d4fcda3d675bac9 1056\n\
                 1221974 REST.GET.OBJECT 39d177fb735ac5df 528 0 527\n\
                 1221975 REST.GET.OBJECT 39d177fb735ac5df 528 100 199\n\
                 1232437 REST.HEAD.OBJECT 3b8255e0609a700d 1456\n\
                 1233454 REST.DELETE.OBJECT 3b8255e0609a700d\n";
    let (report, requests) = read_named("t", lines.as_bytes(), &of(DataSet::IbmCos)).unwrap();
    assert_eq!(
        requests,
        [
            request(Write, "8d4fcda3d675bac9", 1056, 1_219_008_000),
            request(Read, "39d177fb735ac5df", 528, 1_221_974_000),
            request(Read, "39d177fb735ac5df", 528, 1_221_975_000),
            request(Read, "3b8255e0609a700d", 1456, 1_232_437_000),
            request(Delete, "3b8255e0609a700d", None, 1_233_454_000),
        ]
    );
    assert_eq!(report.notes, ["1 reads of a part of an object are read as reads of the whole"]);
}

/// Devices have numbers in the order in which they come.
fn block(device: u64, number: u64) -> u64 {
    device << 48 | number
}

#[test]
fn block_devices() {
    let msr = "128166372003061629,hm,0,Read,383496192,32768,413\n\
               128166372016382155,hm,1,Write,4095,2,1\n";
    let blocks = requests(msr, &of(DataSet::Msr));
    let first: Vec<Owned> = (0..8)
        .map(|n| request(Read, block(0, 93_627 + n), 4_096, 12_816_637_200_306_162))
        .collect();
    let second = [0, 1].map(|n| request(Write, block(1, n), 4_096, 12_816_637_201_638_215));
    assert_eq!(blocks, [&first[..], &second[..]].concat());

    let alibaba = "419,W,8192,4096,1577808000000046\n725,R,0,0,1577808000000097\n725,R,4096,1,1577808000000098\n";
    assert_eq!(
        requests(alibaba, &of(DataSet::Alibaba)),
        [
            request(Write, block(0, 2), 4_096, 1_577_808_000_000_046),
            request(Read, block(1, 1), 4_096, 1_577_808_000_000_098),
        ]
    );

    let tencent = "1538323200,12910952,128,0,1063\n1538323201,7,2,1,1063\n";
    let blocks = requests(tencent, &in_blocks(of(DataSet::TencentBlock), 65_536));
    assert_eq!(
        blocks,
        [
            request(Read, block(0, 100_866), 65_536, 1_538_323_200_000_000),
            request(Read, block(0, 100_867), 65_536, 1_538_323_200_000_000),
            request(Write, block(0, 0), 65_536, 1_538_323_201_000_000),
        ]
    );
    for (set, line) in [
        (DataSet::Msr, "1,hm,0,Read,18446744073709551615,2,3\n"),
        (DataSet::Alibaba, "1,R,18446744073709551614,1,3\n"),
        (DataSet::TencentBlock, "1,36028797018963967,1000,0,1\n"),
        (DataSet::Msr, "1,hm,0,Read,0,99999999999,3\n"),
    ] {
        assert!(error(line, &in_blocks(of(set), 512)).contains("blocks"), "{set}");
    }
}

/// Blocks of a stated size, of other block traces as well.
#[test]
fn other_block_traces_are_divided_too() {
    let spc = "1,2,4096,r,3\n";
    assert_eq!(
        requests(spc, &in_blocks(options(Format::Spc), 1_024)),
        [1, 2, 3, 4].map(|n| request(Read, block(1, n), 1_024, 3_000_000))
    );
    let mut record = [0_u8; 40];
    record[..2].copy_from_slice(&0x28_u16.to_le_bytes());
    record[2..4].copy_from_slice(&0x0200_u16.to_le_bytes());
    record[8..12].copy_from_slice(&8_192_u32.to_le_bytes());
    record[16..24].copy_from_slice(&15_u64.to_le_bytes());
    let vscsi = options(Format::Vscsi);
    assert_eq!(requests(record, &vscsi), [request(Read, 15, 8_192, 0)]);
    // Sectors 15 to 30 are bytes 7,680 to 15,871: in blocks of 4 KiB these are 1, 2 and 3.
    assert_eq!(
        requests(record, &in_blocks(vscsi, 4_096)),
        [1, 2, 3].map(|n| request(Read, n, 4_096, 0))
    );
    for bytes in [0, 1, 511, 513] {
        assert!(BlockSize::new(bytes).is_err(), "{bytes}");
    }
}

#[test]
fn every_name_is_known_and_files_of_others_are_refused() {
    for set in DataSet::ALL {
        assert_eq!(set.name().parse::<DataSet>().unwrap(), set);
        assert_eq!(set.name().parse::<Format>().unwrap(), Format::DataSet(set));
        assert!(!error("some prose, which is not\nof this set\n", &of(set)).is_empty());
    }
}
