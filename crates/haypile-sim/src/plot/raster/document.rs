//! Reader of the SVG that [`Canvas`](super::super::drawing::canvas::Canvas) writes.

use std::ops::RangeInclusive;

use roxmltree::Node;
use tiny_skia::{Color, Path, PathBuilder, Rect};

use super::super::PlotError;
use super::super::drawing::text::printable;
use super::font::{LinePlace, outline};

const SVG: &str = "http://www.w3.org/2000/svg";

/// Longest side of a document, in its units: single precision counts further than this exactly.
const MAX_SIDE: u32 = 1_000_000;

/// A document as shapes, the lowest first.
#[derive(Debug)]
pub(super) struct Document {
    /// Its width in its units, from 1 to [`MAX_SIDE`].
    pub(super) width: u32,
    /// Its height in its units, from 1 to [`MAX_SIDE`].
    pub(super) height: u32,
    pub(super) shapes: Vec<Shape>,
}

/// A path in the document's units, filled or stroked.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) path: Path,
    pub(super) colour: Color,
    /// `None` if the path is filled.
    pub(super) stroke_width: Option<f32>,
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// [`PlotError::Drawing`] if the text is not XML, or has an element, an attribute or a value
    /// that our documents do not have.
    pub(super) fn read(svg: &str) -> Result<Self, PlotError> {
        let xml = roxmltree::Document::parse(svg).map_err(PlotError::drawing)?;
        let root = Element::new(xml.root_element(), 0.0)?;
        if root.name() != "svg" {
            return Err(root.unknown());
        }
        root.allow(&["width", "height", "viewBox", "role", "stroke-linejoin"])?;
        root.fixed("stroke-linejoin", "round")?;
        let (width, height) = root.size()?;
        #[expect(clippy::cast_precision_loss, reason = "a side, which fits exactly")]
        let side = width.max(height) as f32;
        let mut shapes = Vec::new();
        for node in root.node.children().filter(Node::is_element) {
            let element = Element::new(node, side)?;
            if node.children().any(|child| child.is_element()) {
                return Err(element.problem("it contains elements"));
            }
            if !matches!(element.name(), "title" | "desc") {
                shapes.extend(element.shape()?);
            }
        }
        Ok(Self { width, height, shapes })
    }
}

#[derive(Clone, Copy)]
struct Element<'a> {
    node: Node<'a, 'a>,
    /// The longer side of the document. No length is longer, and no place is further than this from
    /// the picture: the library fails at lines that are thousands of times as long.
    side: f32,
}

impl<'a> Element<'a> {
    fn new(node: Node<'a, 'a>, side: f32) -> Result<Self, PlotError> {
        let element = Self { node, side };
        match node.tag_name().namespace() {
            Some(SVG) => Ok(element),
            _ => Err(element.problem("it is not of SVG")),
        }
    }

    fn name(self) -> &'a str {
        self.node.tag_name().name()
    }

    fn problem(self, problem: &str) -> PlotError {
        PlotError::drawing(format!("the element '{}': {problem}", printable(self.name())))
    }

    fn unknown(self) -> PlotError {
        self.problem(
            "it is unknown (known: svg, title, desc, rect, polyline, polygon, circle, text)",
        )
    }

    fn allow(self, known: &[&str]) -> Result<(), PlotError> {
        let known = |name, space: Option<&str>| space.is_none() && known.contains(&name);
        match self.node.attributes().find(|it| !known(it.name(), it.namespace())) {
            None => Ok(()),
            Some(it) => Err(self.problem(&format!("unknown attribute '{}'", printable(it.name())))),
        }
    }

    fn attribute(self, name: &str) -> Result<&'a str, PlotError> {
        self.node
            .attribute(name)
            .ok_or_else(|| self.problem(&format!("the attribute '{name}' is missing")))
    }

    /// Reads an attribute with `read`, which returns `None` for a value that it cannot read.
    fn value<T>(self, name: &str, read: impl FnOnce(&'a str) -> Option<T>) -> Result<T, PlotError> {
        let value = self.attribute(name)?;
        read(value).ok_or_else(|| {
            self.problem(&format!("invalid value '{}' of '{name}'", printable(value)))
        })
    }

    fn fixed(self, name: &str, only: &str) -> Result<(), PlotError> {
        self.value(name, |value| (value == only).then_some(()))
    }

    fn coordinate(self, name: &str) -> Result<f32, PlotError> {
        self.value(name, |value| self.near(value))
    }

    fn length(self, name: &str) -> Result<f32, PlotError> {
        self.value(name, |value| number(value, 0.0..=self.side))
    }

    fn near(self, value: &str) -> Option<f32> {
        number(value, -self.side..=2.0 * self.side)
    }

    fn size(self) -> Result<(u32, u32), PlotError> {
        self.value("viewBox", |value| {
            let (width, height) = value.strip_prefix("0 0 ")?.split_once(' ')?;
            let side = |text: &str| text.parse().ok().filter(|side| (1..=MAX_SIDE).contains(side));
            Some((side(width)?, side(height)?))
        })
    }

    /// The shape, unless there is nothing to see of it.
    fn shape(self) -> Result<Option<Shape>, PlotError> {
        let (path, paint, stroke_width) = match self.name() {
            "rect" => {
                self.allow(&["x", "y", "width", "height", "opacity", "fill", "stroke"])?;
                self.fixed("stroke", "none")?;
                let (x, y) = (self.coordinate("x")?, self.coordinate("y")?);
                let rect = Rect::from_xywh(x, y, self.length("width")?, self.length("height")?);
                (rect.map(PathBuilder::from_rect), "fill", None)
            }
            "circle" => {
                self.allow(&["cx", "cy", "r", "opacity", "fill", "stroke", "stroke-width"])?;
                self.fixed("stroke", "none")?;
                let (x, y) = (self.coordinate("cx")?, self.coordinate("cy")?);
                (PathBuilder::from_circle(x, y, self.length("r")?), "fill", None)
            }
            "polygon" => {
                self.allow(&["opacity", "fill", "points"])?;
                (self.points(true)?, "fill", None)
            }
            "polyline" => {
                self.allow(&["fill", "opacity", "stroke", "stroke-width", "points"])?;
                self.fixed("fill", "none")?;
                (self.points(false)?, "stroke", Some(self.length("stroke-width")?))
            }
            "text" => (self.text()?, "fill", None),
            _ => return Err(self.unknown()),
        };
        let mut colour = self.value(paint, colour)?;
        colour.set_alpha(self.value("opacity", |value| number(value, 0.0..=1.0))?);
        Ok(path.map(|path| Shape { path, colour, stroke_width }))
    }

    fn points(self, closed: bool) -> Result<Option<Path>, PlotError> {
        let mut path = self.value("points", |value| {
            let mut path = PathBuilder::new();
            for point in value.split_ascii_whitespace() {
                let (x, y) = point.split_once(',')?;
                let (x, y) = (self.near(x)?, self.near(y)?);
                if path.is_empty() {
                    path.move_to(x, y);
                } else {
                    path.line_to(x, y);
                }
            }
            Some(path)
        })?;
        if closed {
            path.close();
        }
        Ok(path.finish())
    }

    fn text(self) -> Result<Option<Path>, PlotError> {
        let known = ["x", "y", "dy", "text-anchor", "font-family", "font-size", "opacity", "fill"];
        self.allow(&known)?;
        let font_size = self.length("font-size")?;
        let anchor = self.value("text-anchor", |value| match value {
            "start" => Some(0.0),
            "middle" => Some(0.5),
            "end" => Some(1.0),
            _ => None,
        })?;
        let down = self.value("dy", |value| match value.strip_suffix("em") {
            Some(em) => number(em, -1.0..=1.0),
            // As SVG counts them where the height of the font's small letters is not known.
            None => Some(number(value.strip_suffix("ex")?, -1.0..=1.0)? / 2.0),
        })?;
        let baseline = self.coordinate("y")? + down * font_size;
        let place = LinePlace {
            x: self.coordinate("x")?,
            baseline,
            anchor,
            font_size,
            reach: 2.0 * self.side,
        };
        let text: String =
            self.node.children().filter(Node::is_text).filter_map(|node| node.text()).collect();
        // Lines and columns of the XML are not those of the picture; spaces without a break are.
        let words: Vec<&str> =
            text.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty()).collect();
        Ok(outline(&words.join(" "), place))
    }
}

fn number(text: &str, range: RangeInclusive<f32>) -> Option<f32> {
    text.parse().ok().filter(|number| range.contains(number))
}

fn colour(text: &str) -> Option<Color> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
    let rgb = u32::from_str_radix(digits, 16).ok()?;
    let [_, red, green, blue] = rgb.to_be_bytes();
    Some(Color::from_rgba8(red, green, blue, u8::MAX))
}
