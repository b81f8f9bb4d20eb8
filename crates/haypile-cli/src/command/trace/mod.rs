//! `haypile trace`

pub(crate) mod convert;
pub(crate) mod example;
pub(crate) mod generate;
pub(crate) mod info;
