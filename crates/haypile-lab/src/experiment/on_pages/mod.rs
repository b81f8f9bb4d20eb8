//! The common parts of experiments that load pages: each column of a matrix has a kind of cache, and all
//! load the same visits.

pub(crate) mod browser;
pub(crate) mod findings;
pub(crate) mod improvement;
pub(crate) mod links;
pub(crate) mod matrix;
pub(crate) mod measure;
pub mod options;
pub(crate) mod saved;
