//! Rules that the stores follow and the simulator predicts: pure functions over plain numbers, so that the two can not
//! disagree.

pub mod counter;
pub mod file;
pub mod memory;
