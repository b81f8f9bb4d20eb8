//! Colours, and those that all charts share.

/// A colour by its red, green and blue components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Colour(pub u8, pub u8, pub u8);

/// A colour with its opacity, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paint {
    pub(super) colour: Colour,
    pub(super) opacity: f64,
}

impl Colour {
    /// Returns the colour with an opacity, from 0 to 1.
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

/// The colour of the background.
pub const WHITE: Colour = Colour(255, 255, 255);

/// The colour of the most important lines and texts.
pub const INK: Colour = Colour(25, 25, 25);

/// The colour of axes and secondary texts.
pub const SOFT_INK: Colour = Colour(85, 85, 85);

/// The colour of grid lines.
pub const GRID: Colour = Colour(222, 222, 222);
