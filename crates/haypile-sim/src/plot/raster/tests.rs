//! Images of small documents, pixel by pixel.

use std::fmt::Write as _;
use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::plot::drawing::canvas::{self, Canvas, Lettering, Size, Stroke};
use crate::plot::drawing::{Color, HPos, INK, RGBColor, VPos};

const BLUE: RGBColor = RGBColor(0, 114, 178);
const WHITE: (u8, u8, u8) = (255, 255, 255);

/// A picture of 400 by 200, as wide as it is.
fn picture(draw: impl FnOnce(&Canvas<'_>) -> Result<(), PlotError>) -> Pixmap {
    let size = Size { width_px: 400, height_px: 200 };
    let svg = canvas::document(size, "title", "description", draw).unwrap();
    image(&svg, 400).unwrap()
}

fn pixel(image: &Pixmap, x: u32, y: u32) -> (u8, u8, u8) {
    let pixel = image.pixel(x, y).expect("inside");
    assert_eq!(pixel.alpha(), 255);
    (pixel.red(), pixel.green(), pixel.blue())
}

/// Left, top, right and bottom of the dark pixels.
fn ink(image: &Pixmap) -> Option<[u32; 4]> {
    let all = (0..image.height()).flat_map(|y| (0..image.width()).map(move |x| (x, y)));
    let dark = all.filter(|&(x, y)| pixel(image, x, y).0 < 128);
    dark.fold(None, |bounds, (x, y)| {
        let [left, top, right, bottom] = bounds.unwrap_or([x, y, x, y]);
        Some([left.min(x), top.min(y), right.max(x), bottom.max(y)])
    })
}

fn inked_text(text: &str, anchor: (HPos, VPos)) -> Option<[u32; 4]> {
    let lettering = Lettering { size_px: 40.0, colour: INK, anchor };
    ink(&picture(|canvas| canvas.text(text, (200.0, 100.0), lettering)))
}

/// A document of 400 by 200 with this content.
fn around(content: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"20\" \
         viewBox=\"0 0 400 200\" role=\"img\" stroke-linejoin=\"round\">{content}</svg>"
    )
}

fn problem(svg: &str) -> String {
    let error = image(svg, 400).unwrap_err();
    assert!(matches!(error, PlotError::Drawing { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn paper_is_white_and_a_line_has_its_colour_where_it_runs() {
    let image =
        picture(|canvas| canvas.line(&[(50.0, 100.0), (350.0, 100.0)], Stroke::solid(BLUE, 6.0)));
    for (x, y) in [(0, 0), (399, 199), (200, 96), (200, 103), (49, 100), (350, 100)] {
        assert_eq!(pixel(&image, x, y), WHITE, "{x},{y}");
    }
    for (x, y) in [(50, 97), (200, 100), (349, 102)] {
        assert_eq!(pixel(&image, x, y), (0, 114, 178), "{x},{y}");
    }
}

#[test]
fn a_line_turns_with_a_round_corner_and_has_gaps_if_it_is_dashed() {
    let image = picture(|canvas| {
        let places = [(50.0, 150.0), (50.0, 50.0), (350.0, 50.0)];
        canvas.line(&places, Stroke::solid(BLUE, 40.0))?;
        let dashes = Some((20.0, 10.0));
        let stroke = Stroke { dashes, ..Stroke::solid(BLUE, 4.0) };
        canvas.line(&[(100.0, 150.0), (300.0, 150.0)], stroke)
    });
    assert_eq!(pixel(&image, 32, 32), WHITE);
    assert_eq!(pixel(&image, 38, 38), (0, 114, 178));
    assert_eq!(pixel(&image, 110, 150), (0, 114, 178));
    assert_eq!(pixel(&image, 125, 150), WHITE);
    assert_eq!(pixel(&image, 140, 150), (0, 114, 178));
}

#[test]
fn a_shape_is_filled_with_its_colour_and_its_opacity() {
    let image = picture(|canvas| {
        let corners = [(50.0, 50.0), (150.0, 50.0), (150.0, 150.0), (50.0, 150.0)];
        canvas.polygon(&corners, RGBColor(0, 0, 0).mix(0.5))
    });
    let (grey, _, _) = pixel(&image, 100, 100);
    assert!((127..=128).contains(&grey), "{grey}");
    assert_eq!(pixel(&image, 49, 100), WHITE);
    assert_eq!(pixel(&image, 150, 100), WHITE);
}

#[test]
fn a_wider_image_is_the_same_picture_and_its_last_row_is_whole() {
    let size = Size { width_px: 400, height_px: 201 };
    let svg = canvas::document(size, "", "", |_| Ok(())).unwrap();
    for (width_px, height_px) in [(400, 201), (800, 402), (1000, 503), (320, 161), (7680, 3860)] {
        let image = image(&svg, width_px).unwrap();
        assert_eq!((image.width(), image.height()), (width_px, height_px));
    }
}

#[test]
fn text_stands_at_its_anchor() {
    // 'H' of 40 pixels: 29.6 wide with its margins of 3.8, 28.6 high.
    for (horizontal, left, right) in
        [(HPos::Left, 204, 225), (HPos::Center, 189, 210), (HPos::Right, 174, 195)]
    {
        for (vertical, top, bottom) in
            [(VPos::Top, 102, 129), (VPos::Center, 85, 113), (VPos::Bottom, 61, 89)]
        {
            let ink = inked_text("H", (horizontal, vertical)).expect("ink");
            for (is, expected) in ink.into_iter().zip([left, top, right, bottom]) {
                assert!(
                    is.abs_diff(expected) <= 1,
                    "{ink:?}, not {left}, {top}, {right}, {bottom}"
                );
            }
        }
    }
}

#[test]
fn a_letter_that_the_font_lacks_is_a_box_and_spaces_leave_no_ink() {
    let anchor = (HPos::Left, VPos::Center);
    assert_eq!(inked_text("\u{a0} ", anchor), None);
    assert_eq!(inked_text("水", anchor), inked_text("\u{10ffff}", anchor));
    let lettering = Lettering { size_px: 40.0, colour: INK, anchor };
    let image = picture(|canvas| canvas.text("水", (200.0, 100.0), lettering));
    let [left, top, right, bottom] = ink(&image).expect("ink");
    assert!(right - left > 10 && bottom - top > 20);
    let middle = u32::midpoint(top, bottom);
    assert_ne!(pixel(&image, left, middle), WHITE);
    assert_eq!(pixel(&image, u32::midpoint(left, right), middle), WHITE);
    assert_ne!(pixel(&image, right, middle), WHITE);
}

#[test]
fn text_between_tags_is_one_line_whatever_its_lines_are() {
    let text = |content: &str| {
        let text = "<text x=\"200\" y=\"100\" dy=\"0.5ex\" text-anchor=\"middle\" \
                    font-family=\"x\" font-size=\"40\" opacity=\"1\" fill=\"#000000\">";
        image(&around(&format!("{text}{content}</text>")), 400).unwrap()
    };
    assert!(text("a &lt; b") == text("\n  a <![CDATA[<]]>\r\n\tb \n"));
    assert!(text("a b") != text("a\u{a0}\u{a0}b"));
}

#[test]
fn text_that_is_not_a_document_of_ours_is_refused_with_its_reason() {
    for svg in ["", "no XML", "<svg", "<svg/>", "<html xmlns=\"http://www.w3.org/1999/xhtml\"/>"] {
        problem(svg);
    }
    let dtd = "<!DOCTYPE svg [<!ENTITY a \"b\">]>";
    problem(&format!("{dtd}{}", around("&a;")));
    for (content, reason) in [
        ("<script/>", "'script': it is unknown"),
        ("<g><rect/></g>", "'g': it contains elements"),
        ("<rect x=\"1\"/>", "'rect': the attribute 'stroke' is missing"),
        ("<polygon points=\"1,1\" transform=\"\"/>", "unknown attribute 'transform'"),
        ("<polygon points=\"1,1 2\" fill=\"#000000\" opacity=\"1\"/>", "'1,1 2' of 'points'"),
        ("<polygon points=\"\" fill=\"red\" opacity=\"1\"/>", "'red' of 'fill'"),
        ("<polygon points=\"\" fill=\"#000000\" opacity=\"NaN\"/>", "'NaN' of 'opacity'"),
        ("<polygon points=\"1e9,0\" fill=\"#000000\" opacity=\"1\"/>", "'1e9,0' of 'points'"),
        ("<rect xmlns=\"other\"/>", "'rect': it is not of SVG"),
    ] {
        let problem = problem(&around(content));
        assert!(problem.contains(reason), "{content}: {problem}");
    }
    assert!(problem(&around("").replace("400 200", "0 200")).contains("'0 0 0 200' of 'viewBox'"));
    assert!(problem(&around("").replace("400 200", "1 20")).contains("8000 pixels high"));
    let deep = format!("{}{}", "<g>".repeat(200_000), "</g>".repeat(200_000));
    assert!(problem(&around(&deep)).contains("contains elements"));
}

fn drawn_or_refused<T>(result: Result<T, PlotError>) {
    if let Err(error) = result {
        assert!(matches!(error, PlotError::Drawing { .. }), "{error:?}");
    }
}

/// A number of a document of 400 by 200, seldom one that it cannot have.
fn hostile_number(range: Range<f32>) -> impl Strategy<Value = String> {
    let odd = vec!["400", "1", "0", "-0", "1e-45", "-400", "800", "801", "NaN", "inf", "1e39", ""];
    prop_oneof![
        30 => range.prop_map(|number| number.to_string()),
        1 => prop::sample::select(odd).prop_map(str::to_owned),
    ]
}

fn hostile_element() -> impl Strategy<Value = String> {
    let places = prop::collection::vec(hostile_number(-400.0..800.0), 2..12);
    let lengths = (hostile_number(0.0..400.0), hostile_number(0.0..400.0));
    let texts = "\\PC{0,8}|\u{feff}|[a-zA-Z ]{0,40}";
    (0..5, places, lengths, texts).prop_map(|(kind, places, (a, b), text)| {
        let (x, y) = (&places[0], &places[1]);
        let points = places.windows(2).fold(String::new(), |mut points, pair| {
            write!(points, "{},{} ", pair[0], pair[1]).expect("a string takes it");
            points
        });
        let text = text.replace(['&', '<'], "");
        let ink = "opacity=\"0.5\" fill=\"#102030\" stroke=\"none\"";
        match kind {
            0 => format!("<rect x=\"{x}\" y=\"{y}\" width=\"{a}\" height=\"{b}\" {ink}/>"),
            1 => format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{a}\" stroke-width=\"1\" {ink}/>"),
            2 => format!("<polygon points=\"{points}\" opacity=\"1\" fill=\"#000000\"/>"),
            3 => format!(
                "<polyline points=\"{points}\" opacity=\"1\" stroke-width=\"{a}\" \
                 stroke=\"#000000\" fill=\"none\"/>"
            ),
            _ => format!(
                "<text x=\"{x}\" y=\"{y}\" dy=\"0.76em\" text-anchor=\"end\" font-family=\"\" \
                 font-size=\"{a}\" opacity=\"1\" fill=\"#000000\">{text}</text>"
            ),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_text_is_an_image_or_an_error(text: String, content: String, attribute: String) {
        let attribute = format!("<rect x=\"{attribute}\"/>");
        for svg in [text.clone(), around(&text), around(&content), around(&attribute)] {
            drawn_or_refused(image(&svg, MIN_WIDTH_PX));
        }
    }

    #[test]
    fn any_numbers_are_an_image_or_an_error(
        elements in prop::collection::vec(hostile_element(), 1..4),
        height in 1..=400u32,
    ) {
        let svg = around(&elements.concat());
        drawn_or_refused(image(&svg.replace("400 200", &format!("400 {height}")), MIN_WIDTH_PX));
        drawn_or_refused(image(&svg.replace("400 200", "400 2"), MAX_WIDTH_PX));
    }

    #[test]
    fn a_document_with_a_damaged_byte_is_an_image_or_an_error(at in 0..2_000usize, byte in 0..128u8) {
        let size = Size { width_px: 400, height_px: 200 };
        let svg = canvas::document(size, "title", "description", |canvas| {
            let lettering =
                Lettering { size_px: 20.0, colour: INK, anchor: (HPos::Left, VPos::Top) };
            canvas.text("text", (10.0, 10.0), lettering)?;
            canvas.line(&[(50.0, 100.0), (350.0, 100.0)], Stroke::solid(BLUE, 6.0))
        })
        .unwrap();
        let mut bytes = svg.into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        let damaged = String::from_utf8(bytes).expect("all of it is ASCII");
        // Not drawn: a byte of the size makes an image that takes long.
        drawn_or_refused(Document::read(&damaged));
    }
}
