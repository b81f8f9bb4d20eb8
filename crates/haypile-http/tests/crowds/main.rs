//! Crowds: many clients at the same time, an origin that takes its time, and a clock that jumps over it.
//!
//! The numbers of requests and the times are those that an operator expects; docs/http-crowds.md has them
//! with their reasons, and the same crowds on other servers.

mod bench;
mod day;
mod failing;
mod herds;
#[path = "../support/of_length.rs"]
mod of_length;
mod parts;
mod processes;
mod purges;
mod replaced;
mod stalled;
mod stuck;
mod uncacheable;
mod unstored;
mod versions;
