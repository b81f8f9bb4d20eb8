//! Icons as programs use them: rendered, cached, shared, never stale, and never another picture.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod cached;
mod damage;
mod gathered;
mod theme;
