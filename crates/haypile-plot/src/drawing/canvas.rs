//! The pen: an SVG document of lines, shapes, markers and texts.

use std::cell::RefCell;
use std::fmt::{self, Write};

use super::colour::{Colour, Paint, WHITE};
use super::marks::{Mark, Marker};
use super::text::escaped;
use crate::PlotError;

/// Fonts in the order of preference: Noto Sans, then those that other machines have instead.
const FONTS: &str = "Noto Sans, Segoe UI, Helvetica Neue, Arial, Liberation Sans, sans-serif";

/// A rim of paper around a marker, as a part of its size, keeps markers on crossing lines apart.
const RIM: f64 = 0.225;

/// A position in a picture: pixels from its left edge and from its top edge.
pub type Place = (f64, f64);

/// The size of a picture in pixels; at most [`MAX_SIDE_PX`] in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Width of the picture from left to right, in pixels.
    pub width_px: u32,
    /// Height of the picture from top to bottom, in pixels.
    pub height_px: u32,
}

/// The largest width or height of a picture, in pixels.
pub const MAX_SIDE_PX: u32 = 20_000;

/// A canvas on which a picture is drawn as SVG.
#[derive(Debug)]
pub struct Canvas {
    drawn: RefCell<String>,
}

/// The style of a drawn line: colour, width and dashes.
#[derive(Clone, Copy, Debug)]
pub struct Stroke {
    /// The colour of the line, with its opacity.
    pub colour: Paint,
    /// The width of the line in pixels.
    pub width_px: f64,
    /// Lengths of a dash of the line and of the gap after it, in pixels; `None` for a solid line.
    pub dashes: Option<(f64, f64)>,
}

impl Stroke {
    /// Creates the style of a solid line.
    pub fn solid(colour: Colour, width_px: f64) -> Self {
        Self { colour: colour.into(), width_px, dashes: None }
    }
}

/// The horizontal alignment of a drawn text: whether its left end, centre or right end is at the given position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HPos {
    /// The left end of the text.
    Left,
    /// The middle of the text.
    Center,
    /// The right end of the text.
    Right,
}

/// The vertical alignment of a drawn text: which height of the text (such as its centre) is at the given position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VPos {
    /// The line above the letters.
    Top,
    /// The middle of digits and capitals.
    Center,
}

/// The style of a drawn text: size, colour and alignment.
#[derive(Clone, Copy, Debug)]
pub struct Lettering {
    /// The size of the font in pixels.
    pub size_px: f64,
    /// The colour of the text.
    pub colour: Colour,
    /// The horizontal and vertical alignment of the text relative to its position.
    pub anchor: (HPos, VPos),
}

/// Returns an SVG document of a drawing with a white background and a text alternative, without scripts and without
/// external files.
///
/// # Errors
/// [`PlotError::Drawing`] for a size of nothing or beyond [`MAX_SIDE_PX`].
pub fn document(
    size: Size,
    title: &str,
    description: &str,
    draw: impl FnOnce(&Canvas),
) -> Result<String, PlotError> {
    let Size { width_px, height_px } = size;
    if ![width_px, height_px].iter().all(|side| (1..=MAX_SIDE_PX).contains(side)) {
        let reason = format!("{width_px} by {height_px} pixels (from 1 to {MAX_SIDE_PX} each)");
        return Err(PlotError::Drawing { reason });
    }
    let canvas = Canvas { drawn: RefCell::default() };
    draw(&canvas);
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width_px}\" height=\"{height_px}\" \
         viewBox=\"0 0 {width_px} {height_px}\" role=\"img\" stroke-linejoin=\"round\">\n\
         <title>{}</title>\n<desc>{}</desc>\n\
         <rect width=\"{width_px}\" height=\"{height_px}\" fill=\"{}\"/>\n{}</svg>\n",
        escaped(title),
        escaped(description),
        WHITE.hex(),
        canvas.drawn.into_inner(),
    ))
}

/// Combines SVG documents into one that shows them below each other.
pub fn stacked(documents: &[String]) -> String {
    if let [one] = documents {
        return one.clone();
    }
    let side = |document: &str, name: &str| -> u32 {
        let value = document.split_once(name).and_then(|(_, rest)| rest.split('"').next());
        value.and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    let (mut width_px, mut height_px, mut all) = (0, 0, String::new());
    for document in documents {
        let _ = write!(all, "<g transform=\"translate(0 {height_px})\">\n{document}</g>\n");
        width_px = width_px.max(side(document, " width=\""));
        height_px += side(document, " height=\"");
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width_px}\" height=\"{height_px}\" \
         viewBox=\"0 0 {width_px} {height_px}\">\n{all}</svg>\n"
    )
}

impl Canvas {
    /// Draws a line through a list of positions.
    pub fn line(&self, places: &[Place], stroke: Stroke) {
        let Stroke { colour, width_px, dashes } = stroke;
        let dashes = dashes.map_or_else(String::new, |(dash, gap)| {
            format!(" stroke-dasharray=\"{} {}\"", Px(dash), Px(gap))
        });
        self.add(format_args!(
            "<polyline fill=\"none\"{} stroke-width=\"{}\"{dashes} points=\"{}\"/>",
            painted("stroke", colour),
            Px(width_px),
            Points(places)
        ));
    }

    /// Draws a filled polygon with the given corners.
    pub fn polygon(&self, corners: &[Place], paint: impl Into<Paint>) {
        let fill = painted("fill", paint.into());
        self.add(format_args!("<polygon{fill} points=\"{}\"/>", Points(corners)));
    }

    /// Draws dots of diameter `width_px` pixels without an outline at a list of positions.
    pub fn dots(&self, places: &[Place], paint: impl Into<Paint>, width_px: f64) {
        let mut path = String::new();
        for &(x, y) in places {
            // A line without a length has round ends.
            write!(path, "M{} {}h0", Px(x), Px(y)).expect("a string takes all");
        }
        self.add(format_args!(
            "<path fill=\"none\"{} stroke-width=\"{}\" stroke-linecap=\"round\" d=\"{path}\"/>",
            painted("stroke", paint.into()),
            Px(width_px)
        ));
    }

    /// Draws the marker of a point of a curve with a white outline, `size_px` pixels from its centre to its edge.
    pub fn marker(&self, centre: Place, mark: Mark, size_px: f64) {
        for (colour, size_px) in [(WHITE, size_px * (1.0 + RIM)), (mark.colour, size_px)] {
            if mark.marker == Marker::Circle {
                let ((x, y), fill) = (centre, painted("fill", colour.into()));
                let (x, y, radius) = (Px(x), Px(y), Px(size_px));
                self.add(format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"{fill}/>"));
                continue;
            }
            let corner = |&(x, y): &Place| (centre.0 + x * size_px, centre.1 + y * size_px);
            let corners: Vec<Place> = mark.marker.corners().iter().map(corner).collect();
            self.polygon(&corners, colour);
        }
    }

    /// Draws a line of text, which must contain only characters that XML allows
    /// ([`printable`](super::text::printable)).
    pub fn text(&self, text: &str, (x, y): Place, lettering: Lettering) {
        let (horizontal, vertical) = lettering.anchor;
        let anchor = match horizontal {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        // Capitals are 0.71 of the font's size high.
        let down = match vertical {
            VPos::Top => "0.76em",
            VPos::Center => "0.36em",
        };
        self.add(format_args!(
            "<text x=\"{}\" y=\"{}\" dy=\"{down}\" text-anchor=\"{anchor}\" font-family=\"{FONTS}\" \
             font-size=\"{}\"{}>{}</text>",
            Px(x),
            Px(y),
            Px(lettering.size_px),
            painted("fill", lettering.colour.into()),
            escaped(text)
        ));
    }

    fn add(&self, element: fmt::Arguments<'_>) {
        writeln!(self.drawn.borrow_mut(), "{element}").expect("a text takes everything");
    }
}

/// An attribute with a colour, and its opacity where that is not whole.
fn painted(attribute: &str, Paint { colour, opacity }: Paint) -> String {
    let opacity = if opacity < 1.0 { format!(" opacity=\"{opacity}\"") } else { String::new() };
    format!(" {attribute}=\"{}\"{opacity}", colour.hex())
}

/// Pixels, to the tenth.
struct Px(f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The addition makes -0 a 0.
        write!(f, "{}", (self.0 * 10.0).round() / 10.0 + 0.0)
    }
}

/// Places, of which each differs from the one before.
struct Points<'a>(&'a [Place]);

impl fmt::Display for Points<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = String::new();
        for (x, y) in self.0 {
            let place = format!("{},{}", Px(*x), Px(*y));
            if place != last {
                let gap = if last.is_empty() { "" } else { " " };
                write!(f, "{gap}{place}")?;
                last = place;
            }
        }
        Ok(())
    }
}
