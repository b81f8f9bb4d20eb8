//! Lists of resources: texts that a user writes.
//!
//! A line has a URL, and after it, in any order and separated by blanks, a size and options. A
//! line that is indented deeper is caused by the nearest line above it that is indented less; lines
//! that are not indented are requested when the page begins. Blank lines, and the rest of a line
//! from a `#` that follows a blank or begins the line, count for nothing. A line `[NAME]` begins
//! another page; without one, all lines are one page. A resource that occurs again, in another
//! page, has its size and options where it occurs first, and there only.
//!
//! ```text
//! [front]
//! /index.html 20KB no-cache etag
//!   style.css 8KB max-age=3600
//!     text.woff2 30KB max-age=31536000,immutable
//!   app.js 120KB max-age=3600 etag="v1"
//!     /api/news 2KB type=application/json no-store wait=50ms
//! [other]
//! /other.html                      # 10KB, without headers for caches
//!   style.css
//! http://images.test/logo.png 4KB expires=0
//! ```
//!
//! | word | meaning |
//! |---|---|
//! | first word | URL; a relative one is resolved against `http://site.test/` |
//! | `20KB` | size of the body, as [`haypile::ByteSize`] reads it; [`DEFAULT_BYTES`] if missing |
//! | `max-age=N`, `no-store`, … | [directives](DIRECTIVES) of `Cache-Control`, with commas or as several words |
//! | `etag`, `etag="x"` | an entity tag: one made of the URL, or this one |
//! | `vary=NAME`, `expires=0`, `age=N` | these headers, with a value without blanks |
//! | `type=TYPE` | the media type; if missing, it follows from the URL's extension |
//! | `status=N` | the status, 200 if missing |
//! | `wait=Nms` | the wait between the end of the line that causes this one, and its request |

mod line;

use std::collections::HashMap;
use std::path::Path;

use siphasher::sip::SipHasher13;
use url::Url;

use super::body::SiteBody;
use super::error::SiteError;
use super::model::{MAX_LOADS_PER_PAGE, MAX_PAGES, MAX_RESOURCES, Site};
use super::names::PageNames;
use super::page::{Page, PageLoad};
use super::resource::{Resource, ResourceKind, resource_url};
use super::source::{SiteSource, read_bounded, text_of};
use line::ListLine;

pub use line::DIRECTIVES;

/// The largest size of a list of resources, in bytes.
pub const MAX_LIST_BYTES: u64 = 64 << 20;

/// The size in bytes of a resource whose line in a list states none.
pub const DEFAULT_BYTES: u64 = 10_000;

/// The base address against which relative URLs in a list are resolved.
pub const BASE_URL: &str = "http://site.test/";

/// Reads a list of resources of at most [`MAX_LIST_BYTES`].
///
/// # Errors
///
/// [`SiteError::Io`], [`SiteError::TooLarge`], and those of [`parse`].
pub fn read(path: &Path) -> Result<SiteSource, SiteError> {
    let advice = "a list has one resource per line; split it into several";
    parse(path, &read_bounded(path, MAX_LIST_BYTES, advice)?)
}

/// Parses a list of resources; `path` is its name in messages. There are no warnings: a line that
/// cannot be used is an error.
///
/// # Errors
///
/// [`SiteError::Line`] for the first line that breaks the grammar or a limit, and
/// [`SiteError::Empty`] for a list, or a page of it, without a resource.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<SiteSource, SiteError> {
    let mut reader = ListReader::default();
    let mut last = 0;
    for (line, text) in (1..).zip(text_of(path, bytes)?.lines()) {
        let wrong = |wrong| SiteError::Line { path: path.into(), line, wrong };
        reader.read(text, line).map_err(wrong)?;
        last = line;
    }
    if reader.site.pages.is_empty() {
        let wrong = "no resource; write one per line, as in /index.html 20KB max-age=60";
        return Err(SiteError::Empty { path: path.into(), wrong });
    }
    let wrong = |wrong| SiteError::Line { path: path.into(), line: last, wrong };
    reader.last_page_is_complete().map_err(wrong)?;
    reader.site.validate()?;
    Ok(SiteSource { site: reader.site, warnings: Vec::new() })
}

#[derive(Default)]
struct ListReader {
    site: Site,
    names: PageNames,
    /// The index and the line of each resource, by URL.
    known: HashMap<String, usize>,
    /// The line of each of the page's resources, by its index.
    lines: HashMap<usize, usize>,
    /// The indentation and the index of the loads that can be the cause of the next line.
    open: Vec<(usize, usize)>,
}

impl ListReader {
    fn read(&mut self, text: &str, line: usize) -> Result<(), String> {
        let text = line::without_comment(text).trim_end();
        let words = text.trim_start_matches([' ', '\t']);
        if words.is_empty() {
            return Ok(());
        }
        if let Some(name) = words.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            self.last_page_is_complete()?;
            return self.begin_page(name);
        }
        let indent = &text[..text.len() - words.len()];
        if indent.contains('\t') && indent.contains(' ') {
            return Err("indented with blanks and tabs; use one of them".to_owned());
        }
        if self.site.pages.is_empty() {
            self.begin_page("list")?;
        }
        let parsed = ListLine::parse(words)?;
        let resource = self.resource(&parsed)?;
        if let Some(before) = self.lines.insert(resource, line) {
            return Err(format!("line {before} of this page loads '{}' already", parsed.url));
        }
        while self.open.last().is_some_and(|&(depth, _)| depth >= indent.len()) {
            self.open.pop();
        }
        let after = self.open.last().map(|&(_, load)| load);
        let page = self.site.pages.last_mut().expect("a page was begun");
        if page.loads.len() == MAX_LOADS_PER_PAGE {
            return Err(format!("a page has at most {MAX_LOADS_PER_PAGE} resources"));
        }
        self.open.push((indent.len(), page.loads.len()));
        page.loads.push(PageLoad::new(resource, after, parsed.wait));
        Ok(())
    }

    fn begin_page(&mut self, name: &str) -> Result<(), String> {
        if self.site.pages.len() == MAX_PAGES {
            return Err(format!("a list has at most {MAX_PAGES} pages"));
        }
        let unused = self.names.unused(name);
        if unused != name {
            return Err(format!("a page cannot have the name '{name}'; '{unused}' would do"));
        }
        self.site.pages.push(Page { name: unused, loads: Vec::new() });
        self.lines.clear();
        self.open.clear();
        Ok(())
    }

    fn last_page_is_complete(&self) -> Result<(), String> {
        match self.site.pages.last() {
            Some(page) if page.loads.is_empty() => {
                Err(format!("the page '{}' ends here without a resource", page.name))
            }
            _ => Ok(()),
        }
    }

    /// Finds the resource of a line, or adds it.
    fn resource(&mut self, line: &ListLine<'_>) -> Result<usize, String> {
        let base = Url::parse(BASE_URL).expect("a constant");
        let url = base.join(line.url).map_err(|error| format!("'{}': {error}", line.url))?;
        let kind = match line.media_type {
            Some(media_type) => ResourceKind::of_media_type(media_type),
            None if url.path().ends_with('/') => ResourceKind::Html,
            None => ResourceKind::of_path(url.path()).unwrap_or(ResourceKind::Other),
        };
        let url = resource_url(url)
            .ok_or_else(|| format!("'{}' is not an http or https URL, or too long", line.url))?;
        if let Some(&index) = self.known.get(&url) {
            return if line.describes_resource() {
                Err(format!("'{}' has its size and options where it occurs first", line.url))
            } else {
                Ok(index)
            };
        }
        if self.site.resources.len() == MAX_RESOURCES {
            return Err(format!("a list has at most {MAX_RESOURCES} resources"));
        }
        let seed = SipHasher13::new().hash(url.as_bytes());
        let resource = Resource {
            headers: line.headers(kind, seed),
            kind,
            status: line.status.unwrap_or(200),
            body: SiteBody::Generated { bytes: line.bytes.unwrap_or(DEFAULT_BYTES), seed },
            coding: None,
            url,
        };
        resource.check()?;
        self.known.insert(resource.url.clone(), self.site.resources.len());
        self.site.resources.push(resource);
        Ok(self.site.resources.len() - 1)
    }
}

#[cfg(test)]
mod tests;
