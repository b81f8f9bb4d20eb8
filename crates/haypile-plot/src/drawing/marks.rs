//! Marks that distinguish curves: colour, marker, dashes.

use super::colour::Colour;

/// The colours of a chart's curves, chosen by Okabe and Ito to be distinguishable, in the order of their contrast with
/// white. Yellow (no contrast) and black (the optimum's colour) are left out.
pub const COLOURS: [Colour; 6] = [
    Colour(0, 114, 178),
    Colour(213, 94, 0),
    Colour(0, 158, 115),
    Colour(204, 121, 167),
    Colour(230, 159, 0),
    Colour(86, 180, 233),
];

/// The colour of the curve of the offline optimum, which no real cache attains.
pub const OPTIMUM: Colour = Colour(40, 40, 40);

const MARKERS: [Marker; 6] = [
    Marker::Circle,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::Plus,
    Marker::TriangleDown,
];

/// Lengths of a dash and of the gap after it, in pixels; none for a line without gaps.
const DASHES: [Option<(f64, f64)>; 4] =
    [None, Some((15.0, 9.0)), Some((8.0, 4.0)), Some((3.0, 5.0))];

/// Dashes and markers of bounds, by their order: charts of several traces have one for each.
const OPTIMUM_DASHES: [(f64, f64); 4] = [(9.0, 8.0), (20.0, 6.0), (4.0, 6.0), (14.0, 14.0)];
const OPTIMUM_MARKERS: [Marker; 6] = [
    Marker::Diamond,
    Marker::Square,
    Marker::Triangle,
    Marker::Circle,
    Marker::Plus,
    Marker::TriangleDown,
];

/// The shape of the marker that is drawn at a point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A circle.
    Circle,
    /// A square on its side.
    Square,
    /// A triangle on its base.
    Triangle,
    /// A square on its corner.
    Diamond,
    /// Two bars that cross.
    Plus,
    /// A triangle on its tip.
    TriangleDown,
}

/// The look of a curve that distinguishes it from others: colour, marker and dashes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// The colour of the curve.
    pub colour: Colour,
    /// The shape of the markers at the points of the curve.
    pub marker: Marker,
    /// Lengths of a dash of the curve's line and of the gap after it, in pixels of a chart 1280
    /// wide; `None` for a solid line.
    pub dashes: Option<(f64, f64)>,
}

/// A generator of distinct looks (colour, marker and dashes) for the curves of a chart, in their order.
#[derive(Debug, Default)]
pub struct Marks {
    given: usize,
    without_markers: usize,
    optima: usize,
}

impl Marks {
    /// Creates a generator of curve looks that starts at curve number `place`, so that a curve looks the same in
    /// several charts.
    pub fn from_place(place: usize) -> Self {
        Self { given: place, without_markers: place, optima: 0 }
    }

    /// Returns the look (colour, marker and dashes) of the next curve. Curves without markers differ by their dashes as
    /// well.
    pub fn next(&mut self, optimum: bool, shows_markers: bool) -> Mark {
        if optimum {
            let round = self.optima / OPTIMUM_MARKERS.len();
            let dashes = OPTIMUM_DASHES[(self.optima + round) % OPTIMUM_DASHES.len()];
            let marker = OPTIMUM_MARKERS[self.optima % OPTIMUM_MARKERS.len()];
            self.optima += 1;
            return Mark { colour: OPTIMUM, marker, dashes: Some(dashes) };
        }
        let round = self.given / COLOURS.len();
        let dashes = if shows_markers {
            DASHES[round % DASHES.len()]
        } else {
            self.without_markers += 1;
            DASHES[(self.without_markers - 1) % DASHES.len()]
        };
        let mark = Mark {
            colour: COLOURS[self.given % COLOURS.len()],
            marker: MARKERS[(self.given + round) % MARKERS.len()],
            dashes,
        };
        self.given += 1;
        mark
    }
}

impl Marker {
    /// Returns the corners of the marker around position 0,0, in multiples of its size; none for a circle.
    pub(super) fn corners(self) -> &'static [(f64, f64)] {
        match self {
            Self::Circle => &[],
            Self::Square => &[(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)],
            Self::Triangle => &[(0.0, -1.2), (1.14, 0.8), (-1.14, 0.8)],
            Self::Diamond => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
            Self::Plus => &[
                (-0.4, -1.2),
                (0.4, -1.2),
                (0.4, -0.4),
                (1.2, -0.4),
                (1.2, 0.4),
                (0.4, 0.4),
                (0.4, 1.2),
                (-0.4, 1.2),
                (-0.4, 0.4),
                (-1.2, 0.4),
                (-1.2, -0.4),
                (-0.4, -0.4),
            ],
            Self::TriangleDown => &[(0.0, 1.2), (-1.14, -0.8), (1.14, -0.8)],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::MAX_CURVES;

    #[test]
    fn every_curve_with_markers_has_a_mark_of_its_own_even_without_colour() {
        let mut marks = Marks::default();
        let shapes: HashSet<String> = (0..MAX_CURVES)
            .map(|_| marks.next(false, true))
            .map(|mark| format!("{:?} {:?}", mark.marker, mark.dashes))
            .collect();
        assert_eq!(shapes.len(), MAX_CURVES);
    }

    #[test]
    fn the_bounds_of_several_traces_differ() {
        let mut marks = Marks::default();
        let shapes: HashSet<String> = (0..12)
            .map(|_| marks.next(true, true))
            .map(|mark| format!("{:?} {:?}", mark.marker, mark.dashes))
            .collect();
        assert_eq!(shapes.len(), 12);
        let lines: HashSet<String> = (0..4)
            .map(|_| marks.next(true, false))
            .map(|mark| format!("{:?}", mark.dashes))
            .collect();
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn lines_without_markers_differ_by_colour_or_dashes() {
        let mut marks = Marks::default();
        let lines: HashSet<String> = (0..12)
            .map(|_| marks.next(false, false))
            .map(|mark| format!("{:?} {:?}", mark.colour, mark.dashes))
            .collect();
        assert_eq!(lines.len(), 12);
    }
}
