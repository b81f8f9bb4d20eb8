//! The proxy between raw sockets: what clients and origins send that is wrong, late or hostile.

mod clients;
mod expectations;
mod net;
mod operators;
mod origins;
mod poisoning;
mod raw_targets;
mod sharing;
mod shutdown;
mod slow_readers;
mod tunnels;
mod uploads;
