use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn parse_text(text: &str) -> Result<Site, SiteError> {
    parse(Path::new("l.txt"), text.as_bytes()).map(|source| source.site)
}

/// The example of the module's documentation.
fn example() -> String {
    let source = include_str!("mod.rs");
    let block = source.split("//! ```text\n").nth(1).unwrap().split("//! ```").next().unwrap();
    let lines: Vec<_> = block.lines().map(|line| line.trim_start_matches("//!")).collect();
    lines.join("\n")
}

#[test]
fn the_documented_example_is_a_site() {
    // Each line keeps the blank behind the comment marks, which is no deeper than another.
    let site = parse_text(&example()).unwrap();
    let names: Vec<_> = site.pages.iter().map(|page| page.name.as_str()).collect();
    assert_eq!(names, ["front", "other"]);
    let after: Vec<_> = site.pages[0].loads.iter().map(|load| load.after).collect();
    assert_eq!(after, [None, Some(0), Some(1), Some(0), Some(3)]);
    assert_eq!(site.pages[0].loads[4].wait, Duration::from_millis(50));
    let after: Vec<_> = site.pages[1].loads.iter().map(|load| load.after).collect();
    assert_eq!(after, [None, Some(0), None]);
    assert_eq!(site.pages[1].loads[1].resource, site.pages[0].loads[1].resource);
    let font = &site.resources[2];
    assert_eq!((font.kind, font.body_len()), (ResourceKind::Font, 30_000));
    assert_eq!(font.url, "http://site.test/text.woff2");
    assert_eq!(font.headers[1].1, "max-age=31536000, immutable");
    assert_eq!(site.resources[4].kind, ResourceKind::Other);
    assert_eq!(site.resources[5].body_len(), DEFAULT_BYTES);
}

#[test]
fn a_list_without_page_names_is_one_page() {
    let site =
        parse_text("\u{feff}/\n/a.js 5\n\n# no\n\t/b.css 0 status=404 etag=\"x\"\n").unwrap();
    assert_eq!((site.pages.len(), site.pages[0].name.as_str()), (1, "list"));
    assert_eq!(site.pages[0].loads[2].after, Some(1));
    assert_eq!(site.resources[0].kind, ResourceKind::Html);
    let last = &site.resources[2];
    assert_eq!((last.status, last.body_len()), (404, 0));
    assert_eq!(last.header_values("etag").collect::<Vec<_>>(), ["\"x\""]);
    assert!(site.pages[0].loads.iter().all(|load| !load.is_inferred));
}

#[test]
fn wrong_lines_are_reported_with_their_number() {
    for (text, part) in [
        ("", "no resource"),
        ("[a]\n[b]\n/x", "line 2 cannot be used: the page 'a' ends here"),
        ("/x\n[a]\n", "line 2 cannot be used: the page 'a' ends here"),
        ("[a]\n/x\n[a]\n/y", "line 3 cannot be used: a page cannot have the name 'a'"),
        ("/x\n/x\n", "line 2 cannot be used: line 1 of this page loads '/x' already"),
        ("[a]\n/x 5\n[b]\n/x 5", "line 4 cannot be used: '/x' has its size"),
        ("/x\n \t/y", "line 2 cannot be used: indented with"),
        ("data:,x", "line 1 cannot be used: 'data:,x' is not an http"),
        ("http://[/", "line 1 cannot be used: 'http://[/'"),
        ("/x 2GB", "line 1 cannot be used: a body of 2000000000 bytes"),
        ("/x status=304", "line 1 cannot be used: status 304"),
        ("/x bogus", "line 1 cannot be used: unknown option 'bogus'"),
    ] {
        let error = parse_text(text).unwrap_err().to_string();
        assert!(error.starts_with("l.txt: ") && error.contains(part), "{text:?}: {error}");
    }
    assert!(read(Path::new("none")).is_err());
}

#[test]
fn bodies_depend_on_the_url_alone() {
    let one = parse_text("/a 100\n/b 100").unwrap();
    let other = parse_text("/b 100").unwrap();
    assert_eq!(one.resources[1], other.resources[0]);
    assert_ne!(one.resources[0].body_bytes(), one.resources[1].body_bytes());
    assert_eq!(one.resources[0].body_bytes().len(), 100);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(source) = parse(Path::new("l"), &bytes) {
            source.site.validate().unwrap();
        }
    }

    #[test]
    fn lists_that_are_read_are_valid(
        lines in prop::collection::vec("[ ]{0,4}(/[a-e]|\\[[a-c]\\]|http://[a-c]/)( [0-9]{1,3}KB)?( no-store| etag)?", 1..20)
    ) {
        if let Ok(source) = parse(Path::new("l"), lines.join("\n").as_bytes()) {
            source.site.validate().unwrap();
        }
    }
}
