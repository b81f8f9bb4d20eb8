//! Values that stay in place while they are read.

use std::fmt;
use std::ops::Deref;

use crate::store::Hit;

/// A value that was read, held in place or copied.
pub struct Pinned<'a> {
    hit: Hit,
    value: HeldValue<'a>,
}

enum HeldValue<'a> {
    Copied(Vec<u8>),
    InPlace(Box<dyn AsRef<[u8]> + Send + Sync + 'a>),
}

impl<'a> Pinned<'a> {
    /// Wraps a copy of a value.
    pub fn copied(value: Vec<u8>, hit: Hit) -> Self {
        Self { hit, value: HeldValue::Copied(value) }
    }

    /// Wraps a value that `guard` holds in place until it is dropped.
    pub fn in_place(guard: impl AsRef<[u8]> + Send + Sync + 'a, hit: Hit) -> Self {
        Self { hit, value: HeldValue::InPlace(Box::new(guard)) }
    }

    /// Returns the properties of the entry at the time of reading.
    pub fn hit(&self) -> Hit {
        self.hit
    }
}

impl Deref for Pinned<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.value {
            HeldValue::Copied(value) => value,
            HeldValue::InPlace(guard) => (**guard).as_ref(),
        }
    }
}

impl fmt::Debug for Pinned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copied = matches!(self.value, HeldValue::Copied(_));
        f.debug_struct("Pinned")
            .field("hit", &self.hit)
            .field("value_bytes", &self.len())
            .field("copied", &copied)
            .finish()
    }
}
