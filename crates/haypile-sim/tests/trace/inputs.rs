//! Inputs of traces: files, several files, compressed files, and other inputs.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::support::{error, key, options, read_named};
use haypile_sim::trace::format::{Format, ReadOptions, ReadReport, TraceReader, read};
use haypile_sim::trace::{Key, Request, TraceError};

type Compress = fn(&[u8]) -> io::Result<Vec<u8>>;

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn bzip2(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn xz(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn zstd(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1)?;
    // As the zstd program does; without it, damage can go unnoticed.
    encoder.include_checksum(true)?;
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn lz4(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut info = lz4_flex::frame::FrameInfo::new();
    // As the lz4 program does; without it, damage can go unnoticed.
    info.content_checksum = true;
    info.block_size = lz4_flex::frame::BlockSize::Max64KB;
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(bytes)?;
    encoder.finish().map_err(io::Error::from)
}

const COMPRESSIONS: [(&str, Compress); 5] =
    [("gzip", gzip), ("bzip2", bzip2), ("xz", xz), ("zstd", zstd), ("lz4", lz4)];

/// An archive with these files, or folders where names end with a slash.
fn zip(files: &[(&str, &[u8])], method: zip::CompressionMethod) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(method);
    for (name, bytes) in files {
        if name.ends_with('/') {
            archive.add_directory(*name, options).expect("a folder");
        } else {
            archive.start_file(*name, options).expect("a file");
            archive.write_all(bytes).expect("memory takes everything");
        }
    }
    archive.finish().expect("memory takes everything").into_inner()
}

/// Numbers in text, enough to fill every buffer several times.
fn text() -> (Vec<u8>, u64) {
    let count = 60_000;
    let lines: Vec<String> = (0..count).map(|number: u64| format!("{}\n", number * 7919)).collect();
    (lines.concat().into_bytes(), count)
}

fn read_keys(bytes: &[u8], options: &ReadOptions) -> Result<(ReadReport, u64), TraceError> {
    let mut sum = 0u64;
    let mut sink = |request: Request<'_>| {
        if let Key::Number(number) = request.key {
            sum = sum.wrapping_mul(31).wrapping_add(number);
        }
        Ok(())
    };
    let report = TraceReader::from_reader("t", bytes, options)?.read(&mut sink)?;
    Ok((report, sum))
}

#[test]
fn each_compression_is_told_by_content_and_in_several_parts() {
    let (plain, count) = text();
    let (plain_report, sum) = read_keys(&plain, &ReadOptions::default()).expect("plain text");
    assert_eq!((plain_report.format, plain_report.requests), (Format::Lirs, count));
    let half = plain.len() / 2;
    for (name, compress) in COMPRESSIONS {
        let whole = compress(&plain).expect("memory takes everything");
        let parts = [&plain[..half], &plain[half..], b""]
            .map(|part| compress(part).expect("memory takes everything"))
            .concat();
        for bytes in [whole, parts] {
            let read = read_keys(&bytes, &ReadOptions::default());
            assert_eq!(read.expect(name), (plain_report.clone(), sum), "{name}");
        }
    }
}

#[test]
fn truncated_and_damaged_compression_is_an_error_that_names_the_file() {
    let (plain, _) = text();
    for (name, compress) in COMPRESSIONS {
        let whole = compress(&plain).expect("memory takes everything");
        for keep in [whole.len() - 1, whole.len() / 2, 12] {
            // Neither the format nor --skip-bad changes what a truncated file is.
            let mut options = options(Format::Lirs);
            options.skip_bad = true;
            assert_eq!(
                error(&whole[..keep], &options),
                format!("t: the {name} data is truncated; fetch or compress the file again"),
                "{name}, {keep} of {} bytes",
                whole.len()
            );
        }
        let mut damaged = whole.clone();
        let middle = whole.len() / 2;
        damaged[middle..middle + 64].fill(0x55);
        // What comes out before the checksum is reached may not even be text.
        let mut options = options(Format::Lirs);
        options.skip_bad = true;
        let text = error(&damaged, &options);
        assert!(
            text.starts_with(&format!("t: the {name} data is damaged ("))
                && text.ends_with("); fetch or compress the file again"),
            "{text}"
        );
    }
}

#[test]
fn nothing_compressed_is_an_empty_file() {
    for (name, compress) in COMPRESSIONS {
        let nothing = compress(b"").expect("memory takes everything");
        let text = error(nothing, &ReadOptions::default());
        assert_eq!(text, "t is empty; a trace has at least one request", "{name}");
    }
}

#[test]
fn lz4_frames_may_have_other_blocks_and_frames_without_data_between_them() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let (plain, _) = text();
    let frame = |bytes: &[u8], size, mode| {
        let mut info = FrameInfo::new();
        info.block_size = size;
        info.block_mode = mode;
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(bytes).expect("memory takes everything");
        encoder.finish().expect("memory takes everything")
    };
    let (first, second) = plain.split_at(plain.len() / 3);
    let first = frame(first, BlockSize::Max4MB, BlockMode::Linked);
    let second = frame(second, BlockSize::Max64KB, BlockMode::Linked);
    let skipped = b"\x5a\x2a\x4d\x18\x03\0\0\0abc";
    let frames = [&first[..], skipped, skipped, &second, skipped].concat();
    let expected = read_keys(&plain, &ReadOptions::default()).expect("plain text");
    assert_eq!(read_keys(&frames, &ReadOptions::default()).expect("lz4"), expected);

    // A file that ends between two blocks, or within a frame without data, is as truncated as others.
    let one_block = 7 + 4 + u32::from_le_bytes(second[7..11].try_into().expect("four bytes"));
    let one_block = usize::try_from(one_block).expect("a short block");
    for truncated in [&second[..one_block], &second[..6], &frames[..frames.len() - 1]] {
        assert_eq!(
            error(truncated, &options(Format::Lirs)),
            "t: the lz4 data is truncated; fetch or compress the file again",
            "{} bytes",
            truncated.len()
        );
    }
}

#[test]
fn a_zip_archive_with_one_file_is_read_as_it_is() {
    let (plain, _) = text();
    let (report, sum) = read_keys(&plain, &ReadOptions::default()).expect("plain text");
    for method in [zip::CompressionMethod::Deflated, zip::CompressionMethod::Stored] {
        // A folder, and what a Mac adds, are not traces.
        let contents: [(&str, &[u8]); 3] =
            [("a/", b""), ("a/t", &plain), ("__MACOSX/a/._t", b"mac")];
        let archive = zip(&contents, method);
        let found = read_keys(&archive, &ReadOptions::default()).expect("a zip archive");
        assert_eq!(found, (report.clone(), sum), "from a stream, {method}");
        let (_directory, paths) = files(&[("t.zip", &archive)]);
        let (found, _) = read_files(&paths, &ReadOptions::default()).expect("a zip archive");
        assert_eq!(found, report, "from a file, {method}");
    }
}

#[test]
fn the_name_in_a_zip_archive_tells_the_format() {
    let archive = zip(&[("requests.i32be", b"\0\0\0\x07")], zip::CompressionMethod::Stored);
    let (report, requests) = read_named("t.zip", &archive, &ReadOptions::default()).expect("a key");
    assert_eq!((report.format, requests.len()), (Format::I32Be, 1));
}

#[test]
fn a_zip_archive_without_a_file_is_empty() {
    for files in [&[][..], &[("a/", &b""[..])], &[("a.csv", &b""[..])]] {
        let archive = zip(files, zip::CompressionMethod::Deflated);
        let text = error(archive, &ReadOptions::default());
        assert_eq!(text, "t is empty; a trace has at least one request", "{files:?}");
    }
}

#[test]
fn a_zip_archive_with_several_files_names_them_and_the_way_to_read_one() {
    let long = "x".repeat(1000);
    let names = ["a.csv", "b/c\n.csv", &long, "d", "e", "f", "g"];
    let contents: Vec<(&str, &[u8])> = names.map(|name| (name, &b"1\n"[..])).into();
    let archive = zip(&contents, zip::CompressionMethod::Deflated);
    assert_eq!(
        error(archive, &ReadOptions::default()),
        format!(
            "t: there are 7 files in this archive ('a.csv', 'b/c\\n.csv', '{}...', 'd', 'e' and 2 more), and a trace \
             is one: pipe it, as in unzip -p FILE 'a.csv' | haypile trace info -; or unzip the files and name those that \
             are one trace",
            "x".repeat(60)
        )
    );
}

#[test]
fn a_zip_archive_that_cannot_be_read_is_an_error_with_its_reason() {
    let (plain, _) = text();
    let archive = zip(&[("t.lirs", &plain)], zip::CompressionMethod::Deflated);
    for keep in [archive.len() - 1, archive.len() / 2, 12, 4] {
        assert_eq!(
            error(&archive[..keep], &ReadOptions::default()),
            "t: the zip data is truncated; fetch or compress the file again",
            "{keep} bytes"
        );
    }
    let mut options = options(Format::Lirs);
    options.skip_bad = true;
    let central = memchr::memmem::find(&archive, b"PK\x01\x02").expect("the list of the files");
    // The data, its checksum in the list, and the list.
    for (at, bytes) in [(archive.len() / 2, 64), (central + 16, 4), (central, 4)] {
        let mut damaged = archive.clone();
        damaged[at..at + bytes].fill(0x55);
        let text = error(&damaged, &options);
        assert!(text.starts_with("t: the zip data is damaged ("), "{at}: {text}");
    }
    // Bit 0 of the flags in both headers is encryption; the method, behind the flags, is LZMA.
    for (at, value) in [(0, 1), (2, 14)] {
        let mut foreign = archive.clone();
        foreign[6 + at] = value;
        foreign[central + 8 + at] = value;
        assert_eq!(
            error(&foreign, &options),
            "t: the file 't.lirs' in this archive is encrypted, or compressed with another method than deflate: unzip it \
             first"
        );
    }
}

#[test]
fn text_that_only_begins_like_compressed_data_is_text() {
    let (_, requests) = read_named("t", b"BZh9\nBZh9", &options(Format::Lirs)).expect("two keys");
    assert_eq!(requests, [key("BZh9"), key("BZh9")]);
}

/// Gives its bytes one at a time, and is interrupted before each.
struct Dribble<'a>(&'a [u8], bool);

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let length = buffer.len().min(1);
        self.0.read(&mut buffer[..length])
    }
}

#[test]
fn slow_and_interrupted_reading_changes_nothing() {
    let bytes = gzip(b"5 2 0 0\r\n9 1 0 1\n").expect("memory takes everything");
    let mut keys = Vec::new();
    let mut sink = |request: Request<'_>| {
        keys.push(crate::support::Owned::from(request).key);
        Ok(())
    };
    TraceReader::from_reader("t", Dribble(&bytes, false), &ReadOptions::default())
        .and_then(|reader| reader.read(&mut sink))
        .expect("an ARC trace");
    assert_eq!(keys, [5.into(), 6.into(), 9.into()]);
}

#[test]
fn an_error_of_the_reader_is_its_own_and_no_truncation() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(5))
        }
    }
    let head = gzip(b"1\n2\n").expect("memory takes everything");
    let broken = head[..12].chain(Broken);
    let error = TraceReader::from_reader("t", broken, &ReadOptions::default());
    assert!(matches!(error, Err(TraceError::Io { .. })), "{error:?}");
}

#[test]
fn an_error_of_the_sink_ends_the_reading() {
    let mut taken = 0;
    let mut sink = |_: Request<'_>| {
        taken += 1;
        if taken == 3 { Err(TraceError::NoInput) } else { Ok(()) }
    };
    let error = TraceReader::from_reader("t", &b"0 1000000 0 0\n"[..], &options(Format::Arc))
        .and_then(|reader| reader.read(&mut sink));
    assert!(matches!(error, Err(TraceError::NoInput)), "{error:?}");
    assert_eq!(taken, 3);
}

/// Files in a directory of their own.
fn files(contents: &[(&str, &[u8])]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let paths = contents
        .iter()
        .map(|(name, bytes)| {
            let path = directory.path().join(name);
            fs::write(&path, bytes).expect("a file in it");
            path
        })
        .collect();
    (directory, paths)
}

fn read_files(
    paths: &[impl AsRef<Path>],
    options: &ReadOptions,
) -> Result<(ReadReport, Vec<crate::support::OwnedKey>), TraceError> {
    let mut keys = Vec::new();
    let mut sink = |request: Request<'_>| {
        keys.push(request.key.into());
        Ok(())
    };
    let report = read(paths, options, &mut sink)?;
    Ok((report, keys))
}

#[test]
fn several_files_are_one_trace() {
    let second = zstd(b"size,key\n1,3\n").expect("memory takes everything");
    let contents: [(&str, &[u8]); 2] = [("b.csv", b"key\n1\n2"), ("a.csv.zst", &second)];
    let (_directory, paths) = files(&contents);
    let (report, keys) = read_files(&paths, &ReadOptions::default()).expect("two CSV files");
    assert_eq!(keys, [1.into(), 2.into(), 3.into()], "each with its own header");
    assert_eq!((report.requests, report.bytes_read), (3, 7 + 13));
}

#[test]
fn files_with_times_are_merged_by_time() {
    let contents: [(&str, &[u8]); 3] = [
        ("a.csv", b"key,time\n1,10\n2,30\n3,20\n"),
        ("b.csv", b"time,key,op_count\n10,4,1\n25,5,2\n"),
        ("c.csv", b"key,time\n6,5\n"),
    ];
    let (directory, paths) = files(&contents);
    let (report, keys) = read_files(&paths, &ReadOptions::default()).expect("three CSV files");
    // Of equal times the earlier file goes first, and a file keeps its own order.
    assert_eq!(keys, [6, 1, 4, 5, 5, 2, 3].map(crate::support::OwnedKey::from));
    assert_eq!(report.requests, 7);
    let path = directory.path().join("a.csv");
    let note = format!(
        "{}: 1 of 3 requests have an earlier time than one before them; they stay in the order of the file",
        path.display()
    );
    let merged = "3 files are merged by the times of their requests; --columns time=none reads them one after \
                  the other";
    assert_eq!(report.notes, [merged.to_owned(), note]);

    let line = |time: &str, target: &str| {
        format!("h - - [10/Oct/2000:{time} -0700] \"GET {target} HTTP/1.1\" 200 1\n").into_bytes()
    };
    let (late, early) =
        ([line("13:00:00", "/c"), line("14:00:00", "/d")].concat(), line("13:30:00", "/b"));
    let (_directory, paths) = files(&[("late.log", &late), ("early.log", &early)]);
    let (_, keys) = read_files(&paths, &ReadOptions::default()).expect("two logs");
    assert_eq!(keys, ["/c", "/b", "/d"].map(crate::support::OwnedKey::from));
}

#[test]
fn a_bad_line_of_merged_files_names_its_file() {
    let contents: [(&str, &[u8]); 2] =
        [("a.csv", b"key,time\n1,10\n"), ("b.csv", b"key,time\n1,5\n2,x\n")];
    let (_directory, paths) = files(&contents);
    let error = read_files(&paths, &ReadOptions::default()).expect_err("a bad line");
    let expected = format!("{}:3: expected a time", paths[1].display());
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[test]
fn one_file_without_times_leaves_the_order_of_the_files() {
    let contents: [(&str, &[u8]); 2] = [("a.csv", b"key,time\n1,10\n"), ("b.csv", b"key\n2\n")];
    let (_directory, paths) = files(&contents);
    let (report, keys) = read_files(&paths, &ReadOptions::default()).expect("two CSV files");
    assert_eq!(keys, [1.into(), 2.into()]);
    let note = format!(
        "{}: the requests have no times, so the files are read one after the other",
        paths[1].display()
    );
    assert_eq!(report.notes, [note]);
}

/// A log that was begun a moment ago does not spoil the others, wherever it comes.
#[test]
fn an_empty_file_among_several_is_told_of() {
    let line: &[u8] = b"h - - [10/Oct/2000:13:00:00 -0700] \"GET /a HTTP/1.1\" 200 1\n";
    for place in 0..3 {
        let mut contents = vec![("a.log", line), ("b.log", line)];
        contents.insert(place, ("new.log", b""));
        let (_directory, paths) = files(&contents);
        let (report, keys) = read_files(&paths, &ReadOptions::default()).expect("two logs");
        assert_eq!(keys.len(), 2);
        let note = format!("{}: the file is empty", paths[place].display());
        assert!(report.notes.contains(&note), "{:?}", report.notes);
    }
    let (_directory, paths) = files(&[("a.log", b""), ("b.log", b"")]);
    let error = read_files(&paths, &ReadOptions::default()).expect_err("nothing");
    assert!(error.to_string().contains("empty"), "{error}");
}

#[test]
fn a_bad_line_names_its_file() {
    let (_directory, paths) = files(&[("a.lis", b"1 1 0 0\n"), ("b.lis", b"1 1 0 0\nx\n")]);
    let error = read_files(&paths, &ReadOptions::default()).expect_err("a bad line");
    let expected = format!("{}:2: expected four numbers", paths[1].display());
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[test]
fn files_of_two_formats_are_no_trace() {
    let (_directory, paths) = files(&[("a", b"1\n"), ("b", b"1 1 0 0\n")]);
    let error = read_files(&paths, &ReadOptions::default()).expect_err("two formats");
    assert_eq!(
        error.to_string(),
        format!(
            "{} looks like arc, but the files before it like lirs; one trace has one format; \
             state it if the file is lirs nonetheless",
            paths[1].display()
        )
    );
    let (report, _) = read_files(&paths, &options(Format::Lirs)).expect("one format was asked for");
    assert_eq!(report.requests, 2);
}

#[test]
fn unreadable_files_are_reported_before_anything_is_read() {
    let (directory, paths) = files(&[("a", b"1\n"), ("empty", b"")]);
    let text = |paths: &[&Path]| {
        let error = TraceReader::open(paths, &ReadOptions::default()).expect_err("no trace");
        error.to_string().replace(&directory.path().display().to_string(), "DIR")
    };
    let missing = directory.path().join("missing");
    let system = "No such file or directory (os error 2)";
    assert_eq!(text(&[&missing]), format!("DIR/missing: {system}"));
    assert_eq!(text(&[&paths[0], &missing]), format!("DIR/missing: {system}"));
    let directory_error = "DIR is a directory; name the trace files in it";
    assert_eq!(text(&[directory.path()]), directory_error);
    assert_eq!(text(&[&paths[0], directory.path()]), directory_error);
    assert_eq!(text(&[&paths[1]]), "DIR/empty is empty; a trace has at least one request");
    assert_eq!(text(&[]), "no trace to read; name a file, or '-' for standard input");
    let input = Path::new("-");
    assert_eq!(
        text(&[input, &paths[0], input]),
        "standard input ('-') can be read only once; name it once"
    );
}

/// Set for the process that `standard_input_is_read_like_a_file` starts.
const CHILD: &str = "HAYPILE_TEST_READS_STANDARD_INPUT";

/// No test by itself: what the process started below does.
#[test]
fn child_that_reads_standard_input() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let (report, keys) = read_files(&["-"], &ReadOptions::default()).expect("an ARC trace");
    assert_eq!(report.format, Format::Arc);
    assert_eq!(keys, [5.into(), 6.into(), 9.into()]);
}

#[test]
fn standard_input_is_read_like_a_file() {
    let (_directory, paths) =
        files(&[("packed", &xz(b"5 2 0 0\n9 1 0 1\n").expect("memory takes everything"))]);
    let program = std::env::current_exe().expect("this program");
    for (input, success) in [(&paths[0], true), (&program, false)] {
        let output = std::process::Command::new(&program)
            .args(["--exact", "inputs::child_that_reads_standard_input"])
            .env(CHILD, "1")
            .stdin(fs::File::open(input).expect("a file that was just there"))
            .output()
            .expect("this program starts");
        assert_eq!(output.status.success(), success, "{output:?}");
    }
}

#[test]
fn compressions_of_others_are_named_with_the_command_that_undoes_them() {
    for (head, name, command) in [
        (&b"\x02\x21\x4c\x18\x17"[..], "legacy lz4", "lz4 -dc FILE"),
        (b"7z\xbc\xaf\x27\x1c", "7z", "7z x -so FILE"),
        (b"\x1f\x9d\x90", "compress", "uncompress -c FILE"),
    ] {
        let error = TraceReader::from_reader("t", head, &ReadOptions::default()).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(&format!("this is {name} data")), "{error}");
        assert!(error.contains(&format!("{command} | haypile")), "{error}");
    }
}
