//! Formats of typed bodies.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::site::resource::ResourceKind;

/// The file format of a generated body, such as HTML or PNG.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum BodyFormat {
    /// A document.
    Html,
    /// A style sheet.
    Css,
    /// A script, of JavaScript.
    Script,
    /// Data that scripts fetch.
    Json,
    /// An image of one pixel, as PNG.
    Png,
    /// An image without content, as SVG: for images smaller than a PNG can be.
    Svg,
    /// Bytes that begin as a WOFF2 font does.
    Woff2,
    /// An image of one pixel, as GIF: 35 bytes. A smaller one breaks off, as far as a browser knows.
    Gif,
    /// Blanks, which mean nothing in a document, a style sheet and a script: for files too small to be anything else.
    Blank,
}

impl BodyFormat {
    /// All file formats of generated bodies.
    pub const ALL: [Self; 9] = [
        Self::Html,
        Self::Css,
        Self::Script,
        Self::Json,
        Self::Png,
        Self::Svg,
        Self::Woff2,
        Self::Gif,
        Self::Blank,
    ];

    /// Returns the media type of the file format for `Content-Type`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Css => "text/css; charset=utf-8",
            Self::Script => "text/javascript; charset=utf-8",
            Self::Json => "application/json",
            Self::Png => "image/png",
            Self::Svg => "image/svg+xml",
            Self::Woff2 => "font/woff2",
            Self::Gif => "image/gif",
            Self::Blank => "text/plain; charset=utf-8",
        }
    }

    /// Returns the file extension of the file format.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Css => "css",
            Self::Script => "js",
            Self::Json => "json",
            Self::Png => "png",
            Self::Svg => "svg",
            Self::Woff2 => "woff2",
            Self::Gif => "gif",
            Self::Blank => "txt",
        }
    }

    /// Whether a file of this format can load a resource of this kind, such as a style sheet.
    pub fn loads(self, kind: ResourceKind) -> bool {
        match self {
            Self::Html => kind != ResourceKind::Other,
            Self::Css => {
                matches!(kind, ResourceKind::Css | ResourceKind::Image | ResourceKind::Font)
            }
            Self::Script => true,
            Self::Json | Self::Png | Self::Svg | Self::Woff2 | Self::Gif | Self::Blank => false,
        }
    }
}

impl fmt::Display for BodyFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.extension())
    }
}
