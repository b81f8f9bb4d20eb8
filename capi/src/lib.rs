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
mod claim;
mod compute;
mod count;
mod describe;
mod fork;
mod group;
mod hit;
mod iterate;
mod lease;
mod many;
mod pinned;
mod pointer;
mod read;
mod refresh;
mod reserve;
mod stats;
mod ttl;
mod version;
mod write;

pub use cache::{
    Cache, haypile_clear, haypile_close, haypile_flush, haypile_open, haypile_version,
};
pub use call::{Status, haypile_last_error};
pub use claim::{Claim, haypile_complete, haypile_release, haypile_try_claim};
pub use compute::{Compute, Output, haypile_get_or_compute, haypile_output_append};
pub use count::{haypile_decr, haypile_incr};
pub use describe::{
    Limits, haypile_bytes, haypile_get_limits, haypile_len, haypile_prometheus, haypile_resize,
    haypile_url, haypile_warnings, haypile_writable_by_others,
};
pub use group::{
    Group, haypile_get_or_compute_in_groups, haypile_invalidate, haypile_set_in_groups,
};
pub use hit::Hit;
pub use iterate::{Keys, haypile_free_keys, haypile_list_keys, haypile_next_key};
pub use lease::{Lease, haypile_get_lease, haypile_set_leased};
pub use many::{
    Entry, HAYPILE_MODE_ADD, HAYPILE_MODE_CAS, HAYPILE_MODE_REPLACE, HAYPILE_MODE_SET, Key, Values,
    haypile_delete_many, haypile_free_values, haypile_get_many, haypile_set_many,
    haypile_values_at, haypile_values_hit,
};
pub use pinned::{
    Pinned, haypile_get_in_place, haypile_get_pinned, haypile_pinned_hit, haypile_unpin,
};
pub use read::{haypile_contains, haypile_free, haypile_get, haypile_get_into};
pub use refresh::{
    Executor, Job, Times, haypile_drop_job, haypile_get_or_refresh, haypile_get_or_refresh_in,
    haypile_run_job,
};
pub use reserve::{Reservation, haypile_cancel, haypile_commit, haypile_reserve};
pub use stats::{Stats, haypile_get_level_stats, haypile_get_stats};
pub use ttl::{HAYPILE_TTL_NEVER, HAYPILE_TTL_OF_CACHE};
pub use version::{
    haypile_cas, haypile_compare_and_delete, haypile_delete_version, haypile_get_if_changed,
    haypile_get_versioned,
};
pub use write::{haypile_add, haypile_delete, haypile_replace, haypile_set, haypile_touch};
