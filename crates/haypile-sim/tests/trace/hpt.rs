//! The columnar trace: what is built is what is read, and nothing else is accepted.

use std::collections::HashMap;
use std::fs;
use std::ops::ControlFlow;

use haypile_sim::Trace;
use haypile_sim::simulate::{Accounting, Contender, Options, SimulateError, simulate};
use haypile_sim::trace::hpt::HptError;
use haypile_sim::trace::{
    BuildOptions, Key, Limit, Op, Request, Sampling, Sink, TraceBuilder, TraceError,
};
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq)]
enum OwnKey {
    Number(u64),
    Text(Vec<u8>),
}

impl OwnKey {
    fn key(&self) -> Key<'_> {
        match self {
            Self::Number(number) => Key::Number(*number),
            Self::Text(text) => Key::Text(text),
        }
    }
}

#[derive(Clone, Debug)]
struct OwnRequest {
    key: OwnKey,
    size_bytes: Option<u64>,
    op: Op,
    time_us: Option<u64>,
    cost_ns: Option<u64>,
}

impl OwnRequest {
    fn request(&self) -> Request<'_> {
        Request {
            key: self.key.key(),
            size_bytes: self.size_bytes,
            op: self.op,
            time_us: self.time_us,
            ttl_us: None,
            cost_ns: self.cost_ns,
        }
    }
}

fn key() -> impl Strategy<Value = OwnKey> {
    prop_oneof![
        (0_u64..12).prop_map(OwnKey::Number),
        any::<u64>().prop_map(OwnKey::Number),
        "[ab]{0,2}".prop_map(|text| OwnKey::Text(text.into_bytes())),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(OwnKey::Text),
    ]
}

fn request() -> impl Strategy<Value = OwnRequest> {
    let size = prop::option::weighted(0.7, 0..=u64::from(u32::MAX));
    let op = prop_oneof![6 => Just(Op::Read), 1 => Just(Op::Write), 1 => Just(Op::Delete)];
    let time = prop::option::weighted(0.8, any::<u64>());
    let cost = prop::option::weighted(0.5, 0_u64..3);
    (key(), size, op, time, cost).prop_map(|(key, size_bytes, op, time_us, cost_ns)| OwnRequest {
        key,
        size_bytes,
        op,
        time_us,
        cost_ns,
    })
}

/// Which of the optional columns a trace has at all.
fn requests() -> impl Strategy<Value = Vec<OwnRequest>> {
    (prop::collection::vec(request(), 0..120), any::<[bool; 4]>()).prop_map(
        |(mut requests, [sizes, ops, times, costs])| {
            for request in &mut requests {
                request.size_bytes = request.size_bytes.filter(|_| sizes);
                request.time_us = request.time_us.filter(|_| times);
                request.cost_ns = request.cost_ns.filter(|_| costs);
                request.op = if ops { request.op } else { Op::Read };
            }
            requests
        },
    )
}

fn build(requests: &[OwnRequest], options: BuildOptions) -> Trace {
    let mut builder = TraceBuilder::new(options);
    for request in requests {
        builder.push(request.request()).unwrap();
    }
    assert_eq!(builder.requests() as usize, requests.len());
    builder.finish().unwrap()
}

/// Compares a trace with the requests it was built from, column by column.
fn assert_tells(trace: &Trace, requests: &[OwnRequest]) {
    assert_eq!(trace.requests(), requests.len());
    let ids = trace.ids();
    let mut first_seen = 0;
    let (mut last_bytes, mut costs_ns) = (HashMap::new(), HashMap::new());
    let mut last_us = 0;
    for (n, request) in requests.iter().enumerate() {
        let id = ids[n].get();
        assert_eq!(trace.key(id), request.key.key());
        let text_bytes = match &request.key {
            OwnKey::Number(number) => number.to_string().len(),
            OwnKey::Text(text) => text.len(),
        };
        assert_eq!(trace.key_bytes(id) as usize, text_bytes);
        assert!(id <= first_seen);
        first_seen += u32::from(id == first_seen);

        // Before the first known size of a key, that.
        let own = || requests.iter().filter(|other| other.key == request.key);
        let first = || own().find_map(|other| other.size_bytes).unwrap_or(0);
        let last = last_bytes.entry(id).or_insert_with(first);
        *last = request.size_bytes.unwrap_or(*last);
        if let Some(sizes) = trace.sizes() {
            assert_eq!(u64::from(sizes[n].get()), *last);
        }
        let first = || own().find_map(|other| other.cost_ns).unwrap_or(0);
        let last = costs_ns.entry(id).or_insert_with(first);
        *last = request.cost_ns.unwrap_or(*last);
        if let Some(costs) = trace.costs_ns() {
            assert_eq!(costs[n].get(), *last);
        }
        last_us = request.time_us.unwrap_or(last_us);
        if let Some(times) = trace.times_us() {
            assert_eq!(times[n].get(), last_us);
        }
        assert_eq!(trace.ops().map_or(Op::Read as u8, |ops| ops[n]), request.op as u8);
    }
    assert_eq!(trace.keys(), first_seen);
    assert_eq!(trace.sizes().is_some(), requests.iter().any(|r| r.size_bytes.is_some()));
    assert_eq!(trace.costs_ns().is_some(), requests.iter().any(|r| r.cost_ns.is_some()));
    assert_eq!(trace.times_us().is_some(), requests.iter().any(|r| r.time_us.is_some()));
    assert_eq!(trace.ops().is_some(), requests.iter().any(|r| r.op != Op::Read));
}

fn naive_next_use(trace: &Trace) -> Vec<u32> {
    let ids = trace.ids();
    (0..ids.len())
        .map(|n| {
            let next = (n + 1..ids.len()).find(|&later| ids[later] == ids[n]);
            next.map_or(u32::MAX, |next| u32::try_from(next).unwrap())
        })
        .collect()
}

fn plain(entries: &[zerocopy::little_endian::U32]) -> Vec<u32> {
    entries.iter().map(|entry| entry.get()).collect()
}

proptest! {
    #[test]
    fn a_trace_tells_what_was_pushed(requests in requests(), next_use: bool, memory in 0_usize..600) {
        let in_memory = build(&requests, BuildOptions { next_use, ..BuildOptions::default() });
        assert_tells(&in_memory, &requests);

        let expected = naive_next_use(&in_memory);
        prop_assert_eq!(in_memory.next_use().map(plain), next_use.then(|| expected.clone()));
        prop_assert_eq!(plain(&in_memory.compute_next_use().unwrap()), &expected[..]);
        prop_assert_eq!(plain(&in_memory.next_use_within(0).unwrap()), &expected[..]);

        let spilled = build(&requests, BuildOptions { next_use, memory_bytes: memory, sampling: None });
        prop_assert!(spilled.image() == in_memory.image());

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.hpt");
        fs::write(&path, "what was there before").unwrap();
        spilled.write_to(&path).unwrap();
        let opened = Trace::open(&path).unwrap();
        prop_assert!(opened.image() == in_memory.image());
        assert_tells(&opened, &requests);
        prop_assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn garbage_is_refused(mut garbage in prop::collection::vec(any::<u8>(), 0..400), marked: bool) {
        if marked {
            garbage.splice(..0, small_image()[..24].iter().copied());
        }
        Trace::from_image("garbage", garbage).unwrap_err();
    }
}

fn small_image() -> Vec<u8> {
    let read = |key| Request { size_bytes: Some(7), time_us: Some(3), ..Request::read(key) };
    let mut builder = TraceBuilder::new(BuildOptions { next_use: true, ..BuildOptions::default() });
    for key in [Key::Number(5), Key::Text(b"a"), Key::Text(b""), Key::Number(5), Key::Text(b"a")] {
        builder.push(read(key)).unwrap();
    }
    builder.push(Request { op: Op::Delete, ..Request::read(Key::Number(5)) }).unwrap();
    builder.finish().unwrap().image().to_vec()
}

fn fault(image: Vec<u8>) -> HptError {
    match Trace::from_image("test.hpt", image).unwrap_err() {
        TraceError::Hpt { path, source } => {
            assert_eq!(path.to_str(), Some("test.hpt"));
            source
        }
        other => panic!("{other}"),
    }
}

/// Everything that a trace tells, to compare two.
fn told(trace: &Trace) -> impl PartialEq + std::fmt::Debug + use<> {
    (
        plain(trace.ids()),
        trace.sizes().map(plain),
        trace.ops().map(<[u8]>::to_vec),
        trace.times_us().map(|times| times.iter().map(|time| time.get()).collect::<Vec<_>>()),
        trace.next_use().map(plain),
        (0..trace.keys()).map(|id| format!("{:?}", trace.key(id))).collect::<Vec<_>>(),
    )
}

#[test]
fn every_changed_byte_is_found_or_harmless() {
    let image = small_image();
    let whole = told(&Trace::from_image("whole", image.clone()).unwrap());
    let mut harmless = 0;
    for position in 0..image.len() {
        for flip in 1..=u8::MAX {
            let mut damaged = image.clone();
            damaged[position] ^= flip;
            if let Ok(trace) = Trace::from_image("damaged", damaged) {
                assert_eq!(told(&trace), whole, "byte {position} xor {flip}");
                harmless += 1;
            }
        }
    }
    // Only the padding between columns may change.
    assert!(harmless < image.len() * 255 / 2, "{harmless}");
}

#[test]
fn every_truncation_is_found() {
    let image = small_image();
    for length in 0..image.len() {
        match fault(image[..length].to_vec()) {
            HptError::NotHpt => assert_eq!(length, 0),
            HptError::Truncated { actual_bytes, expected_bytes } => {
                assert_eq!(actual_bytes, length as u64);
                assert!(expected_bytes > actual_bytes && expected_bytes <= image.len() as u64);
            }
            other => panic!("{length}: {other}"),
        }
    }
    let mut longer = image;
    longer.push(0);
    assert!(matches!(fault(longer), HptError::Damaged { .. }));
}

/// Gives a changed image a sound header checksum again, and its columns theirs.
fn reseal(image: &mut [u8]) {
    use xxhash_rust::xxh3::xxh3_64;
    let u64_at = |image: &[u8], at: usize| {
        usize::try_from(u64::from_le_bytes(image[at..at + 8].try_into().unwrap())).unwrap()
    };
    let columns = usize::from(image[36]);
    for entry in (0..columns).map(|n| 64 + 32 * n) {
        let (offset, bytes) = (u64_at(image, entry + 8), u64_at(image, entry + 16));
        if let Some(column) = offset.checked_add(bytes).and_then(|end| image.get(offset..end)) {
            let checksum = xxh3_64(column);
            image[entry + 24..entry + 32].copy_from_slice(&checksum.to_le_bytes());
        }
    }
    let checked = [&image[..56], &image[64..64 + 32 * columns]].concat();
    image[56..64].copy_from_slice(&xxh3_64(&checked).to_le_bytes());
}

#[test]
fn a_hostile_file_with_sound_checksums_is_refused_or_safe() {
    let image = small_image();
    for position in 0..image.len() {
        if position == 36 {
            continue; // The number of columns: `reseal` itself needs it.
        }
        for value in [0, 1, 2, 3, 4, 5, 6, 7, 8, 0x10, 0x3f, 0x40, 0x7f, 0x80, 0xff] {
            let mut hostile = image.clone();
            hostile[position] = value;
            if (64..320).contains(&position) && position % 32 >= 24 {
                continue; // A checksum, which `reseal` repairs.
            }
            reseal(&mut hostile);
            if let Ok(trace) = Trace::from_image("hostile", hostile) {
                // Whatever it tells, it can be told.
                told(&trace);
                (0..trace.keys()).for_each(|id| assert!(trace.key_bytes(id) < 1 << 16));
                // A column that lies is found out.
                match trace.compute_next_use() {
                    Ok(next_use) => assert_eq!(plain(&next_use), naive_next_use(&trace)),
                    Err(TraceError::NextUse { .. }) => {
                        assert_ne!(plain(trace.next_use().unwrap()), naive_next_use(&trace));
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }
}

#[test]
fn a_wrong_next_use_is_an_error_and_never_a_wrong_optimum() {
    let image = small_image();
    let directory = &image[64..64 + 32 * usize::from(image[36])];
    let entry = directory.chunks(32).find(|entry| entry[..2] == [5, 0]).unwrap();
    let start = usize::try_from(u64::from_le_bytes(entry[8..16].try_into().unwrap())).unwrap();
    let right = naive_next_use(&Trace::from_image("right", image.clone()).unwrap());
    let never = u32::MAX;
    assert_eq!(right, [3, 4, never, 5, never, never]);

    let with = |request: u32, next: u32| {
        let mut image = image.clone();
        let at = start + 4 * request as usize;
        image[at..at + 4].copy_from_slice(&next.to_le_bytes());
        reseal(&mut image);
        Trace::from_image("wrong.hpt", image).unwrap()
    };
    for request in 0..6 {
        for next in (request + 1..6).chain([never]) {
            let trace = with(request, next);
            let options = Options::new(Accounting::Objects);
            let belady = Contender::Belady { may_decline: false };
            let mut progress = |_| ControlFlow::Continue(());
            let outcome = simulate(&trace, &belady, 1, &options, &mut progress);
            if next == right[request as usize] {
                outcome.unwrap();
                continue;
            }
            let number = |next: u32| (next != never).then_some(u64::from(next));
            match outcome.unwrap_err() {
                SimulateError::Trace(TraceError::NextUse { request: at, announced, actual }) => {
                    assert_eq!(at, u64::from(request));
                    assert_eq!(announced, number(next));
                    assert_eq!(actual, number(right[request as usize]));
                }
                other => panic!("{other}"),
            }
        }
    }
    let message = |request, next| with(request, next).compute_next_use().unwrap_err().to_string();
    assert_eq!(
        message(1, 5),
        "the trace's column of next uses is wrong: it says that the key of request 1 is next \
         requested at request 5, but that is at request 4; convert the original trace again"
    );
    assert_eq!(
        message(2, 3),
        "the trace's column of next uses is wrong: it says that the key of request 2 is next \
         requested at request 3, but that is never; convert the original trace again"
    );
}

/// A sample whose column says what no sample can be is refused; whatever passes can be used.
#[test]
fn a_sample_that_contradicts_itself_is_refused() {
    let keys = 10_000_u64;
    let sampling = Some(Sampling::new(0.5, 1).unwrap());
    let mut builder = TraceBuilder::new(BuildOptions { sampling, ..BuildOptions::default() });
    for n in 0..2 * keys {
        let read = Request { size_bytes: Some(n % 7), ..Request::read(Key::Number(n % keys)) };
        builder.push(read).unwrap();
    }
    let image = builder.finish().unwrap().image().to_vec();
    let entry = 64 + 32 * (usize::from(image[36]) - 1);
    let at = |offset: usize| {
        usize::try_from(u64::from_le_bytes(image[offset..offset + 8].try_into().unwrap())).unwrap()
    };
    let (column, end) = (at(entry + 8), at(entry + 8) + at(entry + 16));
    let with = |changes: &[(usize, u64)]| {
        let mut image = image.clone();
        for &(at, word) in changes {
            image[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        reseal(&mut image);
        Trace::from_image("sample.hpt", image)
    };
    assert!(with(&[]).is_ok());
    let last = end - 48;
    for (context, at, word) in [
        ("a rate of 1", column, 1.0_f64.to_bits()),
        ("a rate that is no number", column, f64::NAN.to_bits()),
        ("marks without distance", column + 16, 0),
        ("neither known nor unknown sizes", column + 24, 2),
        ("a mark before the one before it", column + 32 + 8, u64::MAX),
        ("fewer requests than in the sample", last + 8, 1),
        ("other requests than the sample's", last, 3),
        ("more requests than there are numbers", last + 16, u64::MAX),
        ("bytes that shrink", last + 32, 0),
    ] {
        match with(&[(at, word)]).map_err(|error| error.to_string()) {
            Err(error) => assert!(error.contains("contradicts itself"), "{context}: {error}"),
            Ok(_) => panic!("{context} is taken"),
        }
    }
    // The smallest rate there is makes numbers that nobody can add up, and the results are numbers still.
    let tiny = with(&[(column, 1)]).unwrap();
    let options = Options::new(Accounting::Bytes);
    let mut go_on = |_| ControlFlow::Continue(());
    let outcome = simulate(&tiny, &"lru".parse().unwrap(), u64::MAX, &options, &mut go_on);
    let outcome = outcome.unwrap().unwrap();
    assert_eq!(outcome.counts.reads(), 2 * keys);
    assert!((0.0..=1.0).contains(&outcome.counts.byte_hit_ratio()));
}

#[test]
fn versions_and_byte_order() {
    let image = small_image();
    let changed = |changes: &[(usize, u8)]| {
        let mut image = image.clone();
        for &(position, value) in changes {
            image[position] = value;
        }
        reseal(&mut image);
        image
    };
    assert_eq!(fault(changed(&[(8, 2)])), HptError::Version { major: 2, minor: 2 });
    assert_eq!(fault(changed(&[(8, 0)])), HptError::Version { major: 0, minor: 2 });
    assert_eq!(
        fault(changed(&[(12, 4), (13, 3), (14, 2), (15, 1)])),
        HptError::ByteOrder,
        "a writer of the other byte order"
    );
    // A later minor version may have columns that this one does not know. Make one of the times.
    let later = changed(&[(10, 3), (64 + 3 * 32, 99)]);
    let trace = Trace::from_image("later", later).unwrap();
    assert!(trace.times_us().is_none());
    assert_eq!(trace.requests(), 6);
}

#[test]
fn messages_name_the_file_and_what_to_do() {
    let error = Trace::from_image("some.hpt", b"a text, no trace".to_vec()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "some.hpt: this is not an .hpt file; name its format, or create one with 'haypile trace \
         convert'"
    );
    let dir = tempfile::tempdir().unwrap();
    let error = Trace::open(dir.path()).unwrap_err();
    assert!(error.to_string().contains("has to be a regular file"), "{error}");
    let error = Trace::open(&dir.path().join("absent.hpt")).unwrap_err();
    assert!(matches!(error, TraceError::Io { .. }), "{error}");
    let empty = dir.path().join("empty.hpt");
    fs::write(&empty, "").unwrap();
    let error = Trace::open(&empty).unwrap_err();
    assert!(matches!(error, TraceError::Hpt { source: HptError::NotHpt, .. }), "{error}");
}

#[test]
fn limits_are_errors_and_leave_the_builder_usable() {
    let mut builder = TraceBuilder::new(BuildOptions::default());
    builder.push(Request::read(Key::Number(1))).unwrap();
    let size = Request { size_bytes: Some(1 << 32), ..Request::read(Key::Number(2)) };
    let error = builder.push(size).unwrap_err();
    assert_eq!(
        error.to_string(),
        "request 1 of the trace exceeds a limit: a value of 4294967296 bytes is above a trace's limit \
         of 4,294,967,295 bytes"
    );
    let longest = vec![b'x'; 65_535];
    let too_long = vec![b'x'; 65_536];
    let error = builder.push(Request::read(Key::Text(&too_long))).unwrap_err();
    assert!(matches!(error, TraceError::Limit { request: 1, limit: Limit::Key { bytes: 65_536 } }));
    builder.push(Request::read(Key::Text(&longest))).unwrap();
    let trace = builder.finish().unwrap();
    assert_eq!((trace.requests(), trace.keys(), trace.key_bytes(1)), (2, 2, 65_535));
}

#[test]
fn a_trace_of_several_blocks_is_the_same_from_files() {
    let build = |memory_bytes| {
        let options = BuildOptions { memory_bytes, next_use: true, sampling: None };
        let mut builder = TraceBuilder::new(options);
        for n in 0..200_000_u64 {
            // The sizes and operations begin late, when much is in files already.
            builder
                .push(Request {
                    size_bytes: (n > 100_000).then_some(n),
                    op: if n == 150_000 { Op::Write } else { Op::Read },
                    ..Request::read(Key::Number(n * n % 10_007))
                })
                .unwrap();
        }
        builder.finish().unwrap()
    };
    let (in_memory, spilled) = (build(64 << 20), build(100_000));
    assert!(in_memory.image() == spilled.image());
    let mut next = vec![u32::MAX; in_memory.keys() as usize];
    for (n, id) in in_memory.ids().iter().enumerate().rev() {
        let next = &mut next[id.get() as usize];
        assert_eq!(in_memory.next_use().unwrap()[n].get(), *next, "request {n}");
        *next = u32::try_from(n).unwrap();
    }
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let trace = Trace::from_image("small", small_image()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("absent/a.hpt");
    let error = trace.write_to(&path).unwrap_err();
    assert!(error.to_string().contains("absent/a.hpt: "), "{error}");
}
