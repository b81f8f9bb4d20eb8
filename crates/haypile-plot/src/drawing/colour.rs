//! Colours, and those that all charts share.

/// A colour with its red, green and blue components, from 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Colour(pub u8, pub u8, pub u8);

/// A colour with its opacity, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paint {
    pub(super) colour: Colour,
    pub(super) opacity: f64,
}

impl Colour {
    /// Returns the colour with an opacity, from 0 (invisible) to 1.
    pub fn at(self, opacity: f64) -> Paint {
        Paint { colour: self, opacity }
    }

    /// Returns the colour in SVG's notation: `#0072B2`.
    pub fn hex(self) -> String {
        let Self(red, green, blue) = self;
        format!("#{red:02X}{green:02X}{blue:02X}")
    }
}

impl From<Colour> for Paint {
    fn from(colour: Colour) -> Self {
        colour.at(1.0)
    }
}

/// The white colour of a picture's background.
pub const WHITE: Colour = Colour(255, 255, 255);

/// The dark colour of the most important lines and texts of a picture.
pub const INK: Colour = Colour(25, 25, 25);

/// The grey colour of axes and secondary texts of a picture.
pub const SOFT_INK: Colour = Colour(85, 85, 85);

/// The light grey colour of a chart's grid lines.
pub const GRID: Colour = Colour(222, 222, 222);
