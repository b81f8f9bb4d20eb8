//! Colours, and those that all charts share.

/// A colour: red, green and blue.
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

    /// Returns the colour as SVG has it: `#0072B2`.
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

/// Colour of the paper.
pub const WHITE: Colour = Colour(255, 255, 255);

/// Colour of lines and letters that are read first.
pub const INK: Colour = Colour(25, 25, 25);

/// Colour of axes, and of letters that are read second.
pub const SOFT_INK: Colour = Colour(85, 85, 85);

/// Colour of grid lines.
pub const GRID: Colour = Colour(222, 222, 222);
