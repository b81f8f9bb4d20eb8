//! Sites: pages, and the resources that they load, as a page loader and an origin server need them.
//!
//! A [`Site`] is read from a HAR file ([`har`]), from a list of resources ([`list`]), or generated
//! ([`generate`]). It describes its bodies and does not hold them: an origin server makes a body
//! when it is asked for ([`Resource::body_bytes`]). It is stored as JSON, so that a process that
//! serves or loads a site reads it from a file. [`manifest`] decides the order of visits to pages.
//!
//! ```text
//! HAR, list, generator ──> Site ──(JSON)──> origin server, page loader
//! manifest ─────────────> Visits ─────────> page loader
//! ```
//!
//! For browsers, [`replay`] replaces the bodies of a HAR by ones that request what was recorded.
//!
//! Nothing here uses the network or reads a clock.

pub mod body;
mod error;
pub mod generate;
pub mod har;
pub mod list;
pub mod manifest;
mod model;
mod names;
mod page;
mod queries;
pub mod replay;
mod resource;
mod source;

pub use body::{
    BodyChild, BodyFormat, ContentCoding, EncodedBody, RecordedCoding, SiteBody, TypedBody,
};
pub use error::SiteError;
pub use model::{MAX_LOADS_PER_PAGE, MAX_NAME_BYTES, MAX_PAGES, MAX_RESOURCES, Site, SiteCounts};
pub use page::{MAX_WAIT, Page, PageLoad};
pub use queries::QueriedSite;
pub use resource::{
    MAX_BODY_BYTES, MAX_HEADER_BYTES, MAX_HEADERS, MAX_URL_BYTES, Resource, ResourceKind,
};
pub use source::SiteSource;
