//! A process and its threads: the file that it opened, its owner slots, and the fate of both.

pub(in crate::file) mod copied;
pub(in crate::file) mod create;
pub(in crate::file) mod error;
pub(in crate::file) mod make;
pub(in crate::file) mod owners;
pub(in crate::file) mod quiescence;
pub(in crate::file) mod room;
pub(in crate::file) mod session;
pub(in crate::file) mod sessions;
pub(in crate::file) mod threads;
