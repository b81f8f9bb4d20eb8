//! GIF files of one pixel and any size in bytes.
//!
//! Decoders skip what comes after the trailer (`GIF89a`, section 27).

use super::filler::Filler;

/// A black GIF image of one pixel, with a table of two colors.
pub(super) const PIXEL: [u8; 35] = *b"GIF89a\
    \x01\0\x01\0\x80\0\0\
    \0\0\0\xFF\xFF\xFF\
    \x2C\0\0\0\0\x01\0\x01\0\0\
    \x02\x02\x44\x01\0\
    \x3B";

/// Generates a GIF file of `bytes` bytes: a one-pixel image with random filler behind it, or only
/// the beginning of that image.
pub(super) fn file(bytes: usize, filler: &mut Filler) -> Vec<u8> {
    let mut file = PIXEL[..bytes.min(PIXEL.len())].to_vec();
    file.extend(filler.binary(bytes - file.len()));
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_image_or_the_beginning_of_it() {
        for bytes in [0, 1, 34, 35, 36, 500] {
            let file = file(bytes, &mut Filler::new(1));
            assert_eq!(file.len(), bytes);
            let shared = bytes.min(PIXEL.len());
            assert_eq!(file[..shared], PIXEL[..shared]);
        }
        assert_eq!(PIXEL.last(), Some(&b';'));
    }
}
