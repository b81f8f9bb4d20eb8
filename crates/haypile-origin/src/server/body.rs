//! The bytes of bodies.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;

/// The longest part of a body, and of a chunk.
const PART_BYTES: usize = 64 << 10;
/// The period of generated bodies: prime, so that no part of a usual length is like the next.
const PERIOD: usize = 251;

/// A source of the bytes of a reply's body: stored, generated or made by a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodySource(Source);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Shared(Bytes),
    Generated { bytes: u64, start: usize },
    Made { bytes: u64, make: Make },
}

/// A function that makes a body.
#[derive(Clone)]
struct Make(Arc<dyn Fn() -> Bytes + Send + Sync>);

impl BodySource {
    /// Returns a body that is generated without memory. Its bytes depend only on their position and
    /// on the seed: bodies with seeds from 0 to 250 differ in every byte.
    pub fn generated(bytes: u64, seed: u64) -> Self {
        let start = usize::try_from(seed % PERIOD as u64).expect("less than the period");
        Self(Source::Generated { bytes, start })
    }

    /// Returns a body that a function makes for each reply that sends a part of it, and that is in
    /// memory only while the reply is sent. Its length is stated here, because replies need it
    /// without the body. Bytes beyond that length are not sent; if some are missing, the connection
    /// ends there.
    ///
    /// The function runs on the thread that serves all connections. Two such bodies are equal if they
    /// share the function and the length.
    pub fn from_fn(bytes: u64, make: Arc<dyn Fn() -> Bytes + Send + Sync>) -> Self {
        Self(Source::Made { bytes, make: Make(make) })
    }

    /// Returns the length of the body in bytes.
    pub fn bytes(&self) -> u64 {
        match &self.0 {
            Source::Shared(body) => body.len() as u64,
            Source::Generated { bytes, .. } | Source::Made { bytes, .. } => *bytes,
        }
    }

    /// Returns a part of the body that begins with the range: to the end of the range or of the
    /// body, or 64 KiB of it. A body [of a function](Self::from_fn) is made for each part.
    pub fn part(&self, range: Range<u64>) -> Bytes {
        let end = range.end.min(self.bytes());
        let bytes = end.saturating_sub(range.start).min(PART_BYTES as u64);
        let length = usize::try_from(bytes).expect("at most 64 KiB");
        if length == 0 {
            return Bytes::new();
        }
        match &self.0 {
            Source::Shared(body) => {
                let start = usize::try_from(range.start).expect("a place in memory");
                body.slice(start..start + length)
            }
            Source::Generated { start, .. } => {
                let place = usize::try_from(range.start % PERIOD as u64).expect("below the period");
                let start = (start + place) % PERIOD;
                PATTERN.slice(start..start + length)
            }
            Source::Made { .. } => self.made().part(range),
        }
    }

    /// Returns the body with its bytes in memory if a function makes them, by calling the function; otherwise the same
    /// body.
    pub(super) fn made(&self) -> Self {
        let Source::Made { bytes, make } = &self.0 else { return self.clone() };
        let mut body = (make.0)();
        body.truncate(usize::try_from(*bytes).unwrap_or(usize::MAX));
        Self(Source::Shared(body))
    }
}

/// As long as the longest part from any place on.
static PATTERN: LazyLock<Bytes> = LazyLock::new(|| {
    let one_period: Vec<u8> = (0..=u8::MAX).take(PERIOD).collect();
    Bytes::from(one_period.repeat(PART_BYTES.div_ceil(PERIOD) + 1))
});

impl<T: Into<Bytes>> From<T> for BodySource {
    fn from(body: T) -> Self {
        Self(Source::Shared(body.into()))
    }
}

impl fmt::Debug for Make {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Make")
    }
}

impl PartialEq for Make {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Make {}
