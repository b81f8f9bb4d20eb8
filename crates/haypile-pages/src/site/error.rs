//! Errors of sites.

use std::io;
use std::path::PathBuf;

/// The error of a site that cannot be read, generated or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SiteError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// A file is larger than the reader accepts.
    #[error("{} has more than {limit} bytes, the limit; {advice}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest number of bytes that is read.
        limit: u64,
        /// Advice on how to get a smaller file.
        advice: &'static str,
    },
    /// A file is not a HAR, or has nothing to load.
    #[error("{}: {wrong}", path.display())]
    Har {
        /// The file.
        path: PathBuf,
        /// The reason, and its place.
        wrong: String,
    },
    /// A line of a list or a manifest cannot be used.
    #[error("{}: line {line} cannot be used: {wrong}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The reason.
        wrong: String,
    },
    /// A list or a manifest is empty.
    #[error("{}: {wrong}", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// The missing part, and an example of it.
        wrong: &'static str,
    },
    /// A manifest names a page that the site does not have.
    #[error("the manifest names the page '{name}', which the site does not have ({known})")]
    UnknownPage {
        /// The name in the manifest.
        name: String,
        /// Some names of pages that the site has.
        known: String,
    },
    /// A resource breaks a rule of sites.
    #[error("resource {index} of the site ('{url}') is invalid: {wrong}")]
    Resource {
        /// The resource's index.
        index: usize,
        /// The resource's URL, or the beginning of it.
        url: String,
        /// The reason.
        wrong: String,
    },
    /// A page breaks a rule of sites.
    #[error("page '{name}' of the site is invalid: {wrong}")]
    Page {
        /// The page's name, or the beginning of it.
        name: String,
        /// The reason.
        wrong: String,
    },
    /// A site has too many things of a kind, or none.
    #[error("a site has 1 to {limit} {what}, and this one has {count}")]
    Count {
        /// The things that are counted.
        what: &'static str,
        /// The number of them.
        count: usize,
        /// The largest number.
        limit: usize,
    },
    /// The settings of a generator fit no site.
    #[error("a site cannot be generated: {wrong}")]
    Generator {
        /// The setting, and the values that are possible.
        wrong: String,
    },
    /// No page of a recording can be loaded by a browser.
    #[error(
        "browsers can load none of the recorded pages: {wrong}; record them again, each from its \
         address on"
    )]
    Replay {
        /// The reasons, with their counts.
        wrong: String,
    },
}
