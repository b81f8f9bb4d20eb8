//! PNG images of our SVG documents.

mod document;
mod font;

use tiny_skia::{FillRule, LineJoin, Paint, Pixmap, Stroke, Transform};

use super::PlotError;
use document::{Document, Shape};

/// The narrowest image, in pixels: below it the text cannot be read.
pub const MIN_WIDTH_PX: u32 = 320;

/// The widest image, in pixels: that of an 8K screen.
pub const MAX_WIDTH_PX: u32 = 7680;

fn check_width(width_px: u32) -> Result<(), PlotError> {
    match width_px {
        MIN_WIDTH_PX..=MAX_WIDTH_PX => Ok(()),
        _ => Err(PlotError::Width { width_px }),
    }
}

/// Returns an SVG document of ours as a PNG image, `width_px` pixels wide, drawn with the built-in
/// font.
///
/// It draws the SVG that [`Chart::svg`](super::Chart::svg) and the laboratory write, not all of
/// SVG: an element or an attribute that they do not use is an error, so that no image lacks a part
/// of its document.
///
/// # Errors
/// [`PlotError::Width`] unless the width is from [`MIN_WIDTH_PX`] to [`MAX_WIDTH_PX`], and
/// [`PlotError::Drawing`] if the text is not an SVG document of ours, or the image is higher than
/// [`MAX_WIDTH_PX`].
pub fn png(svg: &str, width_px: u32) -> Result<Vec<u8>, PlotError> {
    image(svg, width_px)?.encode_png().map_err(PlotError::drawing)
}

fn image(svg: &str, width_px: u32) -> Result<Pixmap, PlotError> {
    check_width(width_px)?;
    let document = Document::read(svg)?;
    // In whole numbers: rounded ones would add a row of pixels now and then.
    let height_px = (u64::from(width_px) * u64::from(document.height))
        .div_ceil(u64::from(document.width))
        .try_into()
        .unwrap_or(u32::MAX);
    if height_px > MAX_WIDTH_PX {
        let problem = format!("{height_px} pixels high (at most {MAX_WIDTH_PX})");
        return Err(PlotError::drawing(problem));
    }
    let mut pixels = Pixmap::new(width_px, height_px).expect("both sides are above zero and small");
    #[expect(clippy::cast_precision_loss, reason = "both widths are checked, and fit exactly")]
    let scale = width_px as f32 / document.width as f32;
    for shape in &document.shapes {
        draw(shape, Transform::from_scale(scale, scale), &mut pixels);
    }
    Ok(pixels)
}

fn draw(shape: &Shape, transform: Transform, pixels: &mut Pixmap) {
    let mut paint = Paint::default();
    paint.set_color(shape.colour);
    match shape.stroke_width {
        None => pixels.fill_path(&shape.path, &paint, FillRule::Winding, transform, None),
        Some(width) => {
            let stroke = Stroke { width, line_join: LineJoin::Round, ..Stroke::default() };
            pixels.stroke_path(&shape.path, &paint, &stroke, transform, None);
        }
    }
}

#[cfg(test)]
mod tests;
