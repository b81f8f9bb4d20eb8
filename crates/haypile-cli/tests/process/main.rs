//! The program among other processes and files: its input and output through pipes, its files, its
//! JSON, and Ctrl-C.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod bench;
mod cache;
mod compare;
mod documents;
mod experiments;
mod file;
mod files;
mod icons;
mod interrupt;
mod json;
mod lab;
mod pages;
mod pipes;
mod program;
mod proxy;
mod recording;
mod report;
mod rivals;
mod sampling;
mod sources;
mod startup;
mod startup_evidence;
mod torture;
