//! PNG files of one pixel and any size in bytes.
//!
//! A private ancillary chunk, which decoders skip, fills the file up (PNG, third edition, sections
//! 5.3 and 5.4).

use super::filler::Filler;

/// The size of the smallest PNG file in bytes: signature, header, pixel, an empty chunk and the
/// end.
pub(super) const MIN_BYTES: usize =
    SIGNATURE.len() + 25 + CHUNK_BYTES + PIXEL.len() + CHUNK_BYTES * 2;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Length, type and check of a chunk.
const CHUNK_BYTES: usize = 12;

/// One pixel by one pixel, eight bits of grey.
const HEADER: [u8; 13] = [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0];

/// The pixel, black, as a zlib stream: one stored block of a filter type and a sample, 0 and 0.
const PIXEL: [u8; 13] = [0x78, 0x01, 1, 2, 0, 0xFD, 0xFF, 0, 0, 0, 2, 0, 1];

/// Ancillary, private, and safe to copy.
const FILLER_TYPE: [u8; 4] = *b"hpDt";

/// Generates a valid PNG file of `bytes` bytes, at least [`MIN_BYTES`], of a one-pixel image and
/// random filler.
pub(super) fn file(bytes: usize, filler: &mut Filler) -> Vec<u8> {
    let mut file = Vec::with_capacity(bytes);
    file.extend(SIGNATURE);
    chunk(&mut file, *b"IHDR", &HEADER);
    chunk(&mut file, FILLER_TYPE, &filler.binary(bytes.saturating_sub(MIN_BYTES)));
    chunk(&mut file, *b"IDAT", &PIXEL);
    chunk(&mut file, *b"IEND", &[]);
    file
}

fn chunk(file: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).expect("bodies are smaller than 4 GiB");
    file.extend(length.to_be_bytes());
    let checked_from = file.len();
    file.extend(kind);
    file.extend(data);
    let check = crc32fast::hash(&file[checked_from..]);
    file.extend(check.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_file_has_the_published_checks() {
        let file = file(MIN_BYTES, &mut Filler::new(1));
        assert_eq!(file.len(), MIN_BYTES);
        // IEND has the same four bytes in every PNG file.
        assert!(file.ends_with(&[b'I', b'E', b'N', b'D', 0xAE, 0x42, 0x60, 0x82]));
        // Python: zlib.crc32(b'IHDR' + bytes([0,0,0,1,0,0,0,1,8,0,0,0,0])).
        assert_eq!(file[29..33], 0x3A7E_9B55_u32.to_be_bytes());
    }

    #[test]
    fn chunks_follow_each_other_to_the_end() {
        let file = file(5000, &mut Filler::new(1));
        let (mut at, mut kinds) = (SIGNATURE.len(), Vec::new());
        while at < file.len() {
            let length = u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
            let end = at + 8 + length;
            kinds.push(String::from_utf8(file[at + 4..at + 8].to_vec()).unwrap());
            let check = crc32fast::hash(&file[at + 4..end]).to_be_bytes();
            assert_eq!(file[end..end + 4], check);
            at = end + 4;
        }
        assert_eq!(at, 5000);
        assert_eq!(kinds, ["IHDR", "hpDt", "IDAT", "IEND"]);
    }
}
