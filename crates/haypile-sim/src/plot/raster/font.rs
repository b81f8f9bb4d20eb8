//! Outlines of text in the built-in font.

use std::sync::LazyLock;

use tiny_skia::{Path, PathBuilder};
use ttf_parser::gpos::{PairAdjustment, PositioningSubtable};
use ttf_parser::{Face, GlyphId, OutlineBuilder, Tag};
use unicode_width::UnicodeWidthChar;

/// The built-in font alone: what a machine has installed must not change the image.
static FONT: LazyLock<Font> = LazyLock::new(Font::built_in);

struct Font {
    face: Face<'static>,
    /// Pairs of glyphs that stand closer together or further apart.
    kerning: Vec<PairAdjustment<'static>>,
}

impl Font {
    fn built_in() -> Self {
        let face = Face::parse(notosans::REGULAR_TTF, 0).expect("a part of the program");
        let mut kerning = Vec::new();
        if let Some(gpos) = face.tables().gpos
            && let Some(kern) = gpos.features.find(Tag::from_bytes(b"kern"))
        {
            let lookups = kern.lookup_indices.into_iter().filter_map(|at| gpos.lookups.get(at));
            for subtable in lookups.flat_map(|lookup| lookup.subtables.into_iter()) {
                if let PositioningSubtable::Pair(pairs) = subtable {
                    kerning.push(pairs);
                }
            }
        }
        Self { face, kerning }
    }

    /// The glyph of a letter: a box for a letter that the font lacks, nothing for a character that
    /// is not to be seen.
    fn glyph(&self, letter: char) -> Option<GlyphId> {
        // The font has signs for these, for texts about them.
        if matches!(letter, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
        {
            return None;
        }
        match self.face.glyph_index(letter) {
            None if letter.width() == Some(0) => None,
            None => Some(GlyphId(0)),
            found => found,
        }
    }

    fn kerning(&self, first: GlyphId, second: GlyphId) -> i16 {
        let pair = |pairs: &PairAdjustment<'_>| match pairs {
            PairAdjustment::Format1 { coverage, sets } => {
                sets.get(coverage.get(first)?)?.get(second).map(|(first, _)| first.x_advance)
            }
            // Noto Sans has no pairs of classes.
            PairAdjustment::Format2 { .. } => None,
        };
        self.kerning.iter().find_map(pair).unwrap_or(0)
    }

    /// Glyphs with their distances from the start of the line, and the length of the line, in units
    /// of the font.
    fn line(&self, text: &str) -> (Vec<(GlyphId, f32)>, f32) {
        let mut glyphs: Vec<(GlyphId, f32)> = Vec::with_capacity(text.len());
        let mut pen = 0.0;
        for glyph in text.chars().filter_map(|letter| self.glyph(letter)) {
            if let Some(&(before, _)) = glyphs.last() {
                pen += f32::from(self.kerning(before, glyph));
            }
            glyphs.push((glyph, pen));
            pen += f32::from(self.face.glyph_hor_advance(glyph).unwrap_or(0));
        }
        (glyphs, pen)
    }
}

/// Place of a line of text, in units of the document.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinePlace {
    pub(super) x: f32,
    pub(super) baseline: f32,
    /// The part of the line that lies left of `x`.
    pub(super) anchor: f32,
    pub(super) font_size: f32,
    /// Letters that start further than this from zero are left out.
    pub(super) reach: f32,
}

/// Returns the outlines of a line of text; `None` if there is nothing to see.
pub(super) fn outline(text: &str, place: LinePlace) -> Option<Path> {
    let font = &*FONT;
    let scale = place.font_size / f32::from(font.face.units_per_em());
    let (glyphs, length) = font.line(text);
    let start = place.x - length * scale * place.anchor;
    let mut pen = Pen { path: PathBuilder::new(), x: start, y: place.baseline, scale };
    for (glyph, distance) in glyphs {
        pen.x = start + distance * scale;
        if pen.x.abs() <= place.reach {
            font.face.outline_glyph(glyph, &mut pen);
        }
    }
    pen.path.finish()
}

/// Draws a glyph where it belongs, from units of the font, which count upwards.
struct Pen {
    path: PathBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_that_charts_use_has_a_glyph_with_an_outline() {
        for letter in ('!'..='~').chain("…±×µ–—“”éßΩλЖя°".chars()) {
            let glyph = FONT.face.glyph_index(letter);
            assert!(glyph.is_some_and(|glyph| glyph.0 != 0), "{letter}");
            let place =
                LinePlace { x: 0.0, baseline: 0.0, anchor: 0.0, font_size: 10.0, reach: 9.0 };
            assert!(outline(&letter.to_string(), place).is_some(), "{letter}");
        }
    }

    #[test]
    fn a_letter_that_the_font_lacks_is_a_box_and_an_invisible_mark_is_nothing() {
        assert_eq!(FONT.glyph('水'), Some(GlyphId(0)));
        for invisible in ['\u{5b0}', '\u{ad}', '\u{200d}', '\u{feff}', '\u{fe0f}'] {
            assert_eq!(FONT.glyph(invisible), None, "{invisible:?}");
        }
        assert!(FONT.line("水").1 > 0.0);
    }

    #[test]
    fn pairs_of_letters_are_kerned() {
        let length = |text| FONT.line(text).1;
        assert!(length("AV") < length("A") + length("V"));
        assert!((length("HH") - 2.0 * length("H")).abs() < f32::EPSILON);
    }
}
