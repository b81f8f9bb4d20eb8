//! Whole reports of rows made by hand.
