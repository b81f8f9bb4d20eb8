//! HAR files: page loads that a user recorded with a browser's developer tools, or that a service
//! recorded.
//!
//! The reader takes HAR 1.2 as it is found: with missing fields, times of -1, sizes of -1, entries
//! that no page has, or that were recorded twice. It uses the URL, the kind, the size and the
//! headers of responses, and the times and initiators of requests. Texts of bodies are never used:
//! a body has random bytes of the size that the browser transferred, headers apart: `_transferSize` less
//! `headersSize`, else `bodySize` above 0, else `content.size` less `content.compression`, else
//! `Content-Length`, else the size after decoding, which is in a warning. Values of cookies are replaced by as many
//! `x`.
//!
//! - Each page of the HAR is a [`Page`](super::Page). A first and a repeat view are two pages over
//!   the same resources: a 304 is an answer about the resource whose 200 is elsewhere in the HAR.
//!   Many tools leave out the requests that the browser's cache answered: the second page then has
//!   only the others, and a repeat view of all is another visit to the first page.
//! - Only GETs of `http` and `https` URLs that got a response count; the others are in a warning.
//! - An entry comes after the one that the HAR names as its initiator: by a redirect's `Location`,
//!   by `_initiator` (of Chrome, as an object, and of `WebPageTest`, as a URL) or
//!   `_initiator_detail`. Without a name, the initiator is inferred from times and types:
//!   [`PageLoad::is_inferred`](super::PageLoad::is_inferred).
//! - `Date`, `Expires` and `Last-Modified` are shifted by one span, from the HAR's first request to
//!   the time that the caller passes; or everything would be stale.

mod causes;
mod document;
mod entry;
mod headers;
mod pages;
mod resources;
mod size;

use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

use flate2::read::MultiGzDecoder;

use super::error::SiteError;
use super::source::{SiteSource, read_bounded};

/// The largest size of a HAR file, in bytes. Larger files consist mostly of bodies, which are not
/// used.
pub const MAX_HAR_BYTES: u64 = 256 << 20;

/// The largest number of entries in a HAR file, over all pages.
pub const MAX_HAR_ENTRIES: usize = 100_000;

/// The largest number of pages in a HAR file.
pub const MAX_HAR_PAGES: usize = 1_000;

/// Reads a HAR file of at most [`MAX_HAR_BYTES`], which may be compressed by gzip; the times of the
/// site are shifted so that its first request is at `now`.
///
/// # Errors
///
/// [`SiteError::Io`], [`SiteError::TooLarge`], and those of [`parse`].
pub fn read(path: &Path, now: SystemTime) -> Result<SiteSource, SiteError> {
    let advice = "save the HAR without content, or only the page's own requests";
    let bytes = read_bounded(path, MAX_HAR_BYTES, advice)?;
    let bytes = if bytes.starts_with(GZIP) { unpacked(path, &bytes, advice)? } else { bytes };
    parse(path, &bytes, now)
}

/// The beginning of a file that gzip has compressed.
const GZIP: &[u8] = &[0x1F, 0x8B];

/// Returns the contents of a compressed file, which are as bounded as those of any other.
fn unpacked(path: &Path, bytes: &[u8], advice: &'static str) -> Result<Vec<u8>, SiteError> {
    let mut unpacked = Vec::new();
    let mut reader = MultiGzDecoder::new(bytes).take(MAX_HAR_BYTES + 1);
    let io = |source| SiteError::Io { path: path.into(), source };
    reader.read_to_end(&mut unpacked).map_err(io)?;
    if unpacked.len() as u64 > MAX_HAR_BYTES {
        return Err(SiteError::TooLarge { path: path.into(), limit: MAX_HAR_BYTES, advice });
    }
    Ok(unpacked)
}

/// Parses the contents of a HAR file; `path` is its name in messages.
///
/// # Errors
///
/// [`SiteError::Har`] for contents that are not JSON of a HAR, for more than [`MAX_HAR_ENTRIES`]
/// entries or [`MAX_HAR_PAGES`] pages, and for a HAR without a request that can be loaded.
pub fn parse(path: &Path, bytes: &[u8], now: SystemTime) -> Result<SiteSource, SiteError> {
    let fail = |wrong| SiteError::Har { path: path.into(), wrong };
    let log = document::parse(bytes).map_err(fail)?;
    let mut warnings = Vec::new();
    let mut site = resources::collect(&log, now, &mut warnings);
    pages::add(&log, &mut site, &mut warnings);
    if site.pages.is_empty() {
        let skipped = warnings.join("; ");
        return Err(fail(format!("no GET with a response that can be loaded ({skipped})")));
    }
    site.validate()?;
    Ok(SiteSource { site, warnings })
}

#[cfg(test)]
mod tests;
