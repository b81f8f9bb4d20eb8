//! The one measurement of caches, Haypile's own and those of others: the parts of runners, and the program that starts
//! runners.
//!
//! A cache under test is a *subject*, told from others by its name alone. What it has to do is a
//! [`job`]: a directory of keys, values and operations, written once per case and shared by all
//! subjects of the case. A [`runner`] does a job in a process of its own, so that no subject
//! pollutes another's heap, memory can be told per subject, and caches of other languages take part
//! by the same protocol. [`measure`](mod@measure) starts runners, subjects in turns and in random order within
//! blocks, and judges what they say; what it finds are rows of a [`result`](mod@result).
//!
//! ```text
//! job ──> measure ──(process)──> runner ──> subject
//!            └──> result ──> figure, compare (statistics)
//! ```

pub mod compare;
pub mod figure;
pub mod job;
pub mod measure;
pub mod meter;
pub mod parameters;
pub mod reach;
pub mod result;
pub mod rival;
pub mod runner;
pub mod statistics;
pub mod subject;
pub mod torture;
