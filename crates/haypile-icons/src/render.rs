//! Rendering of PNG and SVG files. Others, XPM among them, are not rendered.

use std::io::{Cursor, Read};
use std::path::Path;

use resvg::tiny_skia::{self, FilterQuality, IntSize, PixmapPaint, Transform};
use resvg::usvg;

use crate::error::IconError;
use crate::pixmap::Pixmap;
use crate::regular::open_regular;

/// The size of the largest picture file that is rendered, in bytes.
pub const MAX_FILE_BYTES: u64 = 4 << 20;

/// The longest side of a rendered icon, in pixels.
pub const MAX_SIDE_PX: u32 = 1024;

/// The largest side of a PNG that is read, in pixels.
const MAX_PNG_SIDE_PX: u32 = 4096;

/// Renders a PNG or SVG file as large as it fits into this width and height in pixels, centred.
///
/// # Errors
///
/// [`IconError`].
pub fn render_file(path: &Path, (width, height): (u32, u32)) -> Result<Pixmap, IconError> {
    for side_px in [width, height] {
        if !(1..=MAX_SIDE_PX).contains(&side_px) {
            return Err(IconError::Size { side_px });
        }
    }
    let bytes = read(path)?;
    let canvas = if bytes.starts_with(b"\x89PNG") {
        of_png(&decode_png(path, &bytes)?, width, height)
    } else {
        of_svg(path, &bytes, width, height)?
    };
    let pixmap = canvas.and_then(|canvas| Pixmap::new(width, height, canvas.take()));
    pixmap.ok_or_else(|| IconError::broken(path, &"it has no pixels"))
}

/// Decodes the bytes of a PNG file as a picture, in its own size.
pub(crate) fn of_png_bytes(bytes: &[u8]) -> Result<Pixmap, IconError> {
    let path = Path::new("PNG");
    let picture = decode_png(path, bytes)?;
    let (width, height) = (picture.width(), picture.height());
    let pixmap = Pixmap::new(width, height, picture.take());
    pixmap.ok_or_else(|| IconError::broken(path, &"it has no pixels"))
}

fn read(path: &Path) -> Result<Vec<u8>, IconError> {
    let failed = |error| IconError::io(path, error);
    let Some(file) = open_regular(path).map_err(failed)? else {
        return Err(IconError::broken(path, &"it is not a regular file"));
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(IconError::TooLarge { path: path.into() });
    }
    Ok(bytes)
}

fn of_svg(
    path: &Path,
    bytes: &[u8],
    width: u32,
    height: u32,
) -> Result<Option<tiny_skia::Pixmap>, IconError> {
    // Without a folder for resources, and with a resolver that loads none: an icon reads no other file.
    let mut options = usvg::Options { resources_dir: None, ..usvg::Options::default() };
    options.image_href_resolver.resolve_string = Box::new(|_, _| None);
    let tree = usvg::Tree::from_data(bytes, &options)
        .map_err(|error| IconError::broken(path, &format!("it is not a PNG or an SVG: {error}")))?;
    let Some(mut canvas) = tiny_skia::Pixmap::new(width, height) else { return Ok(None) };
    let (own_width, own_height) = (tree.size().width(), tree.size().height());
    let transform = fitting((own_width, own_height), (width, height));
    resvg::render(&tree, transform, &mut canvas.as_mut());
    Ok(Some(canvas))
}

fn of_png(picture: &tiny_skia::Pixmap, width: u32, height: u32) -> Option<tiny_skia::Pixmap> {
    if (picture.width(), picture.height()) == (width, height) {
        return Some(picture.clone());
    }
    let mut canvas = tiny_skia::Pixmap::new(width, height)?;
    let size = (picture.width() as f32, picture.height() as f32);
    let paint = PixmapPaint { quality: FilterQuality::Bicubic, ..PixmapPaint::default() };
    let transform = fitting(size, (width, height));
    canvas.draw_pixmap(0, 0, picture.as_ref(), &paint, transform, None);
    Some(canvas)
}

/// Scales a picture so that it fits, in the middle.
fn fitting((own_width, own_height): (f32, f32), (width, height): (u32, u32)) -> Transform {
    let (width, height) = (width as f32, height as f32);
    let scale = (width / own_width).min(height / own_height);
    let (x, y) = ((width - own_width * scale) / 2.0, (height - own_height * scale) / 2.0);
    Transform::from_scale(scale, scale).post_translate(x, y)
}

fn decode_png(path: &Path, bytes: &[u8]) -> Result<tiny_skia::Pixmap, IconError> {
    let broken = |error: png::DecodingError| IconError::broken(path, &error);
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(
        png::Transformations::normalize_to_color8() | png::Transformations::ALPHA,
    );
    let mut reader = decoder.read_info().map_err(broken)?;
    let (width, height) = (reader.info().width, reader.info().height);
    if width.max(height) > MAX_PNG_SIDE_PX {
        let wrong = format!("{width} by {height} pixels; at most {MAX_PNG_SIDE_PX} are read");
        return Err(IconError::broken(path, &wrong));
    }
    let no_size = || IconError::broken(path, &"it has no pixels");
    let mut pixels = vec![0; reader.output_buffer_size().ok_or_else(no_size)?];
    let frame = reader.next_frame(&mut pixels).map_err(broken)?;
    pixels.truncate(frame.buffer_size());
    let mut rgba = match frame.color_type {
        png::ColorType::Rgba => pixels,
        png::ColorType::GrayscaleAlpha => {
            pixels.chunks_exact(2).flat_map(|it| [it[0], it[0], it[0], it[1]]).collect()
        }
        other => return Err(IconError::broken(path, &format!("colours of kind {other:?}"))),
    };
    for pixel in rgba.chunks_exact_mut(4) {
        let alpha = u16::from(pixel[3]);
        for colour in &mut pixel[..3] {
            let multiplied = (u16::from(*colour) * alpha + 127) / 255;
            *colour = u8::try_from(multiplied).unwrap_or(u8::MAX);
        }
    }
    let size = IntSize::from_wh(width, height).ok_or_else(no_size)?;
    tiny_skia::Pixmap::from_vec(rgba, size).ok_or_else(no_size)
}
