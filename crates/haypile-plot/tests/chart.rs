//! Charts as SVG documents, and the paths that they can be written to.

use std::path::Path;

use haypile_plot::{Chart, Curve, MAX_CURVES, PlotError, Point, Style, Unit, check_path};
use proptest::prelude::*;
use roxmltree::{Document, Node};

fn curve(name: &str, style: Style, points: &[(u64, f64)]) -> Curve {
    let point = |&(capacity, miss_ratio)| Point { capacity, miss_ratio, error: 0.0 };
    let points = points.iter().map(point).collect();
    Curve { name: name.to_owned(), points, style, optimum: false, chosen: None }
}

fn chart(curves: Vec<Curve>) -> Chart {
    Chart {
        title: "Miss ratios of a trace".to_owned(),
        subtitle: Some("1,000,000 reads of 10,000 keys".to_owned()),
        x_label: "cache size".to_owned(),
        unit: Unit::Bytes,
        curves,
        log_x: true,
    }
}

/// Like what `simulate` gives: the curve of LRU with its error, some policies, the optimum.
fn policies() -> Chart {
    let sizes: Vec<u64> = (16..=30).step_by(2).map(|n| 1 << n).collect();
    let falling = |from: f64, by: f64| -> Vec<(u64, f64)> {
        sizes.iter().zip(0..).map(|(&size, n)| (size, 0.1 + from * by.powi(n))).collect()
    };
    let dense: Vec<(u64, f64)> = (160..=300)
        .map(|n| (2_f64.powf(f64::from(n) / 10.0), n))
        .map(|(size, n)| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size")]
            (size as u64, 0.1 + 0.8 * 0.985_f64.powi(n - 160))
        })
        .collect();
    let mut lru = curve("lru", Style::Line, &dense);
    for point in &mut lru.points {
        point.error = 0.02;
    }
    let mut belady = curve("belady", Style::LineAndMarkers, &falling(0.55, 0.68));
    belady.optimum = true;
    let with_markers = |name, by| curve(name, Style::LineAndMarkers, &falling(0.75, by));
    chart(vec![
        lru,
        with_markers("fifo", 0.78),
        with_markers("sieve", 0.72),
        with_markers("s3fifo", 0.70),
        belady,
    ])
}

fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).expect("well-formed");
    let text = |node: Node<'_, '_>| node.text().unwrap_or_default().trim().to_owned();
    document.descendants().filter(|node| node.has_tag_name("text")).map(text).collect()
}

fn count(texts: &[String], text: &str) -> usize {
    texts.iter().filter(|other| *other == text).count()
}

#[test]
fn an_svg_names_every_curve_once_and_has_a_text_alternative() {
    let svg = policies().svg().unwrap();
    let texts = texts(&svg);
    for text in [
        "lru",
        "fifo",
        "sieve",
        "s3fifo",
        "belady",
        "cache size",
        "miss ratio",
        "64\u{a0}KiB",
        "0\u{a0}%",
    ] {
        assert_eq!(count(&texts, text), 1, "{text} in {texts:?}");
    }
    let document = Document::parse(&svg).unwrap();
    let root = document.root_element();
    assert_eq!(root.attribute("role"), Some("img"));
    let content = |tag| root.children().find(|node| node.has_tag_name(tag)).and_then(|n| n.text());
    assert_eq!(content("title"), Some("Miss ratios of a trace"));
    let description = content("desc").unwrap();
    assert!(description.contains("fifo: 85\u{a0}% at 64\u{a0}KiB, "), "{description}");
}

#[test]
fn an_svg_loads_and_runs_nothing() {
    let svg = policies().svg().unwrap();
    for node in Document::parse(&svg).unwrap().descendants() {
        assert!(
            !["script", "image", "use", "style", "a"].iter().any(|tag| node.has_tag_name(*tag))
        );
        assert!(
            !node.attributes().any(|a| a.name().ends_with("href") || a.name().starts_with("on"))
        );
    }
}

#[test]
fn the_same_chart_gives_the_same_bytes() {
    assert_eq!(policies().svg().unwrap(), policies().svg().unwrap());
}

#[test]
fn names_do_not_overlap() {
    let curves = (0..MAX_CURVES)
        .map(|n| curve(&format!("policy-{n}"), Style::Line, &[(1 << 20, 0.5), (1 << 30, 0.25)]));
    let svg = chart(curves.collect()).svg().unwrap();
    let document = Document::parse(&svg).unwrap();
    let mut places: Vec<(f64, f64)> = document
        .descendants()
        .filter(|node| node.text().is_some_and(|text| text.trim().starts_with("policy-")))
        .filter(|node| node.has_tag_name("text"))
        .map(|node| {
            let number = |name| node.attribute(name).unwrap().parse::<f64>().unwrap();
            (number("y"), number("font-size"))
        })
        .collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert_eq!(places.len(), MAX_CURVES);
    for pair in places.windows(2) {
        assert!(pair[1].0 - pair[0].0 >= pair[0].1, "{places:?}");
    }
    assert!(places[0].0 >= 0.0 && places[MAX_CURVES - 1].0 <= 7200.0);
}

#[test]
fn what_cannot_be_drawn_is_refused_by_name() {
    assert!(matches!(chart(Vec::new()).svg(), Err(PlotError::NoCurves)));
    let many = chart(vec![curve("a", Style::Line, &[(1, 0.5)]); MAX_CURVES + 1]);
    assert!(matches!(many.svg(), Err(PlotError::TooManyCurves { curves: 25 })));
    let empty = chart(vec![curve("sieve", Style::Line, &[])]).svg().unwrap_err();
    assert!(empty.to_string().contains("'sieve' has no points"), "{empty}");
    for miss_ratio in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.1, 1.1] {
        let error =
            chart(vec![curve("lru", Style::Line, &[(1, 0.5), (7, miss_ratio)])]).svg().unwrap_err();
        assert!(error.to_string().contains("cannot draw the curve 'lru' at capacity 7"), "{error}");
    }
    for bad in [f64::NAN, f64::INFINITY, -0.1] {
        let mut unsure = chart(vec![curve("lru", Style::Line, &[(1, 0.5)])]);
        unsure.curves[0].points[0].error = bad;
        assert!(matches!(unsure.svg(), Err(PlotError::BadPoint { capacity: 1, .. })));
    }
}

#[test]
fn a_capacity_of_zero_has_a_place_on_a_linear_axis_only() {
    let mut chart = chart(vec![curve("lru", Style::Line, &[(0, 1.0), (100, 0.5)])]);
    assert!(matches!(chart.svg(), Err(PlotError::BadPoint { capacity: 0, .. })));
    chart.log_x = false;
    assert_eq!(count(&texts(&chart.svg().unwrap()), "0\u{a0}B"), 1);
}

#[test]
fn a_curve_of_one_place_can_be_seen() {
    for style in [Style::Line, Style::Step, Style::Markers, Style::LineAndMarkers] {
        let chart = chart(vec![curve("lru", style, &[(1 << 20, 0.5), (1 << 20, 0.5)])]);
        let svg = chart.svg().unwrap();
        assert!(svg.contains("<circle"), "{style:?}");
    }
}

#[test]
fn names_are_escaped_and_shortened() {
    let long = "s3fifo ".repeat(10_000);
    let chart = chart(vec![
        curve("<b>&\"'\u{0}\u{1b}", Style::Line, &[(1, 0.5), (2, 0.2)]),
        curve(&long, Style::Line, &[(1, 0.4), (2, 0.1)]),
    ]);
    let svg = chart.svg().unwrap();
    assert!(svg.len() < 20_000);
    let texts = texts(&svg);
    assert_eq!(count(&texts, "<b>&\"'"), 1, "{texts:?}");
    assert!(texts.iter().any(|text| text.starts_with("s3fifo") && text.contains('…')));
}

#[test]
fn charts_are_written_as_svg_alone() {
    for path in ["curves.svg", "CURVES.SVG", "missing/curves.svg"] {
        check_path(Path::new(path)).unwrap();
    }
    for path in ["curves.pdf", "curves", ".svg", "svg", "/"] {
        let error = check_path(Path::new(path)).unwrap_err().to_string();
        assert!(error.contains(path) && error.contains("known: .svg"), "{error}");
    }
}

#[test]
fn a_png_is_refused_with_the_name_of_a_converter() {
    for path in ["a/curves.png", "a/curves.PNG"] {
        let error = check_path(Path::new(path)).unwrap_err();
        assert!(matches!(error, PlotError::Png { .. }), "{error:?}");
        let error = error.to_string();
        assert!(error.contains(&format!("'rsvg-convert a/curves.svg -o {path}'")), "{error}");
    }
}

#[test]
fn the_point_to_take_has_a_ring_a_line_and_a_name() {
    let mut chart = policies();
    let before = chart.svg().unwrap();
    chart.curves[3].chosen = Some(1 << 22);
    let after = chart.svg().unwrap();
    assert!(texts(&after).contains(&"s3fifo, 4\u{a0}MiB".to_owned()), "{:?}", texts(&after));
    assert!(!texts(&before).iter().any(|text| text.contains("s3fifo, ")));
    let lines = |svg: &str| svg.matches("<polyline").count();
    assert_eq!(lines(&after), lines(&before) + 2);
    assert!(after.contains(" To take: s3fifo, "), "in the text alternative");
    chart.curves[3].chosen = Some(3);
    let error = chart.svg().unwrap_err().to_string();
    assert!(error.contains("the point to take is one of the curve"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_chart_is_drawn_as_well_formed_xml_inside_the_picture(
        curves in prop::collection::vec(
            (
                any::<String>(),
                prop::collection::vec((1..=u64::MAX, 0..64_u32, 0.0..=1.0f64, 0.0..=1.0f64), 1..20),
                prop::sample::select(vec![
                    Style::Line, Style::Markers, Style::LineAndMarkers, Style::Step,
                ]),
                any::<bool>(),
            ),
            1..=MAX_CURVES,
        ),
        title: String,
        log_x: bool,
        bytes: bool,
    ) {
        let curves = curves.into_iter().map(|(name, points, style, optimum)| {
            let point = |(capacity, shift, miss_ratio, error): (u64, u32, f64, f64)| {
                Point { capacity: (capacity >> shift).max(1), miss_ratio, error }
            };
            let points: Vec<Point> = points.into_iter().map(point).collect();
            // Any point may be the one to take.
            let chosen = points.last().filter(|_| !optimum).map(|point| point.capacity);
            Curve { name, points, style, optimum, chosen }
        });
        let chart = Chart {
            title,
            subtitle: None,
            x_label: "size".to_owned(),
            unit: if bytes { Unit::Bytes } else { Unit::Objects },
            curves: curves.collect(),
            log_x,
        };
        let svg = chart.svg().unwrap();
        let document = Document::parse(&svg);
        prop_assert!(document.is_ok(), "{:?}", document.err());
        let document = document.unwrap();
        for points in document.descendants().filter_map(|node| node.attribute("points")) {
            for pair in points.split_whitespace() {
                let (x, y) = pair.split_once(',').unwrap();
                let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                prop_assert!((0.0..=1280.0).contains(&x) && (0.0..=720.0).contains(&y), "{pair}");
            }
        }
    }
}
