//! The simulated file store: hand-worked requests, a plain model, and what holds of a file after any
//! request. The policies' tests drive and check it.

#![expect(clippy::unwrap_used, reason = "a plain model that breaks its own rules fails its test")]

#[path = "../../../haypile-policy/tests/policy/driver.rs"]
#[expect(dead_code, reason = "the tests of policies use more of it")]
mod driver;
#[path = "../../../haypile-policy/tests/policy/invariants.rs"]
mod invariants;
#[path = "../../../haypile-policy/tests/policy/plain.rs"]
#[expect(dead_code, reason = "the tests of policies use more of it")]
mod plain;
#[path = "../../../haypile-policy/tests/policy/requests.rs"]
mod requests;

mod cache;
mod decisions;
mod every;
