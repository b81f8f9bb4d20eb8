//! PNG images of our SVG documents.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use super::PlotError;

/// The narrowest image, in pixels: below it the text cannot be read.
pub const MIN_WIDTH_PX: u32 = 320;

/// The widest image, in pixels: that of an 8K screen.
pub const MAX_WIDTH_PX: u32 = 7680;

/// The built-in font alone: what a machine has installed must not change the image.
static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(notosans::REGULAR_TTF.to_vec());
    fonts.set_sans_serif_family(FAMILY);
    Arc::new(fonts)
});

const FAMILY: &str = "Noto Sans";

fn check_width(width_px: u32) -> Result<(), PlotError> {
    match width_px {
        MIN_WIDTH_PX..=MAX_WIDTH_PX => Ok(()),
        _ => Err(PlotError::Width { width_px }),
    }
}

/// An SVG document of ours as a PNG image, `width_px` pixels wide, drawn with the built-in font.
///
/// # Errors
/// [`PlotError::Width`] unless the width is from [`MIN_WIDTH_PX`] to [`MAX_WIDTH_PX`], and
/// [`PlotError::Drawing`] if the text is not SVG, or the image is higher than [`MAX_WIDTH_PX`].
pub fn png(svg: &str, width_px: u32) -> Result<Vec<u8>, PlotError> {
    check_width(width_px)?;
    let options = Options {
        fontdb: Arc::clone(&FONTS),
        font_family: FAMILY.to_owned(),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).map_err(PlotError::drawing)?;
    #[expect(clippy::cast_precision_loss, reason = "a checked width fits exactly")]
    let scale = width_px as f32 / tree.size().width();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let height_px = (scale * tree.size().height()).ceil() as u32;
    if height_px > MAX_WIDTH_PX {
        let problem = format!("{height_px} pixels high (at most {MAX_WIDTH_PX})");
        return Err(PlotError::drawing(problem));
    }
    let mut pixels = Pixmap::new(width_px, height_px).expect("both sides are above zero and small");
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(PlotError::drawing)
}
