//! How levels work together, and how a URL says so.

use std::time::Duration;

use crate::error::Result;
use crate::size::ByteSize;
use crate::ttl::Ttl;
use crate::url::{CacheUrl, Level, OptionSpec, Place, Scheme, UrlError, ValueKind};

/// How stale an upper level may be where `stale=` says nothing.
pub const DEFAULT_STALE: Duration = Duration::from_secs(1);

/// How many bytes may wait to be written where `write_max=` says nothing.
pub const DEFAULT_WRITE_MAX_BYTES: u64 = 16 << 20;

/// The smallest bound on what waits to be written, in bytes.
pub const MIN_WRITE_MAX_BYTES: u64 = 1 << 10;

/// The options of a level that stands before another, in addition to those of its scheme.
pub static LEVEL_OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "stale",
        kind: ValueKind::Duration,
        help: "how long this level may have what others have overwritten or deleted below; 1s by \
               default",
    },
    OptionSpec {
        name: "write",
        kind: ValueKind::Choice(&["through", "back"]),
        help: "whether a write has been done below when it returns, or is done there later; \
               through by default",
    },
    OptionSpec {
        name: "write_max",
        kind: ValueKind::Size { min_bytes: MIN_WRITE_MAX_BYTES, max_bytes: 1 << 40 },
        help: "the bound on what waits to be written below; 16MiB by default",
    },
];

static OPTIONS: Scheme = Scheme {
    name: "a level before another",
    place: Place::Nowhere,
    options: LEVEL_OPTIONS,
    help: "how it works with the level below",
};

/// How long an entry lives; `None` for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life(pub(super) Option<Duration>);

/// How a front works with the level below it.
///
/// ```
/// use std::time::Duration;
/// use haypile::tier::TierOptions;
///
/// let options = TierOptions::new().stale(Duration::from_secs(5)).lower_ttl(None);
/// ```
#[derive(Clone, Debug)]
pub struct TierOptions {
    pub(super) stale: Duration,
    /// The bound on what waits to be written below; `None` where nothing waits.
    pub(super) write_max_bytes: Option<u64>,
    /// `None` where it is not known.
    lower_ttl: Option<Life>,
    upper_ttl: Option<Duration>,
}

impl TierOptions {
    /// As stale as [`DEFAULT_STALE`], writing through.
    pub fn new() -> Self {
        Self { stale: DEFAULT_STALE, write_max_bytes: None, lower_ttl: None, upper_ttl: None }
    }

    /// How long the front may have what others have overwritten or deleted below. With zero it has
    /// nothing.
    #[must_use]
    pub fn stale(self, stale: Duration) -> Self {
        Self { stale, ..self }
    }

    /// Writes below later, when at most so many bytes wait; `None` to write through.
    #[must_use]
    pub fn write_back(self, max_bytes: Option<u64>) -> Self {
        Self { write_max_bytes: max_bytes, ..self }
    }

    /// Says what TTL the last level gives entries that come without one; `None` for none. Where
    /// this is not said, such writes do not reach the front, and are written through.
    #[must_use]
    pub fn lower_ttl(self, ttl: Option<Duration>) -> Self {
        Self { lower_ttl: Some(Life(ttl)), ..self }
    }

    /// What the URL of an upper level says, over a last level with this TTL.
    pub(crate) fn of(
        taken: &Level,
        upper: &Level,
        lower_ttl: Option<Duration>,
    ) -> Result<Self, UrlError> {
        let write_max = taken.size_option("write_max")?.unwrap_or(DEFAULT_WRITE_MAX_BYTES);
        let is_back = taken.option("write") == Some("back");
        Ok(Self {
            stale: taken.duration_option("stale")?.unwrap_or(DEFAULT_STALE),
            write_max_bytes: is_back.then_some(write_max),
            lower_ttl: Some(Life(lower_ttl)),
            upper_ttl: upper.duration_option("ttl")?,
        })
    }

    /// The longest life of a copy.
    pub(super) fn copies_live(&self) -> Duration {
        self.upper_ttl.map_or(self.stale, |ttl| ttl.min(self.stale))
    }

    /// How long an entry lives that is written with this TTL; `None` if only the last level knows,
    /// or would refuse it.
    pub(super) fn life(&self, ttl: Ttl) -> Option<Life> {
        match ttl {
            Ttl::OfCache => self.lower_ttl,
            Ttl::Never => Some(Life(None)),
            Ttl::After(Duration::ZERO) => None,
            Ttl::After(duration) => Some(Life(Some(duration))),
        }
    }

    /// The URL of two levels that are named so.
    pub(super) fn describe(&self, front: &str, lower: &str) -> String {
        let front = self.name(front).unwrap_or_else(|| front.to_owned());
        format!("{front} -> {lower}")
    }

    fn name(&self, front: &str) -> Option<String> {
        let url: CacheUrl = front.parse().ok()?;
        let [level] = url.levels() else { return None };
        let stale = humantime::format_duration(self.stale).to_string().replace(' ', "");
        let mut level = level.clone().with_option("stale", stale).ok()?;
        if let Some(max_bytes) = self.write_max_bytes {
            level = level.with_option("write", "back").ok()?;
            level = level.with_option("write_max", ByteSize(max_bytes).to_string()).ok()?;
        }
        Some(level.to_string())
    }
}

impl Default for TierOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Parts a level from what it says of working with the one below.
pub(crate) fn take(level: &Level) -> (Level, Level) {
    level.split_options(|name| OPTIONS.option(name).is_some())
}

/// As [`Level::resolve`] for a level that stands before another.
pub(crate) fn resolve(level: &Level, scheme: &'static Scheme) -> Result<Level, UrlError> {
    let (level, taken) = take(level);
    let (level, taken) = (level.resolve(scheme)?, taken.resolve(&OPTIONS)?);
    taken.options().try_fold(level, |level, (name, value)| level.with_option(name, value))
}

/// Refuses what means nothing for a level that stands before no other.
pub(crate) fn refuse(level: &Level) -> Result<(), UrlError> {
    match take(level).1.options().find_map(|(name, _)| OPTIONS.option(name)) {
        Some(option) => Err(UrlError::NoLevelBelow { name: option.name }),
        None => Ok(()),
    }
}
