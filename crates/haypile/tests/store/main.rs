//! Properties of every store: computations, groups, layers around a store, and URLs.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "../tier/hooked.rs"]
#[expect(dead_code, reason = "the tests of levels use more of it")]
mod hooked;
#[path = "../support/without_leases.rs"]
mod without_leases;

mod async_compute;
mod compress;
mod compute_over_a_store;
mod groups;
mod if_changed;
mod layers;
mod none;
mod object_safety;
mod pending;
mod recording;
mod refresh;
mod single_flight;
mod url_errors;
mod url_round_trip;
mod writers;
