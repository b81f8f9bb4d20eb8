//! Pictures as they are drawn.

use std::fmt;
use std::sync::Arc;

use haypile::{OwnedPinned, Version};

use crate::stamp::{STAMP_BYTES, Stamp};

/// Begins a stored pixmap; the digits are the version of the format.
const MAGIC: [u8; 8] = *b"hpxmap01";
/// Magic, width, height, length of the path, stamp, day.
const HEAD_BYTES: usize = 8 + 4 + 4 + 4 + STAMP_BYTES + 4;

/// A picture in memory: rows from top to bottom, pixels from left to right, four bytes each: red, green, blue, alpha,
/// the colours multiplied by alpha.
#[derive(Clone)]
pub struct Pixmap {
    width: u32,
    height: u32,
    bytes: PixmapBytes,
}

/// The bytes of a picture.
#[derive(Clone)]
enum PixmapBytes {
    /// The bytes in memory of this process.
    Own(Arc<Vec<u8>>),
    /// The bytes in the cache's file, which other processes have in memory as well, and the place
    /// where the pixels begin.
    Cached(Arc<OwnedPinned>, usize),
}

impl Pixmap {
    /// Returns a picture with these pixels; `None` if their number is 0 or not width times height.
    pub fn new(width: u32, height: u32, rgba: Vec<u8>) -> Option<Self> {
        let bytes = bytes_of(width, height)?;
        (rgba.len() == bytes).then(|| Self {
            width,
            height,
            bytes: PixmapBytes::Own(Arc::new(rgba)),
        })
    }

    /// Returns the width of the picture in pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the height of the picture in pixels.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Returns the bytes of all pixels of the picture, four for each pixel.
    pub fn pixels(&self) -> &[u8] {
        match &self.bytes {
            PixmapBytes::Own(bytes) => bytes,
            PixmapBytes::Cached(pinned, from) => &pinned[*from..],
        }
    }

    /// Returns the picture as a PNG file, whose colours are not multiplied by alpha.
    ///
    /// # Errors
    ///
    /// The library fails.
    pub fn to_png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut pixels = self.pixels().to_vec();
        for pixel in pixels.chunks_exact_mut(4) {
            let alpha = u16::from(pixel[3]).max(1);
            for colour in &mut pixel[..3] {
                let divided = (u16::from(*colour) * 255 + alpha / 2) / alpha;
                *colour = u8::try_from(divided).unwrap_or(u8::MAX);
            }
        }
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width, self.height);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&pixels)?;
        writer.finish()?;
        Ok(file)
    }

    /// Decodes the bytes of a PNG file as a picture.
    ///
    /// # Errors
    ///
    /// They are not a PNG, or one that is too large.
    pub fn from_png(bytes: &[u8]) -> Result<Self, crate::IconError> {
        crate::render::of_png_bytes(bytes)
    }

    /// Encodes the picture as a value for a cache, with the path of its source file, that file's stamp, and the day on
    /// which it was stored again next to others, or 0.
    pub(crate) fn encode(&self, path: &[u8], stamp: Stamp, day: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + path.len() + self.pixels().len());
        bytes.extend(MAGIC);
        bytes.extend(self.width.to_le_bytes());
        bytes.extend(self.height.to_le_bytes());
        bytes.extend(u32::try_from(path.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend(stamp.to_bytes());
        bytes.extend(day.to_le_bytes());
        bytes.extend(path);
        bytes.extend(self.pixels());
        bytes
    }

    /// Decodes a value from the cache as a picture, if it was made from the file of this path; returns `None`
    /// otherwise.
    pub(crate) fn decode(value: OwnedPinned, path: &[u8]) -> Option<StoredPixmap> {
        let Head { width, height, path_bytes, stamp, day } = Head::of(&value)?;
        let from = HEAD_BYTES.checked_add(path_bytes)?;
        if value.get(HEAD_BYTES..from)? != path {
            return None;
        }
        let (bytes, version, is_out_of_pins) =
            (value.len(), value.hit().version, value.is_out_of_pins());
        let pixmap = Self::in_place(width, height, Arc::new(value), from)?;
        Some(StoredPixmap { pixmap, stamp, day, bytes, version, is_out_of_pins })
    }

    /// Returns a picture whose pixels stay in place in a value of the cache, from an offset to its end.
    pub(crate) fn in_place(
        width: u32,
        height: u32,
        value: Arc<OwnedPinned>,
        from: usize,
    ) -> Option<Self> {
        let is_whole = value.len().checked_sub(from)? == bytes_of(width, height)?;
        is_whole.then(|| Self { width, height, bytes: PixmapBytes::Cached(value, from) })
    }
}

/// A picture as it was found in a cache, with its source file's stamp, the length of its value, and the way in which it
/// is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredPixmap {
    pub(crate) pixmap: Pixmap,
    /// The stamp (identity, length and times) of the picture's source file when the picture was drawn, by which a later
    /// change of the file is noticed.
    pub(crate) stamp: Stamp,
    /// The day, counted from 1970, on which the picture was stored again next to others of its program; 0 if it was not.
    pub(crate) day: u32,
    /// The length in bytes of the cache's value with the picture.
    pub(crate) bytes: usize,
    pub(crate) version: Option<Version>,
    /// Whether the value was copied instead of read in place, because no further segment of the file could be locked;
    /// see [`OwnedPinned::is_out_of_pins`].
    pub(crate) is_out_of_pins: bool,
}

/// The beginning of a stored pixmap.
struct Head {
    width: u32,
    height: u32,
    path_bytes: usize,
    stamp: Stamp,
    day: u32,
}

impl Head {
    fn of(value: &[u8]) -> Option<Self> {
        let rest = value.strip_prefix(&MAGIC)?;
        let number = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        let stamp = rest.get(12..12 + STAMP_BYTES)?.try_into().ok()?;
        Some(Self {
            width: number(0)?,
            height: number(4)?,
            path_bytes: usize::try_from(number(8)?).ok()?,
            stamp: Stamp::from_bytes(stamp),
            day: number(12 + STAMP_BYTES)?,
        })
    }
}

fn bytes_of(width: u32, height: u32) -> Option<usize> {
    let pixels = usize::try_from(width).ok()?.checked_mul(usize::try_from(height).ok()?)?;
    pixels.checked_mul(4).filter(|bytes| *bytes > 0)
}

impl PartialEq for Pixmap {
    fn eq(&self, other: &Self) -> bool {
        (self.width, self.height) == (other.width, other.height) && self.pixels() == other.pixels()
    }
}

impl Eq for Pixmap {}

impl fmt::Debug for Pixmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_cached = matches!(self.bytes, PixmapBytes::Cached(..));
        f.debug_struct("Pixmap")
            .field("width", &self.width)
            .field("height", &self.height)
            .field("cached", &is_cached)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use haypile::Cache;
    use proptest::prelude::*;

    use super::*;

    fn stored(value: &[u8]) -> OwnedPinned {
        let cache = Cache::open("memory:size=1MiB").unwrap();
        cache.set("key", value).unwrap();
        cache.get_pinned_owned("key").unwrap().unwrap()
    }

    #[test]
    fn a_stored_pixmap_comes_back_for_its_path_only() {
        let pixmap = Pixmap::new(2, 3, (0..24).collect()).unwrap();
        let stamp = Stamp::of(std::path::Path::new("/")).unwrap().0;
        let bytes = pixmap.encode(b"/a/b", stamp, 20_000);
        let back = Pixmap::decode(stored(&bytes), b"/a/b").unwrap();
        assert_eq!((&back.pixmap, back.stamp, back.day), (&pixmap, stamp, 20_000));
        assert_eq!((back.bytes, back.is_out_of_pins), (bytes.len(), false));
        assert!(Pixmap::decode(stored(&bytes), b"/a/c").is_none());
        assert!(Pixmap::decode(stored(&bytes), b"/a").is_none());
        for cut in 0..bytes.len() {
            assert!(Pixmap::decode(stored(&bytes[..cut]), b"/a/b").is_none(), "{cut}");
        }
        assert!(Pixmap::new(2, 3, vec![0; 23]).is_none() && Pixmap::new(0, 3, vec![]).is_none());
        assert!(Pixmap::new(u32::MAX, u32::MAX, vec![]).is_none());
    }

    proptest! {
        #[test]
        fn damaged_values_are_no_pixmaps_or_whole_ones(
            at in 0_usize..100, flip in 1_u8.., tail in proptest::collection::vec(any::<u8>(), 0..9)
        ) {
            let pixmap = Pixmap::new(2, 3, (0..24).collect()).unwrap();
            let mut bytes = pixmap.encode(b"/a/b", Stamp::default(), 0);
            bytes.extend(tail);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= flip;
            }
            if let Some(back) = Pixmap::decode(stored(&bytes), b"/a/b") {
                let back = back.pixmap;
                let pixels = back.pixels().len();
                prop_assert_eq!(pixels, (back.width() * back.height() * 4) as usize);
            }
        }
    }
}
