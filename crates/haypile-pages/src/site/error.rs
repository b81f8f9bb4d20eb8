//! Errors of sites.

use std::io;
use std::path::PathBuf;

/// A site that cannot be read, generated or used.
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
    /// A file is larger than is read.
    #[error("{}: more than {limit} bytes; {advice}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest number of bytes that is read.
        limit: u64,
        /// The way to a smaller file.
        advice: &'static str,
    },
    /// A HAR file that is not one, or that has nothing to load.
    #[error("{}: {wrong}", path.display())]
    Har {
        /// The file.
        path: PathBuf,
        /// The reason, and its place.
        wrong: String,
    },
    /// A line of a list or a manifest that cannot be used.
    #[error("{}: line {line}: {wrong}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The reason.
        wrong: String,
    },
    /// A list or a manifest without anything in it.
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
    #[error("resource {index} ('{url}'): {wrong}")]
    Resource {
        /// The resource's index.
        index: usize,
        /// Its URL, or the beginning of it.
        url: String,
        /// The reason.
        wrong: String,
    },
    /// A page breaks a rule of sites.
    #[error("page '{name}': {wrong}")]
    Page {
        /// The page's name, or the beginning of it.
        name: String,
        /// The reason.
        wrong: String,
    },
    /// A site has too much of something, or nothing.
    #[error("a site has 1 to {limit} {what}, and this one has {count}")]
    Count {
        /// The things that are counted.
        what: &'static str,
        /// The number of them.
        count: usize,
        /// The largest number.
        limit: usize,
    },
    /// A generator's settings that no site can have.
    #[error("a site cannot be generated: {wrong}")]
    Generator {
        /// The setting, and the values that are possible.
        wrong: String,
    },
}
