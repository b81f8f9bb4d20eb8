//! `haypile trace`

pub mod convert;
pub mod generate;
pub mod info;
