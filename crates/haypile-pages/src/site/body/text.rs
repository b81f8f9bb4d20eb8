//! Typed bodies that are texts: documents, style sheets, scripts, JSON and SVG.

use super::filler::Filler;
use super::format::BodyFormat;
use super::{BodyChild, TypedBody};
use crate::site::resource::ResourceKind;

/// The first bytes of a WOFF2 font file.
pub(super) const WOFF2_SIGNATURE: &[u8] = b"wOF2";

/// The text of a generated body (such as HTML), with a comment in its middle that fills it up to its size.
pub(super) struct Frame {
    pub(super) before: String,
    /// The characters that begin and end the comment, or the string, which fills the text up.
    pub(super) comment: (&'static str, &'static str),
    pub(super) after: &'static str,
    /// Whether the comment is there even if it is empty.
    has_comment: bool,
}

impl Frame {
    /// Returns the size of the body's text in bytes, before it is filled up to the body's size.
    pub(super) fn len(&self) -> usize {
        let comment = if self.has_comment { self.comment_len() } else { 0 };
        self.before.len() + comment + self.after.len()
    }

    /// Returns the body's text, filled up to `bytes` bytes, at least [`Self::len`].
    pub(super) fn filled(&self, bytes: usize, filler: &mut Filler) -> Vec<u8> {
        let missing = bytes.saturating_sub(self.before.len() + self.after.len());
        let mut text = Vec::with_capacity(bytes);
        text.extend(self.before.as_bytes());
        match missing.checked_sub(self.comment_len()) {
            Some(letters) => {
                text.extend(self.comment.0.as_bytes());
                text.extend(filler.letters(letters));
                text.extend(self.comment.1.as_bytes());
            }
            // Too little for a comment: blanks mean nothing there.
            None => text.extend(std::iter::repeat_n(b' ', missing)),
        }
        text.extend(self.after.as_bytes());
        text
    }

    fn comment_len(&self) -> usize {
        self.comment.0.len() + self.comment.1.len()
    }
}

/// Generates the text of a body (such as HTML) that loads its children, such as scripts and images.
pub(super) fn frame(body: &TypedBody) -> Frame {
    let frame =
        |before: String, comment, after| Frame { before, comment, after, has_comment: false };
    let loads = |is_wanted: fn(ResourceKind) -> bool| -> String {
        let wanted = body.children.iter().filter(|child| is_wanted(child.kind));
        wanted.map(|child| load(body.format, child)).collect()
    };
    match body.format {
        BodyFormat::Html => {
            let in_head = loads(is_of_head);
            let in_body = loads(|kind| !is_of_head(kind));
            let marks = "<i>x</i>".repeat(body.marks as usize);
            let before = format!(
                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
                 <link rel=\"icon\" href=\"data:,\"><title>Page</title>\n\
                 {in_head}</head><body>\n{in_body}<p class=\"m\">{marks}</p>\n"
            );
            frame(before, ("<!--", "-->"), "</body></html>\n")
        }
        BodyFormat::Json => {
            Frame { has_comment: true, ..frame("{".to_owned(), ("\"filler\":\"", "\""), "}\n") }
        }
        BodyFormat::Svg => frame(
            "<svg xmlns=\"http://www.w3.org/2000/svg\">".to_owned(),
            ("<!--", "-->"),
            "</svg>",
        ),
        // Formats of text without a document around them: comments are those of C.
        _ => frame(loads(|_| true), ("/*", "*/"), "\n"),
    }
}

/// Whether a document loads a child in its head.
fn is_of_head(kind: ResourceKind) -> bool {
    matches!(kind, ResourceKind::Css | ResourceKind::Script)
}

fn load(format: BodyFormat, child: &BodyChild) -> String {
    match format {
        BodyFormat::Html => load_by_document(child),
        BodyFormat::Css => load_by_sheet(child),
        BodyFormat::Script => load_by_script(child),
        // Refused by the check of the body.
        _ => String::new(),
    }
}

/// Elements that need no permission of the other host (CORS), except for fonts, for which browsers always need it.
fn load_by_document(child: &BodyChild) -> String {
    // The names of character references are letters, so that `&copy;` of a query would be one.
    let url = child.url.replace('&', "&amp;");
    match child.kind {
        ResourceKind::Css => format!("<link rel=\"stylesheet\" href=\"{url}\">\n"),
        ResourceKind::Script => format!("<script src=\"{url}\" defer></script>\n"),
        ResourceKind::Html => format!("<iframe src=\"{url}\" title=\"frame\"></iframe>\n"),
        // The text of an element of style has no character references.
        ResourceKind::Font => format!("<style>{}</style>\n", load_by_sheet(child)),
        _ => format!("<img src=\"{url}\" alt=\"\">\n"),
    }
}

fn load_by_sheet(BodyChild { url, kind, mark }: &BodyChild) -> String {
    let url = in_string(url);
    match kind {
        ResourceKind::Css => format!("@import \"{url}\";\n"),
        ResourceKind::Font => format!(
            "@font-face{{font-family:m{mark};src:url(\"{url}\") format(\"woff2\")}}\n\
             .m i:nth-child({mark}){{font-family:m{mark}}}\n"
        ),
        _ => format!(".m i:nth-child({mark}){{background-image:url(\"{url}\")}}\n"),
    }
}

fn load_by_script(child: &BodyChild) -> String {
    let url = in_string(&child.url);
    match child.kind {
        ResourceKind::Script => format!(
            "{{const s=document.createElement(\"script\");s.src=\"{url}\";\
             document.head.append(s)}}\n"
        ),
        ResourceKind::Css => format!(
            "{{const l=document.createElement(\"link\");l.rel=\"stylesheet\";l.href=\"{url}\";\
             document.head.append(l)}}\n"
        ),
        ResourceKind::Html => format!(
            "{{const f=document.createElement(\"iframe\");f.src=\"{url}\";\
             document.body.append(f)}}\n"
        ),
        ResourceKind::Font => {
            format!("new FontFace(\"f\",\"url('{url}')\").load().catch(()=>0);\n")
        }
        ResourceKind::Image => format!("new Image().src=\"{url}\";\n"),
        // A browser reads no more of a body than its script does, and the load of the rest never ends.
        ResourceKind::Other => {
            format!("fetch(\"{url}\").then(r=>r.text()).catch(()=>0);\n")
        }
    }
}

/// A URL in a string of a style sheet or a script. Quotes never occur in a URL, and backslashes only in its query.
fn in_string(url: &str) -> String {
    url.replace('\\', "\\\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_svg_are_well_formed_at_every_size() {
        for extra in [0, 1, 5, 7, 100] {
            for format in [BodyFormat::Json, BodyFormat::Svg] {
                let mut body =
                    TypedBody { format, bytes: 0, seed: 3, children: Vec::new(), marks: 0 };
                body.bytes = body.min_bytes() + extra;
                let text = String::from_utf8(body.bytes()).unwrap();
                if format == BodyFormat::Json {
                    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
                } else {
                    assert!(text.starts_with("<svg") && text.ends_with("</svg>"), "{text}");
                }
            }
        }
    }

    #[test]
    fn imports_come_before_rules() {
        let child = |kind, mark| BodyChild { url: "http://a/x".into(), kind, mark };
        let body = TypedBody {
            format: BodyFormat::Css,
            bytes: 400,
            seed: 1,
            children: vec![child(ResourceKind::Css, 0), child(ResourceKind::Font, 2)],
            marks: 0,
        };
        let text = String::from_utf8(body.bytes()).unwrap();
        assert!(text.starts_with("@import \"http://a/x\";\n@font-face{font-family:m2;"), "{text}");
        assert!(text.contains(".m i:nth-child(2){font-family:m2}"), "{text}");
    }
}
