//! The stored form of values; the [module](super) describes it.

use xxhash_rust::xxh3::xxh3_64;

use super::codec::{Codec, Method, Undecompressed};
use super::spec::Compression;

/// The first bytes of every value that is not stored unchanged.
const MARKER: [u8; 4] = [0xF9, b'h', b'p', 0xF9];

/// The largest number of bytes by which a stored value is longer than the value itself: a value
/// that begins like a compressed one is stored after a marker.
pub(super) const WRAP_BYTES: usize = MARKER.len() + 1;

const STORED: u8 = 0;

const CHECKSUM_BYTES: usize = 4;

/// The error of a failed memory allocation; contains the number of bytes that were requested.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoMemory(pub(super) usize);

/// The reason why the stored bytes of a value cannot be decoded: they are damaged, there is no
/// memory for the value, or this build lacks the compression method.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Undecoded {
    Corrupt,
    NoMemory(NoMemory),
    /// This build lacks the feature of this method.
    #[cfg(not(all(feature = "lz4", feature = "zstd")))]
    Absent(Method),
}

impl From<NoMemory> for Undecoded {
    fn from(error: NoMemory) -> Self {
        Self::NoMemory(error)
    }
}

impl From<Undecompressed> for Undecoded {
    fn from(error: Undecompressed) -> Self {
        match error {
            Undecompressed::Corrupt => Self::Corrupt,
            #[cfg(not(all(feature = "lz4", feature = "zstd")))]
            Undecompressed::Absent(method) => Self::Absent(method),
        }
    }
}

/// Whether stored bytes begin with the marker of an encoded value; other bytes are the value
/// itself.
pub(super) fn is_marked(stored: &[u8]) -> bool {
    stored.starts_with(&MARKER)
}

/// Returns the bytes to store for `value`, compressed if that saves enough and built in the buffer
/// `room`; `None` if the value is stored unchanged.
pub(super) fn encode<'a>(
    value: &[u8],
    compression: Compression,
    min_bytes: u64,
    codec: &mut Codec,
    room: &'a mut Vec<u8>,
) -> Result<Option<&'a [u8]>, NoMemory> {
    if value.len() as u64 >= min_bytes && compress(value, compression, codec, room) {
        return Ok(Some(room));
    }
    wrap(value, room)
}

/// Returns the bytes to store for `value` without compression: a marker is put before a value that
/// itself begins with the marker. Returns `None` if the value is stored unchanged.
pub(super) fn wrap<'a>(value: &[u8], room: &'a mut Vec<u8>) -> Result<Option<&'a [u8]>, NoMemory> {
    if !is_marked(value) {
        return Ok(None);
    }
    room.clear();
    reserve(room, WRAP_BYTES.saturating_add(value.len()))?;
    room.extend_from_slice(&MARKER);
    room.push(STORED);
    room.extend_from_slice(value);
    Ok(Some(room))
}

/// Compresses `value` into `room`; returns whether the result is at least an eighth shorter.
fn compress(value: &[u8], compression: Compression, codec: &mut Codec, room: &mut Vec<u8>) -> bool {
    room.clear();
    room.extend_from_slice(&MARKER);
    room.push(compression.method().number());
    put_length(value.len() as u64, room);
    room.extend_from_slice(&checksum(value));
    let max_bytes = value.len() - value.len() / 8;
    let Some(max_bytes) = max_bytes.checked_sub(room.len()) else { return false };
    codec.compress(compression, value, max_bytes, room)
}

/// Replaces the stored bytes in `value` by the value that they encode (compressed, or after a
/// marker), like [`decode`]; `room` is a buffer.
pub(super) fn decode_in_place(
    value: &mut Vec<u8>,
    limit_bytes: u64,
    codec: &mut Codec,
    room: &mut Vec<u8>,
) -> Result<(), Undecoded> {
    // Copied instead of swapped, so that each buffer keeps the size that its owner needs.
    room.clear();
    reserve(room, value.len())?;
    room.extend_from_slice(value);
    decode(room, limit_bytes, codec, value)
}

/// Decodes a value from `stored`, its stored bytes, which [begin with the marker](is_marked), into
/// `value`.
pub(super) fn decode(
    stored: &[u8],
    limit_bytes: u64,
    codec: &mut Codec,
    value: &mut Vec<u8>,
) -> Result<(), Undecoded> {
    value.clear();
    let rest = stored.strip_prefix(&MARKER).ok_or(Undecoded::Corrupt)?;
    let (method, rest) = rest.split_first().ok_or(Undecoded::Corrupt)?;
    if *method == STORED {
        reserve(value, rest.len())?;
        value.extend_from_slice(rest);
        return Ok(());
    }
    let method = Method::of_number(*method).ok_or(Undecoded::Corrupt)?;
    let (length, rest) = take_length(rest).ok_or(Undecoded::Corrupt)?;
    let (sum, data) = rest.split_at_checked(CHECKSUM_BYTES).ok_or(Undecoded::Corrupt)?;
    if length > limit_bytes.min(method.bound_bytes(data.len())) {
        return Err(Undecoded::Corrupt);
    }
    let length = usize::try_from(length).map_err(|_| Undecoded::Corrupt)?;
    reserve(value, length)?;
    value.resize(length, 0);
    let decompressed = codec.decompress(method, data, value).map_err(Undecoded::from);
    let decoded = decompressed
        .and_then(|()| if checksum(value) == sum { Ok(()) } else { Err(Undecoded::Corrupt) });
    if decoded.is_err() {
        value.clear();
    }
    decoded
}

pub(super) fn reserve(empty: &mut Vec<u8>, bytes: usize) -> Result<(), NoMemory> {
    empty.try_reserve_exact(bytes).map_err(|_| NoMemory(bytes))
}

fn checksum(value: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let [a, b, c, d, ..] = xxh3_64(value).to_le_bytes();
    [a, b, c, d]
}

/// Appends a length as LEB128: seven bits per byte, the lowest first; the high bit announces
/// another byte.
fn put_length(mut length: u64, out: &mut Vec<u8>) {
    while length >= 0x80 {
        out.push(0x80 | length.to_le_bytes()[0]);
        length >>= 7;
    }
    out.push(length.to_le_bytes()[0]);
}

/// Splits off the length at the start of `bytes`.
fn take_length(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut length = 0_u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7F);
        let shift = 7 * u32::try_from(at).expect("at most nine bytes precede");
        if bits << shift >> shift != bits {
            return None;
        }
        length |= bits << shift;
        if byte & 0x80 == 0 {
            return Some((length, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stored(value: &[u8], compression: Compression) -> Option<Vec<u8>> {
        let mut room = b"left from before".to_vec();
        Codec::with(|codec| {
            encode(value, compression, 64, codec, &mut room).unwrap().map(<[u8]>::to_vec)
        })
    }

    fn read(stored: &[u8], limit_bytes: u64) -> Result<Vec<u8>, Undecoded> {
        let mut value = b"left from before".to_vec();
        let result = Codec::with(|codec| decode(stored, limit_bytes, codec, &mut value));
        if result.is_err() {
            assert_eq!(value, b"");
        }
        result.map(|()| value)
    }

    fn compressions() -> impl Strategy<Value = Compression> {
        prop_oneof![Just(Compression::Lz4), (1..6).prop_map(|level| Compression::Zstd { level }),]
    }

    #[test]
    fn lengths_of_every_size_come_back() {
        for length in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put_length(length, &mut bytes);
            bytes.push(7);
            assert_eq!(take_length(&bytes), Some((length, &[7][..])));
            for end in 0..bytes.len() - 1 {
                assert_eq!(take_length(&bytes[..end]), None);
            }
        }
        assert_eq!(take_length(&[0xFF; 10]), None);
        assert_eq!(take_length(&[0x80; 11]), None);
    }

    #[test]
    fn what_does_not_help_is_stored_as_it_is() {
        let random: Vec<u8> =
            (0..4_096_u64).map(|at| xxh3_64(&at.to_le_bytes()).to_le_bytes()[0]).collect();
        for compression in [Compression::Lz4, Compression::Zstd { level: 3 }] {
            assert_eq!(stored(&random, compression), None);
            assert_eq!(stored(&[b'a'; 63], compression), None);
            for bytes in [64, 65_534, 65_535, 65_536, 3 << 20] {
                let value = vec![b'a'; bytes];
                let form = stored(&value, compression).unwrap();
                assert!(form.len() <= bytes - bytes / 8);
                assert_eq!(read(&form, bytes as u64).unwrap(), value);
            }
        }
    }

    #[test]
    fn a_value_that_starts_with_the_marker_is_wrapped() {
        for value in [&MARKER[..], b"\xF9hp\xF9\x01\x05garbage"] {
            let form = stored(value, Compression::Lz4).unwrap();
            assert_eq!(form.len(), WRAP_BYTES + value.len());
            assert_eq!(read(&form, 0).unwrap(), value);
        }
    }

    #[test]
    fn a_hostile_length_allocates_nothing() {
        let [lz4, zstd] = [Method::Lz4, Method::Zstd].map(Method::number);
        for (method, length) in [(lz4, 1 << 40), (zstd, 1 << 40), (lz4, u64::MAX), (zstd, 1 << 18)]
        {
            let mut form = [&MARKER[..], &[method]].concat();
            put_length(length, &mut form);
            form.extend_from_slice(&[0; 7]);
            let mut value = Vec::new();
            let result = Codec::with(|codec| decode(&form, u64::MAX, codec, &mut value));
            assert_eq!((result, value.capacity()), (Err(Undecoded::Corrupt), 0));
        }
        let form = stored(&[b'a'; 1_000], Compression::Lz4).unwrap();
        assert_eq!(read(&form, 999), Err(Undecoded::Corrupt));
    }

    proptest! {
            #[test]
            fn damage_is_noticed(
                pieces in prop::collection::vec((any::<u8>(), 20..60_usize), 5..20),
                compression in compressions(),
                at in any::<prop::sample::Index>(),
                to in any::<u8>(),
            ) {
                let value: Vec<u8> =
                    pieces.into_iter().flat_map(|(byte, count)| vec![byte; count]).collect();
                let form = stored(&value, compression).unwrap();
                prop_assert_eq!(read(&form, u64::MAX).unwrap(), value.clone());
                let cut = MARKER.len() + at.index(form.len() - MARKER.len());
                prop_assert_eq!(read(&form[..cut], u64::MAX), Err(Undecoded::Corrupt));
                let mut changed = form.clone();
                changed[cut] = to;
                match read(&changed, u64::MAX) {
    // Some bytes of a frame carry no information.
                    Ok(read) => prop_assert!(read == value || changed[4] == STORED),
                    Err(error) => prop_assert_eq!(error, Undecoded::Corrupt),
                }
            }

            #[test]
            fn garbage_is_no_value_or_wrapped(rest in prop::collection::vec(any::<u8>(), 0..60)) {
                let form = [&MARKER[..], &rest].concat();
                if let Ok(value) = read(&form, u64::MAX) {
                    prop_assert_eq!(rest[0], STORED);
                    prop_assert_eq!(value, &rest[1..]);
                }
            }
        }
}
