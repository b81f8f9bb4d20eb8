//! The time at which buffers are written, and the thread that writes them.

use std::fs;
use std::time::Duration;

use super::*;
use crate::clock::ManualClock;
use haypile_policy::recording::{
    BLOCK_HEADER_BYTES, Block, BlockHeader, HEADER_BYTES, Kind, RecordReader,
};

struct Fixture {
    clock: Arc<ManualClock>,
    recorder: Recorder,
    dir: tempfile::TempDir,
}

fn fixture(max_bytes: u64) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new());
    let options = RecordOptions::new(dir.path().join("a.rec")).max_bytes(max_bytes);
    let recorder = Recorder::create(options, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
    Fixture { clock, recorder, dir }
}

impl Fixture {
    fn miss(&self, key: &[u8]) {
        let entry =
            RecordedEntry { kind: Kind::Miss, effect: true, key, size_bytes: None, ttl_us: None };
        self.recorder.record(&entry);
    }

    /// Records an operation as if another thread had done it.
    fn miss_in(&self, stripe: usize, key: &[u8]) {
        let entry =
            RecordedEntry { kind: Kind::Miss, effect: true, key, size_bytes: None, ttl_us: None };
        self.recorder.stripes[stripe].0.lock().payload.push(self.clock.now_ns(), &entry);
    }

    fn own_stripe(&self) -> usize {
        thread_number() & (self.recorder.stripes.len() - 1)
    }
}

/// Returns the blocks of a file, and the first byte of each key in them.
fn blocks(path: &std::path::Path) -> Vec<(BlockHeader, Vec<u8>)> {
    let bytes = fs::read(path).unwrap();
    let mut rest = &bytes[HEADER_BYTES..];
    let mut blocks = Vec::new();
    while let Some(head) = rest.first_chunk::<BLOCK_HEADER_BYTES>() {
        let header = BlockHeader::from_bytes(head).unwrap();
        let payload = &rest[BLOCK_HEADER_BYTES..][..header.payload_bytes()];
        assert!(BlockHeader::is_sound(head, payload));
        let mut keys = Vec::new();
        if let Block::Records { records, .. } = header.block {
            let mut reader = RecordReader::new(records, header.first_ns, false);
            while let Some(record) = reader.next(payload).unwrap() {
                keys.push(payload[record.key.start]);
            }
        }
        blocks.push((header, keys));
        rest = &rest[BLOCK_HEADER_BYTES + payload.len()..];
    }
    assert!(rest.is_empty());
    blocks
}

#[test]
fn what_lies_long_is_written_by_whoever_records_next() {
    let fixture = fixture(1 << 20);
    let other = (fixture.own_stripe() + 1) % fixture.recorder.stripes.len();
    fixture.miss_in(other, b"a");
    fixture.clock.advance(Duration::from_nanos(FLUSH_NS - 1));
    fixture.miss(b"b");
    assert!(blocks(&fixture.recorder.path()).is_empty());
    fixture.clock.advance(Duration::from_nanos(1));
    fixture.miss(b"c");
    let mut written: Vec<u8> =
        blocks(&fixture.recorder.path()).into_iter().flat_map(|(_, keys)| keys).collect();
    written.sort_unstable();
    assert_eq!(written, b"abc");
}

#[test]
fn no_later_block_goes_below_the_floor_of_an_earlier_one() {
    let fixture = fixture(1 << 26);
    let own = fixture.own_stripe();
    let stripes = fixture.recorder.stripes.len();
    let long = |number: u8| vec![number; 60_000];
    for round in 0..400_usize {
        fixture.clock.advance(Duration::from_nanos(100));
        if round % 150 == 10 {
            fixture.miss_in((own + 1) % stripes, b"idle");
        }
        fixture.miss(&long(b'0' + u8::try_from(round % 10).unwrap()));
        if round % 7 == 0 {
            fixture.recorder.flush_stripe(&mut fixture.recorder.output.lock(), own);
        }
    }
    fixture.recorder.close();
    let blocks = blocks(&fixture.recorder.path());
    let mut floor_ns = 0;
    let mut oldest_behind = 0;
    for (at, (header, keys)) in blocks.iter().enumerate() {
        if !keys.is_empty() {
            assert!(header.first_ns >= floor_ns, "block {at}");
        }
        assert!(header.floor_ns >= floor_ns, "block {at}");
        floor_ns = header.floor_ns;
        // An idle buffer is written before too many blocks have passed.
        let passed = blocks[..at].iter().filter(|(other, _)| other.first_ns > header.first_ns);
        oldest_behind = oldest_behind.max(passed.count());
    }
    assert!(oldest_behind > 10, "the test needs an idle buffer: {oldest_behind}");
    assert!(oldest_behind <= MAX_BEHIND as usize, "{oldest_behind}");
}

#[test]
fn a_forked_process_writes_a_file_of_its_own_and_nothing_of_its_parent() {
    let fixture = fixture(1 << 20);
    fixture.miss(b"p");
    fixture.recorder.flush();
    fixture.miss(b"q");
    let of_parent = fixture.recorder.path();
    let before = fs::read(&of_parent).unwrap();
    fixture.recorder.output.lock().file.pretend_to_be_of_the_parent();
    for _ in 0..OPERATIONS_PER_CHECK {
        fixture.miss(b"l");
    }
    let own = fixture.recorder.path();
    assert_ne!(own, of_parent);
    assert!(own.starts_with(fixture.dir.path()));
    fixture.miss(b"c");
    fixture.recorder.close();
    assert_eq!(fs::read(&of_parent).unwrap(), before);
    let keys: Vec<u8> = blocks(&own).into_iter().flat_map(|(_, keys)| keys).collect();
    assert!(!keys.contains(&b'p') && !keys.contains(&b'q'), "the parent's operations are its own");
    assert!(keys.ends_with(b"c"));
}

#[test]
fn a_forked_process_that_records_nothing_makes_no_file() {
    let fixture = fixture(1 << 20);
    fixture.miss(b"p");
    fixture.recorder.output.lock().file.pretend_to_be_of_the_parent();
    fixture.recorder.close();
    assert_eq!(fs::read_dir(fixture.dir.path()).unwrap().count(), 1);
    assert!(blocks(&fixture.recorder.path()).is_empty());
    assert_eq!(fixture.recorder.state(), RecordingState::Closed);
}

#[test]
fn a_full_recording_ends_and_says_so() {
    let fixture = fixture(1 << 20);
    for number in 0..200_u8 {
        fixture.miss(&vec![number; 20_000]);
    }
    assert_eq!(fixture.recorder.state(), RecordingState::Full);
    let blocks = blocks(&fixture.recorder.path());
    assert!(matches!(blocks.last().unwrap().0.block, Block::End(End::Full)));
    let bytes = fs::metadata(fixture.recorder.path()).unwrap().len();
    assert!(bytes <= 1 << 20 && bytes > 900_000, "{bytes}");
    fixture.recorder.flush();
    fixture.recorder.close();
    assert_eq!(fixture.recorder.state(), RecordingState::Full, "closing changes nothing");
}

#[cfg(unix)]
#[test]
fn a_directory_that_was_removed_ends_the_recording_alone() {
    let Fixture { clock, recorder, dir } = fixture(1 << 20);
    drop(dir);
    let entry =
        RecordedEntry { kind: Kind::Miss, effect: true, key: b"k", size_bytes: None, ttl_us: None };
    clock.advance(Duration::from_nanos(FLUSH_NS));
    recorder.record(&entry);
    let RecordingState::Failed { error } = recorder.state() else { panic!("still there") };
    assert!(error.contains("a.rec") && error.contains("removed"), "{error}");
    recorder.record(&entry);
}
