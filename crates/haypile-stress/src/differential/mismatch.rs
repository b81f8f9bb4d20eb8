//! Mismatches: answers that no correct cache returns.

use std::any::Any;
use std::fmt;

use super::key::Key;
use super::operation::Step;
use crate::panics;

/// A difference between what the cache under test did and what the model of the cache allows, as
/// text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// The key that the difference is about; `None` if it is not about a single key.
    pub(super) key: Option<Key>,
    pub(super) text: String,
}

impl Mismatch {
    /// Converts a panic in an operation into a difference between the cache and the model.
    pub(super) fn of_panic(step: &Step, panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
        let place = panics::last_place().unwrap_or_default();
        let text = format!("a panic{place}: {text}");
        Self { key: step.operation.keys().first().copied(), text }
    }
}

/// The outcome of comparing the cache under test with the model: a value, or the difference.
pub(super) type Checked<T = ()> = Result<T, Mismatch>;

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key {
            Some(key) => write!(f, "{key}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Returns a mismatch about a key, or about the cache (`-`), with a formatted text.
macro_rules! wrong {
    (-, $($text:tt)+) => {
        Err($crate::differential::mismatch::Mismatch { key: None, text: format!($($text)+) })
    };
    ($key:expr, $($text:tt)+) => {
        Err($crate::differential::mismatch::Mismatch { key: Some($key), text: format!($($text)+) })
    };
}
pub(super) use wrong;
