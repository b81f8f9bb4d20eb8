use std::io::Read;

use flate2::read::GzDecoder;
use proptest::prelude::*;

use super::*;
use crate::site::body::BodyChild;
use crate::site::resource::ResourceKind;

fn content(format: BodyFormat, children: usize) -> TypedBody {
    let child = |number| BodyChild {
        url: format!("http://site.test/{number}?a={}", "x".repeat(number % 40)),
        kind: ResourceKind::Image,
        mark: 1,
    };
    TypedBody { format, bytes: 0, seed: 5, children: (0..children).map(child).collect(), marks: 1 }
}

/// Decodes a body with a decoder of others.
fn decoded(coding: ContentCoding, bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    match coding {
        ContentCoding::Gzip => GzDecoder::new(bytes).read_to_end(&mut decoded),
        ContentCoding::Brotli => {
            brotli_decompressor::Decompressor::new(bytes, 4096).read_to_end(&mut decoded)
        }
    }
    .unwrap();
    decoded
}

#[test]
fn every_size_on_the_wire_from_the_smallest_on_decodes_to_the_content() {
    for coding in [ContentCoding::Gzip, ContentCoding::Brotli] {
        for (format, children) in [
            (BodyFormat::Html, 3),
            (BodyFormat::Css, 20),
            (BodyFormat::Script, 0),
            (BodyFormat::Png, 0),
            (BodyFormat::Gif, 0),
            (BodyFormat::Woff2, 0),
            (BodyFormat::Blank, 0),
        ] {
            let content = content(format, children);
            let least = EncodedBody::min_bytes(coding, &content);
            for bytes in (least..least + 60).chain([least + 300, 65_600, 70_000, 140_000, 200_003])
            {
                for decoded_bytes in [None, Some(1), Some(bytes * 4), Some(bytes.min(2000) * 5000)]
                {
                    let fitted = EncodedBody::fit(coding, bytes, decoded_bytes, &content);
                    let Some(body) = fitted else {
                        assert!(least == bytes && format == BodyFormat::Blank, "{format} {bytes}");
                        continue;
                    };
                    assert_eq!(body.check(), Ok(()), "{format} {bytes}");
                    let wire = body.encode();
                    assert_eq!(wire.len() as u64, bytes, "{coding:?} {format}");
                    let text = decoded(coding, &wire);
                    assert_eq!(
                        text.len() as u64,
                        body.content.bytes,
                        "{coding:?} {format} {bytes}"
                    );
                    for child in &content.children {
                        assert!(String::from_utf8_lossy(&text).contains(&child.url));
                    }
                }
            }
            let none = EncodedBody::fit(coding, least - 1, None, &content);
            assert!(none.is_none() || format == BodyFormat::Blank, "{coding:?} {format}");
        }
    }
}

#[test]
fn gzip_has_the_size_after_decoding_as_far_as_the_wire_allows() {
    let sized = |bytes, decoded_bytes| {
        let content = content(BodyFormat::Script, 2);
        let body = EncodedBody::fit(ContentCoding::Gzip, bytes, Some(decoded_bytes), &content);
        body.unwrap().content.bytes
    };
    assert_eq!(sized(20_000, 80_000), 80_000);
    assert_eq!(sized(20_000, 1_000_000), 1_000_000);
    // More than deflate can hold, and less than what is transferred.
    assert_eq!(sized(20_000, u64::MAX), 2_000_000);
    assert!((19_000..20_500).contains(&sized(20_000, 100)));
}

#[test]
fn recipes_that_cannot_be_encoded_are_refused() {
    for coding in [ContentCoding::Gzip, ContentCoding::Brotli] {
        let good = EncodedBody::fit(coding, 5000, None, &content(BodyFormat::Html, 3)).unwrap();
        assert_eq!(good.check(), Ok(()));
        assert!(
            EncodedBody { bytes: 100, ..good.clone() }.check().unwrap_err().contains("at least")
        );
        let mut small = good.clone();
        small.content.bytes = 10;
        assert!(small.check().is_err());
        let mut huge = good;
        huge.content.bytes = u64::MAX;
        assert!(huge.check().is_err());
        assert!(EncodedBody::fit(coding, u64::MAX, None, &content(BodyFormat::Html, 0)).is_none());
    }
}

proptest! {
    #[test]
    fn any_fitted_body_decodes(
        children in 0..60_usize, extra in 0..90_000_u64, ratio in 0..2000_u64, is_gzip in any::<bool>(),
    ) {
        let coding = if is_gzip { ContentCoding::Gzip } else { ContentCoding::Brotli };
        let content = content(BodyFormat::Css, children);
        let bytes = EncodedBody::min_bytes(coding, &content) + extra;
        let body = EncodedBody::fit(coding, bytes, Some(bytes * ratio / 100), &content).unwrap();
        prop_assert_eq!(body.check(), Ok(()));
        let wire = body.encode();
        prop_assert_eq!(wire.len() as u64, bytes);
        let text = decoded(coding, &wire);
        prop_assert_eq!(text.len() as u64, body.content.bytes);
        prop_assert_eq!(String::from_utf8(text).unwrap().matches("url(").count(), children);
    }
}
