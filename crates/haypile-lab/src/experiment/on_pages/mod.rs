//! Experiments that load pages: columns of a matrix, each a kind of cache, which load the same visits.

pub(crate) mod improvement;
pub(crate) mod matrix;
pub(crate) mod measure;
pub mod options;
