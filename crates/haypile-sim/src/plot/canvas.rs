//! An SVG document of our own size and head, drawn through `plotters`.

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, DashedPathElement, Drawable, PathElement, PointCollection};
use plotters::element::{Polygon, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontDesc, FontFamily, FontStyle, RGBAColor, RGBColor, ShapeStyle, TextStyle, WHITE,
};

use super::PlotError;
use super::text::escaped;

/// The size of the document, in pixels at its natural size.
pub(super) const WIDTH_PX: u32 = 1280;
pub(super) const HEIGHT_PX: u32 = 720;

/// `plotters` draws at whole numbers only, so that the document counts in tenths of a pixel.
const TENTHS: u32 = 10;

/// `plotters` divides a font's size by this.
const FONT_DIVISOR: f64 = 1.24;

/// `plotters` centres the small letters; this far down, in font sizes, digits and capitals are
/// centred.
const CENTRE_OF_CAPITALS: f64 = 0.09;

/// Noto Sans first, so that most machines show what a PNG shows; then what they have instead.
const FONTS: &str = "Noto Sans, Segoe UI, Helvetica Neue, Arial, Liberation Sans, sans-serif";

/// A place on the picture: pixels from the left and from the top.
pub(super) type Place = (f64, f64);

pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// How a line is drawn.
#[derive(Clone, Copy)]
pub(super) struct Stroke {
    pub(super) colour: RGBAColor,
    pub(super) width_px: f64,
    pub(super) dashes: Option<(f64, f64)>,
}

/// How a text is written.
#[derive(Clone, Copy)]
pub(super) struct Lettering {
    pub(super) size_px: f64,
    pub(super) colour: RGBColor,
    /// Which of its points lies at the place given.
    pub(super) anchor: (HPos, VPos),
}

/// Draws a document on white, with a text alternative.
pub(super) fn document(
    title: &str,
    description: &str,
    draw: impl FnOnce(&Canvas<'_>) -> Result<(), PlotError>,
) -> Result<String, PlotError> {
    let mut drawn = String::new();
    {
        let size = (WIDTH_PX * TENTHS, HEIGHT_PX * TENTHS);
        let canvas = Canvas { area: SVGBackend::with_string(&mut drawn, size).into_drawing_area() };
        canvas.area.fill(&WHITE).map_err(PlotError::drawing)?;
        draw(&canvas)?;
        canvas.area.present().map_err(PlotError::drawing)?;
    }
    let (_, content) = drawn.split_once('\n').expect("plotters ends the opening tag with a line");
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH_PX}\" height=\"{HEIGHT_PX}\" \
         viewBox=\"0 0 {} {}\" role=\"img\" stroke-linejoin=\"round\">\n<title>{}</title>\n\
         <desc>{}</desc>\n{content}",
        WIDTH_PX * TENTHS,
        HEIGHT_PX * TENTHS,
        escaped(title),
        escaped(description),
    ))
}

impl Canvas<'_> {
    pub(super) fn line(&self, places: &[Place], stroke: Stroke) -> Result<(), PlotError> {
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

    pub(super) fn polygon(&self, corners: &[Place], colour: RGBAColor) -> Result<(), PlotError> {
        let mut corners: Vec<_> = corners.iter().copied().map(tenths).collect();
        corners.dedup();
        self.draw(&Polygon::new(corners, colour.filled()))
    }

    pub(super) fn circle(
        &self,
        centre: Place,
        radius_px: f64,
        colour: RGBColor,
    ) -> Result<(), PlotError> {
        self.draw(&Circle::new(tenths(centre), whole(radius_px), colour.filled()))
    }

    pub(super) fn text(
        &self,
        text: &str,
        place: Place,
        lettering: Lettering,
    ) -> Result<(), PlotError> {
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
