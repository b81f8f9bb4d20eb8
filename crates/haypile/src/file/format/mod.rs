//! The format of the file: where each word is, and what it means. Pure: nothing here reads or writes.

pub(in crate::file) mod counter;
pub(in crate::file) mod header;
pub(in crate::file) mod lane;
pub(in crate::file) mod layout;
pub(in crate::file) mod owner_slot;
pub(in crate::file) mod record;
pub(in crate::file) mod segment;
pub(in crate::file) mod slot;
pub(in crate::file) mod stamp;
