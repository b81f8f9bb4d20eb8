//! Haypile's C interface. `include/haypile.h` is generated from these sources by `make header`, and
//! its opening text, in `cbindgen.toml`, says what holds for every function.
//!
//! A panic never leaves a function, a failure has a status and a text of its thread, and pointers
//! are checked for null before they are used: see [`call`] and [`pointer`].

#![expect(unsafe_code, reason = "pointers from C; each block says what it relies on")]
#![expect(clippy::doc_markdown, reason = "the documentation is read in a header, as plain text")]
#![expect(
    clippy::missing_safety_doc,
    reason = "one text for all functions: the header begins with what is expected of pointers"
)]

mod cache;
mod call;
mod compute;
mod count;
mod pointer;
mod read;
mod stats;
mod ttl;
mod write;

pub use cache::{
    Cache, haypile_clear, haypile_close, haypile_flush, haypile_open, haypile_version,
};
pub use call::{Status, haypile_last_error};
pub use compute::{Compute, Output, haypile_get_or_compute, haypile_output_append};
pub use count::{haypile_decr, haypile_incr};
pub use read::{haypile_contains, haypile_free, haypile_get, haypile_get_into};
pub use stats::{Stats, haypile_get_stats};
pub use ttl::{HAYPILE_TTL_NEVER, HAYPILE_TTL_OF_CACHE};
pub use write::{haypile_add, haypile_delete, haypile_replace, haypile_set, haypile_touch};
