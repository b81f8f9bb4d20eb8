//! `haypile trace`

pub(crate) mod convert;
pub(crate) mod generate;
pub(crate) mod info;
