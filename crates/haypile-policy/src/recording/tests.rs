//! Records survive writing and reading, and damage is detected.

use proptest::prelude::*;

use super::*;

type Operation = (Kind, bool, Vec<u8>, Option<u64>, Option<u64>, u64);

fn operation() -> impl Strategy<Value = Operation> {
    let key = prop_oneof![
        4 => (0_u8..8).prop_map(|number| vec![b'k', number]),
        2 => proptest::collection::vec(any::<u8>(), 0..80),
        1 => (0_usize..3).prop_map(|more| vec![7; 65_535 - more]),
    ];
    let number = || proptest::option::of(prop_oneof![0_u64..1000, any::<u64>()]);
    let kind = proptest::sample::select(&Kind::ALL[..]);
    (kind, any::<bool>(), key, number(), number(), prop_oneof![0_u64..300, 0..1_u64 << 40])
}

fn block(operations: &[Operation], hashed: bool) -> (Vec<u8>, BlockHeader) {
    let mut payload = Payload::new(hashed);
    let mut now_ns = 1_000;
    for (kind, effect, key, size_bytes, ttl_us, delta) in operations {
        if payload.is_full() {
            break;
        }
        now_ns += delta;
        let (size_bytes, ttl_us) = (*size_bytes, *ttl_us);
        payload
            .push(now_ns, &RecordedEntry { kind: *kind, effect: *effect, key, size_bytes, ttl_us });
    }
    let mut bytes = Vec::new();
    let header = payload.take(&mut bytes, 3, 400);
    let head = header.to_bytes(&bytes[BLOCK_HEADER_BYTES..]);
    bytes[..BLOCK_HEADER_BYTES].copy_from_slice(&head);
    (bytes, header)
}

fn head(bytes: &[u8]) -> &[u8; BLOCK_HEADER_BYTES] {
    bytes.first_chunk().unwrap()
}

proptest! {
    #[test]
    fn a_block_is_read_as_it_was_written(
        operations in proptest::collection::vec(operation(), 1..60),
        hashed in any::<bool>(),
    ) {
        let (bytes, header) = block(&operations, hashed);
        let payload = &bytes[BLOCK_HEADER_BYTES..];
        prop_assert_eq!(BlockHeader::from_bytes(head(&bytes)), Ok(header));
        prop_assert!(BlockHeader::is_sound(head(&bytes), payload));
        let Block::Records { records, .. } = header.block else { panic!("no records") };
        let is_full = payload.len() >= FULL_PAYLOAD_BYTES;
        prop_assert!(is_full || records as usize == operations.len());
        prop_assert!(payload.len() <= MAX_PAYLOAD_BYTES);
        let mut reader = RecordReader::new(records, header.first_ns, hashed);
        let mut time_ns = 600;
        for (kind, effect, key, size_bytes, ttl_us, delta) in
            &operations[..records as usize]
        {
            time_ns += delta;
            let record = reader.next(payload).unwrap().unwrap();
            prop_assert_eq!((record.kind, record.effect), (*kind, *effect));
            prop_assert_eq!((record.size_bytes, record.ttl_us), (*size_bytes, *ttl_us));
            prop_assert_eq!(record.time_ns, time_ns);
            prop_assert_eq!(record.key_bytes, key.len());
            let written = if hashed { hash_key(key).to_vec() } else { key.clone() };
            prop_assert_eq!(&payload[record.key], &written[..]);
        }
        prop_assert_eq!(reader.next(payload), Ok(None));
    }

    #[test]
    fn any_changed_byte_is_found(
        operations in proptest::collection::vec(operation(), 1..10),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let (mut bytes, _) = block(&operations, false);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let is_sound = BlockHeader::is_sound(head(&bytes), &bytes[BLOCK_HEADER_BYTES..]);
        prop_assert!(!is_sound);
    }

    #[test]
    fn no_payload_is_a_panic(
        payload in proptest::collection::vec(any::<u8>(), 0..200),
        records in 0..100_u32,
        hashed in any::<bool>(),
    ) {
        let mut reader = RecordReader::new(records, u64::MAX - 5, hashed);
        while let Ok(Some(record)) = reader.next(&payload) {
            prop_assert!(record.key.end <= payload.len());
        }
    }

    #[test]
    fn integers_of_any_size_are_read_as_they_were_written(value in any::<u64>(), shift in 0..64) {
        let value = value >> shift;
        let mut bytes = [0; varint::MAX_BYTES];
        let end = varint::put(&mut bytes, 0, value);
        prop_assert_eq!(varint::get(&bytes, 0), Some((value, end)));
        prop_assert_eq!(varint::get(&bytes[..end - 1], 0), None);
    }
}

#[test]
fn integers_longer_than_64_bits_are_refused() {
    assert_eq!(varint::get(&[0xff; 10], 0), None);
    assert_eq!(varint::get(&[0x80; 11], 0), None);
    assert_eq!(varint::get(&[], 0), None);
    assert_eq!(varint::get(&[1], 2), None);
}

#[test]
fn a_key_that_begins_another_is_not_the_same() {
    let operations = |key: &[u8]| (Kind::Miss, true, key.to_vec(), None, None, 1);
    // Keys of one byte occupy at most 256 places; the prefix rule concerns each of them.
    let (bytes, header) = block(&[operations(b"abc"), operations(b"ab"), operations(b"")], false);
    let payload = &bytes[BLOCK_HEADER_BYTES..];
    let mut reader = RecordReader::new(3, header.first_ns, false);
    for key in [&b"abc"[..], b"ab", b""] {
        let record = reader.next(payload).unwrap().unwrap();
        assert_eq!(&payload[record.key], key);
    }
}

#[test]
fn a_repeated_key_is_written_once() {
    let hit = |key: &[u8]| (Kind::Hit, true, key.to_vec(), Some(160), None, 100);
    let (bytes, _) = block(&[hit(&[b'x'; 36]), hit(&[b'x'; 36])], false);
    // First byte, time, size of two bytes, length, key; then the same with a key number.
    assert_eq!(bytes.len(), BLOCK_HEADER_BYTES + (1 + 1 + 2 + 1 + 36) + (1 + 1 + 2 + 1));
}

#[test]
fn headers_of_files_are_checked() {
    let header = FileHeader { origin_unix_ns: 1 << 60, process: 4711, hashed_keys: true };
    let bytes = header.to_bytes();
    assert_eq!(FileHeader::from_bytes(&bytes), Ok(header));
    let changed = |at: usize| {
        let mut bytes = bytes;
        bytes[at] ^= 2;
        FileHeader::from_bytes(&bytes).unwrap_err()
    };
    assert_eq!(changed(0), HeaderError::NotARecording);
    assert_eq!(changed(12), HeaderError::NotARecording);
    assert_eq!(changed(8), HeaderError::Version { major: 3, minor: 0 });
    assert_eq!(changed(20), HeaderError::Checksum);
    assert_eq!(changed(40), HeaderError::Checksum);
    assert_eq!(changed(63), HeaderError::Checksum);
}

#[test]
fn ends_are_blocks_without_a_payload() {
    for end in [End::Closed, End::Full] {
        let header = BlockHeader { block: Block::End(end), first_ns: 0, floor_ns: 9 };
        let bytes = header.to_bytes(&[]);
        assert_eq!(BlockHeader::from_bytes(&bytes), Ok(header));
        assert!(BlockHeader::is_sound(&bytes, &[]));
    }
    let mut other = [0; BLOCK_HEADER_BYTES];
    other[..4].copy_from_slice(&END_MARK);
    assert_eq!(BlockHeader::from_bytes(&other), Err(Damaged));
}
