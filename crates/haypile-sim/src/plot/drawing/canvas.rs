//! An SVG document of our own head, drawn through `plotters`.

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, DashedPathElement, Drawable, PathElement, PointCollection};
use plotters::element::{Polygon, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontDesc, FontFamily, FontStyle, RGBAColor, RGBColor, ShapeStyle, TextStyle, WHITE,
};

use super::super::PlotError;
use super::marks::{Mark, Marker};
use super::text::escaped;

/// `plotters` draws at whole numbers only, so that the document counts in tenths of a pixel.
const TENTHS: u32 = 10;

/// `plotters` divides a font's size by this.
const FONT_DIVISOR: f64 = 1.24;

/// `plotters` centres the small letters; this far down, in font sizes, digits and capitals are
/// centred.
const CENTRE_OF_CAPITALS: f64 = 0.09;

/// Fonts in the order of preference: Noto Sans, then those that other machines have instead.
const FONTS: &str = "Noto Sans, Segoe UI, Helvetica Neue, Arial, Liberation Sans, sans-serif";

/// A rim of paper around a marker, as a part of its size, keeps markers on crossing lines apart.
const RIM: f64 = 0.225;

/// A place on the picture: pixels from the left and from the top.
pub type Place = (f64, f64);

/// Size of a document, in pixels at its natural size; at most [`MAX_SIDE_PX`] each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// From left to right.
    pub width_px: u32,
    /// From top to bottom.
    pub height_px: u32,
}

/// The longest side of a document, in pixels.
pub const MAX_SIDE_PX: u32 = 20_000;

/// Canvas of a document.
pub struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// Style of a line.
#[derive(Clone, Copy, Debug)]
pub struct Stroke {
    /// Its colour, with its opacity.
    pub colour: RGBAColor,
    /// Its width in pixels.
    pub width_px: f64,
    /// Lengths of a dash and of the gap after it in pixels; `None` for a line without gaps.
    pub dashes: Option<(f64, f64)>,
}

impl Stroke {
    /// A line without gaps.
    pub fn solid(colour: RGBColor, width_px: f64) -> Self {
        Self { colour: colour.to_rgba(), width_px, dashes: None }
    }
}

/// Style of a text.
#[derive(Clone, Copy)]
pub struct Lettering {
    /// The size of the font in pixels.
    pub size_px: f64,
    /// Its colour.
    pub colour: RGBColor,
    /// The point of the text that lies at the given place.
    pub anchor: (HPos, VPos),
}

/// Draws a document on white, with a text alternative, without scripts and without anything to
/// load.
///
/// # Errors
/// [`PlotError::Drawing`] for a size of nothing or beyond [`MAX_SIDE_PX`], or if a library fails;
/// and any error of `draw`.
pub fn document(
    size: Size,
    title: &str,
    description: &str,
    draw: impl FnOnce(&Canvas<'_>) -> Result<(), PlotError>,
) -> Result<String, PlotError> {
    let Size { width_px, height_px } = size;
    if ![width_px, height_px].iter().all(|side| (1..=MAX_SIDE_PX).contains(side)) {
        let problem = format!("{width_px} by {height_px} pixels (from 1 to {MAX_SIDE_PX} each)");
        return Err(PlotError::drawing(problem));
    }
    let (width, height) = (width_px * TENTHS, height_px * TENTHS);
    let mut drawn = String::new();
    {
        let canvas = Canvas {
            area: SVGBackend::with_string(&mut drawn, (width, height)).into_drawing_area(),
        };
        canvas.area.fill(&WHITE).map_err(PlotError::drawing)?;
        draw(&canvas)?;
        canvas.area.present().map_err(PlotError::drawing)?;
    }
    let (_, content) = drawn.split_once('\n').expect("plotters ends the opening tag with a line");
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width_px}\" height=\"{height_px}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" stroke-linejoin=\"round\">\n<title>{}</title>\n\
         <desc>{}</desc>\n{content}",
        escaped(title),
        escaped(description),
    ))
}

impl Canvas<'_> {
    /// Draws a line through places.
    ///
    /// # Errors
    /// [`PlotError::Drawing`] if a library fails, as every method.
    pub fn line(&self, places: &[Place], stroke: Stroke) -> Result<(), PlotError> {
        let mut places: Vec<_> = places.iter().copied().map(tenths).collect();
        places.dedup();
        let style = ShapeStyle {
            color: stroke.colour,
            filled: false,
            stroke_width: whole(stroke.width_px).unsigned_abs(),
        };
        match stroke.dashes {
            None => self.draw(&PathElement::new(places, style)),
            Some((dash, gap)) => {
                self.draw(&DashedPathElement::new(places, whole(dash), whole(gap), style))
            }
        }
    }

    /// Draws a filled shape.
    ///
    /// # Errors
    /// As [`Canvas::line`].
    pub fn polygon(&self, corners: &[Place], colour: RGBAColor) -> Result<(), PlotError> {
        let mut corners: Vec<_> = corners.iter().copied().map(tenths).collect();
        corners.dedup();
        self.draw(&Polygon::new(corners, colour.filled()))
    }

    fn circle(&self, centre: Place, radius_px: f64, colour: RGBColor) -> Result<(), PlotError> {
        self.draw(&Circle::new(tenths(centre), whole(radius_px), colour.filled()))
    }

    /// Draws the marker of a point, `size_px` from its middle to its rim, with a rim of white.
    ///
    /// # Errors
    /// As [`Canvas::line`].
    pub fn marker(&self, centre: Place, mark: Mark, size_px: f64) -> Result<(), PlotError> {
        for (colour, size_px) in [(WHITE, size_px * (1.0 + RIM)), (mark.colour, size_px)] {
            if mark.marker == Marker::Circle {
                self.circle(centre, size_px, colour)?;
                continue;
            }
            let corner = |&(x, y): &Place| (centre.0 + x * size_px, centre.1 + y * size_px);
            let corners: Vec<Place> = mark.marker.corners().iter().map(corner).collect();
            self.polygon(&corners, colour.to_rgba())?;
        }
        Ok(())
    }

    /// Draws a text of one line, which contains only characters that XML allows
    /// ([`printable`](super::text::printable)).
    ///
    /// # Errors
    /// As [`Canvas::line`].
    pub fn text(&self, text: &str, place: Place, lettering: Lettering) -> Result<(), PlotError> {
        let size = lettering.size_px * f64::from(TENTHS) * FONT_DIVISOR;
        let font = FontDesc::new(FontFamily::Name(FONTS), size, FontStyle::Normal);
        let (horizontal, vertical) = lettering.anchor;
        let style =
            TextStyle::from(font).color(&lettering.colour).pos(Pos::new(horizontal, vertical));
        let place = match vertical {
            VPos::Center => (place.0, place.1 + lettering.size_px * CENTRE_OF_CAPITALS),
            VPos::Top | VPos::Bottom => place,
        };
        self.draw(&Text::new(text.to_owned(), tenths(place), style))
    }

    fn draw<E>(&self, element: &E) -> Result<(), PlotError>
    where
        for<'e> &'e E: PointCollection<'e, (i32, i32)>,
        for<'b> E: Drawable<SVGBackend<'b>>,
    {
        self.area.draw(element).map_err(PlotError::drawing)
    }
}

fn tenths((x, y): Place) -> (i32, i32) {
    (whole(x), whole(y))
}

#[expect(clippy::cast_possible_truncation, reason = "a place on the picture")]
fn whole(pixels: f64) -> i32 {
    (pixels * f64::from(TENTHS)).round() as i32
}
