//! Bodies of resources: described by a recipe, and made when they are asked for.
//!
//! A HAR's bodies are [`SiteBody::Generated`]: random bytes of the size that the HAR has. The
//! generator's are [`SiteBody::Typed`]: valid files of their type that load their children, so that
//! a browser loads a generated site as the page loader does. Fonts are the exception: their bytes
//! begin as WOFF2 does and are random otherwise. A browser requests such a font, stores it, and
//! then draws with another. For browsers the bodies of a HAR are typed as well
//! ([`super::replay`]); a content coding makes them [`SiteBody::Encoded`].

mod coding;
mod filler;
mod format;
mod gif;
mod png;
mod text;

use serde::{Deserialize, Serialize};

use super::resource::{MAX_BODY_BYTES, ResourceKind, check_url};
use filler::Filler;

pub use coding::{ContentCoding, EncodedBody, RecordedCoding};
pub use format::BodyFormat;

/// The largest number of children of a body.
const MAX_CHILDREN: usize = 10_000;

/// The largest mark, so that a document of marks stays small.
const MAX_MARK: u32 = 10_000;

/// A description from which a resource's body is generated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SiteBody {
    /// Random bytes.
    Generated {
        /// The size in bytes; at most [`MAX_BODY_BYTES`].
        bytes: u64,
        /// The seed of the bytes.
        seed: u64,
    },
    /// A valid file of its type that loads its children.
    Typed(TypedBody),
    /// The same, in a content coding.
    Encoded(EncodedBody),
}

/// The description of a generated body that is a valid file and loads other files (its children).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypedBody {
    /// The file format (such as HTML) of the generated body.
    pub format: BodyFormat,
    /// The size of the body in bytes, from [`Self::min_bytes`] to [`MAX_BODY_BYTES`]; comments, or
    /// the format's equivalent, fill it up to this size.
    pub bytes: u64,
    /// The seed of the random bytes that fill the body up.
    pub seed: u64,
    /// The files that a browser requests because of this body, in this order. A document has style
    /// sheets and scripts first, and a style sheet has other style sheets first.
    pub children: Vec<BodyChild>,
    /// The number of elements of an HTML document that use an image or font of a style sheet; 0 for
    /// other formats.
    pub marks: u32,
}

/// A file that a generated body loads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyChild {
    /// The URL of the loaded file, as [`super::Resource::url`].
    pub url: String,
    /// The type of the loaded file, which decides how a browser loads it.
    pub kind: ResourceKind,
    /// The number, from 1, of the HTML document's element that uses this image or font of a style
    /// sheet. A browser requests a font only if a text is drawn with it.
    pub mark: u32,
}

impl SiteBody {
    /// Returns the size of the response body as it is sent, in bytes.
    #[expect(clippy::len_without_is_empty, reason = "an empty body is nothing special")]
    pub fn len(&self) -> u64 {
        match self {
            Self::Generated { bytes, .. } => *bytes,
            Self::Typed(typed) => typed.bytes,
            Self::Encoded(encoded) => encoded.bytes,
        }
    }

    /// Generates the bytes of the response body: the same each time, on every machine.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Generated { bytes, seed } => Filler::new(*seed).binary(len_of(*bytes)),
            Self::Typed(typed) => typed.bytes(),
            Self::Encoded(encoded) => encoded.encode(),
        }
    }

    /// Returns the content coding (such as gzip) of the response body, which `Content-Encoding` has
    /// to name; `None` if it has none.
    pub fn coding(&self) -> Option<ContentCoding> {
        match self {
            Self::Encoded(encoded) => Some(encoded.coding),
            _ => None,
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.len() > MAX_BODY_BYTES {
            return Err(format!("a body of {} bytes, and at most {MAX_BODY_BYTES}", self.len()));
        }
        match self {
            Self::Generated { .. } => Ok(()),
            Self::Typed(typed) => typed.check(),
            Self::Encoded(encoded) => encoded.check(),
        }
    }
}

impl TypedBody {
    /// Returns the smallest size, in bytes, of a file of this body's format that loads the body's
    /// children.
    pub fn min_bytes(&self) -> u64 {
        match self.format {
            BodyFormat::Png => png::MIN_BYTES as u64,
            BodyFormat::Woff2 => text::WOFF2_SIGNATURE.len() as u64,
            BodyFormat::Gif | BodyFormat::Blank => 0,
            _ => text::frame(self).len() as u64,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let (bytes, mut filler) = (len_of(self.bytes), Filler::new(self.seed));
        match self.format {
            BodyFormat::Png => png::file(bytes, &mut filler),
            BodyFormat::Woff2 => {
                let mut file = text::WOFF2_SIGNATURE.to_vec();
                let missing = bytes.saturating_sub(file.len());
                file.extend(filler.binary(missing));
                file
            }
            BodyFormat::Gif => gif::file(bytes, &mut filler),
            BodyFormat::Blank => vec![b' '; bytes],
            _ => text::frame(self).filled(bytes, &mut filler),
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.children.len() > MAX_CHILDREN {
            let count = self.children.len();
            return Err(format!("a body with {count} children, and at most {MAX_CHILDREN}"));
        }
        if self.marks > MAX_MARK || self.children.iter().any(|child| child.mark > MAX_MARK) {
            return Err(format!("a mark of a body is beyond {MAX_MARK}"));
        }
        for child in &self.children {
            check_url(&child.url).map_err(|wrong| format!("a child of its body: {wrong}"))?;
            if !self.format.loads(child.kind) {
                return Err(format!("a {} file does not load '{}'", self.format, child.url));
            }
        }
        let least = self.min_bytes();
        if self.bytes < least {
            return Err(format!(
                "a body of {} bytes; a {} file with {} children has at least {least}",
                self.bytes,
                self.format,
                self.children.len()
            ));
        }
        Ok(())
    }
}

fn len_of(bytes: u64) -> usize {
    usize::try_from(bytes).expect("validated: at most MAX_BODY_BYTES")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(url: &str, kind: ResourceKind) -> BodyChild {
        BodyChild { url: format!("http://a/{url}"), kind, mark: 1 }
    }

    fn typed(format: BodyFormat, children: Vec<BodyChild>) -> TypedBody {
        let mut typed = TypedBody { format, bytes: 0, seed: 7, children, marks: 2 };
        typed.bytes = typed.min_bytes();
        typed
    }

    #[test]
    fn every_format_has_exactly_its_size_from_the_smallest_on() {
        for format in BodyFormat::ALL {
            let least = typed(format, Vec::new()).bytes;
            for extra in (0..40).chain([500, 70_000]) {
                let body = TypedBody { bytes: least + extra, ..typed(format, Vec::new()) };
                assert_eq!(body.check(), Ok(()), "{format}");
                let bytes = SiteBody::Typed(body.clone()).bytes();
                assert_eq!(bytes.len() as u64, body.bytes, "{format} {extra}");
                assert_eq!(bytes, SiteBody::Typed(body).bytes(), "{format} {extra}");
            }
        }
    }

    #[test]
    fn formats_load_the_children_that_they_can() {
        let image = || vec![child("x.png", ResourceKind::Image)];
        for format in [BodyFormat::Html, BodyFormat::Css, BodyFormat::Script] {
            let body = typed(format, image());
            assert_eq!(body.check(), Ok(()));
            let bytes = SiteBody::Typed(body).bytes();
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains("\"http://a/x.png\""), "{text}");
        }
        for format in [
            BodyFormat::Png,
            BodyFormat::Json,
            BodyFormat::Svg,
            BodyFormat::Woff2,
            BodyFormat::Gif,
            BodyFormat::Blank,
        ] {
            assert!(typed(format, image()).check().unwrap_err().contains("does not load"));
        }
    }

    #[test]
    fn bodies_that_cannot_be_made_are_refused() {
        let mut small = typed(BodyFormat::Html, vec![child("x.js", ResourceKind::Script)]);
        small.bytes -= 1;
        assert!(small.check().unwrap_err().contains("at least"));
        let far = TypedBody { marks: MAX_MARK + 1, ..typed(BodyFormat::Html, Vec::new()) };
        assert!(far.check().is_err());
        let quoted = typed(BodyFormat::Css, vec![child("\"", ResourceKind::Image)]);
        assert!(quoted.check().is_err());
        assert!(SiteBody::Generated { bytes: MAX_BODY_BYTES + 1, seed: 0 }.check().is_err());
        assert_eq!(SiteBody::Generated { bytes: MAX_BODY_BYTES, seed: 0 }.check(), Ok(()));
    }

    #[test]
    fn recipes_have_short_json() {
        let body = SiteBody::Generated { bytes: 1 << 30, seed: 5 };
        let json = serde_json::to_string(&body).unwrap();
        assert_eq!(json, r#"{"generated":{"bytes":1073741824,"seed":5}}"#);
        let body = SiteBody::Typed(typed(BodyFormat::Html, Vec::new()));
        let json = serde_json::to_string(&body).unwrap();
        assert_eq!(serde_json::from_str::<SiteBody>(&json).unwrap(), body);
    }
}
