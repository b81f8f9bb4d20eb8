//! The arguments of a computation that are times.

use engine::{Freshness, Ttl};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments::Lifetime;

/// The time for which a computed value is kept, and the time at which the next one is due if that is before its end.
#[derive(Clone, Copy)]
pub(crate) struct Fresh(pub(crate) Result<Freshness, Ttl>);

impl Fresh {
    pub(crate) fn new(
        ttl: Lifetime,
        stale: Option<Lifetime>,
        early: Option<Lifetime>,
    ) -> PyResult<Self> {
        let seconds = |lifetime: Lifetime, name: &str| match lifetime.0 {
            Ttl::After(time) => Ok(time),
            _ => Err(PyValueError::new_err(format!("with early or stale, {name} is a time"))),
        };
        if stale.is_none() && early.is_none() {
            return Ok(Self(Err(ttl.0)));
        }
        let mut freshness = Freshness::new(seconds(ttl, "ttl")?);
        if let Some(stale) = stale {
            freshness = freshness.with_stale(seconds(stale, "stale")?);
        }
        if let Some(early) = early {
            freshness = freshness.with_early(seconds(early, "early")?);
        }
        if !freshness.early.is_zero() && freshness.early >= freshness.fresh {
            return Err(PyValueError::new_err(format!(
                "early={:?} is not less than ttl={:?}: each call would compute the next value",
                freshness.early, freshness.fresh
            )));
        }
        Ok(Self(Ok(freshness)))
    }

    /// Whether a value serves as long as it is there.
    pub(crate) fn is_plain(self) -> bool {
        self.0.is_err()
    }

    /// Returns the time for which a value is kept.
    pub(crate) fn lifetime(self) -> Lifetime {
        Lifetime(self.0.map_or_else(
            |ttl| ttl,
            |freshness| Ttl::After(freshness.fresh.saturating_add(freshness.stale)),
        ))
    }
}
