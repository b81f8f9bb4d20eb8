//! Options of tiers, and how URLs express them.

use std::time::Duration;

use crate::size::ByteSize;
use crate::ttl::Ttl;
use crate::url::{CacheUrl, Level, OptionSpec, Place, ResolvedLevel, Scheme, UrlError, ValueKind};

/// The options that the URL of an upper level of a cache has in addition to those of its scheme.
pub(crate) static LEVEL_OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "stale",
        kind: ValueKind::Duration,
        help: "longest time that this level serves values that others have overwritten or deleted \
               below; 1s by default",
    },
    OptionSpec {
        name: "write",
        kind: ValueKind::Choice(&["through", "back"]),
        help: "whether a write goes below before it returns (through) or later (back); \
               through by default",
    },
    OptionSpec {
        name: "write_max",
        kind: ValueKind::Size { min_bytes: TierOptions::MIN_WRITE_MAX_BYTES, max_bytes: 1 << 40 },
        help: "the bound on writes that wait for the level below; 16MiB by default",
    },
];

static OPTIONS: Scheme = Scheme {
    name: "an upper level",
    place: Place::Nowhere,
    idle: &[("write_max", "write", "through")],
    options: LEVEL_OPTIONS,
    help: "its relation to the level below",
};

/// The remaining time to live of an entry; `None` means forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life(pub(super) Option<Duration>);

/// The settings of an upper level of a cache: how long its copies live, and how it writes to the
/// level below.
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
    /// The bound on queued writes for the lower level, in bytes; `None` writes through to the lower
    /// level at once.
    pub(super) write_max_bytes: Option<u64>,
    /// The last level's default TTL; `None` if it is not known.
    lower_ttl: Option<Life>,
    upper_ttl: Option<Duration>,
}

impl TierOptions {
    /// The default of the option `stale=`: the time for which an upper level may serve an outdated
    /// copy of an entry.
    pub const DEFAULT_STALE: Duration = Duration::from_secs(1);

    /// The default of the option `write_max=`, the bound on queued writes for the lower level, in
    /// bytes.
    pub const DEFAULT_WRITE_MAX_BYTES: u64 = 16 << 20;

    /// The smallest allowed value of the option `write_max=`, the bound on queued writes for the
    /// lower level, in bytes.
    pub const MIN_WRITE_MAX_BYTES: u64 = 1 << 10;

    /// Returns the default settings of an upper level: [`DEFAULT_STALE`](Self::DEFAULT_STALE), and
    /// writing through to the lower level.
    pub fn new() -> Self {
        Self {
            stale: TierOptions::DEFAULT_STALE,
            write_max_bytes: None,
            lower_ttl: None,
            upper_ttl: None,
        }
    }

    /// Sets the longest time for which the upper level may serve values that other processes have
    /// overwritten or deleted in the lower level. With zero it stores no entries.
    #[must_use]
    pub fn stale(self, stale: Duration) -> Self {
        Self { stale, ..self }
    }

    /// Defers writes to the lower level (write-back), up to this number of queued bytes; `None`
    /// writes through at once.
    #[must_use]
    pub fn write_back(self, max_bytes: Option<u64>) -> Self {
        Self { write_max_bytes: max_bytes, ..self }
    }

    /// Sets the TTL that the last level applies to entries written without a TTL; `None` means that
    /// they never expire. Without this call, such entries do not reach the upper level, and are
    /// written through.
    #[must_use]
    pub fn lower_ttl(self, ttl: Option<Duration>) -> Self {
        Self { lower_ttl: Some(Life(ttl)), ..self }
    }

    /// Returns the settings that the URL of an upper level states, above a last level with this
    /// default TTL.
    pub(crate) fn of(
        relation: &ResolvedLevel,
        upper: &ResolvedLevel,
        lower_ttl: Option<Duration>,
    ) -> Self {
        let write_max = relation.size("write_max").unwrap_or(TierOptions::DEFAULT_WRITE_MAX_BYTES);
        let is_back = relation.choice("write") == Some("back");
        Self {
            stale: relation.duration("stale").unwrap_or(TierOptions::DEFAULT_STALE),
            write_max_bytes: is_back.then_some(write_max),
            lower_ttl: Some(Life(lower_ttl)),
            upper_ttl: upper.duration("ttl"),
        }
    }

    /// Returns the longest time that a copy of an entry lives in the upper level.
    pub(super) fn copies_live(&self) -> Duration {
        self.upper_ttl.map_or(self.stale, |ttl| ttl.min(self.stale))
    }

    /// Returns the time to live of an entry that is written with this TTL; `None` if only the last
    /// level knows it, or would refuse it.
    pub(super) fn life(&self, ttl: Ttl) -> Option<Life> {
        match ttl {
            Ttl::Default => self.lower_ttl,
            Ttl::Never => Some(Life(None)),
            Ttl::After(Duration::ZERO) => None,
            Ttl::After(duration) => Some(Life(Some(duration))),
        }
    }

    /// Returns the URL of a cache of two levels with these URLs.
    pub(super) fn url(&self, upper: &CacheUrl, lower: &CacheUrl) -> CacheUrl {
        let mut levels = upper.levels().to_vec();
        if let [level] = &mut levels[..]
            && let Ok(named) = self.name(level)
        {
            *level = named;
        }
        levels.extend_from_slice(lower.levels());
        CacheUrl::new(levels).expect("there are levels")
    }

    /// Returns the level with these options.
    fn name(&self, level: &Level) -> Result<Level, UrlError> {
        let stale = humantime::format_duration(self.stale).to_string().replace(' ', "");
        let level = level.clone().with_option("stale", stale)?;
        let Some(max_bytes) = self.write_max_bytes else { return Ok(level) };
        let level = level.with_option("write", "back")?;
        level.with_option("write_max", ByteSize(max_bytes).to_string())
    }
}

impl Default for TierOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// An upper level of a cache URL, with its options that concern the level below, such as `stale=`.
pub(crate) struct Upper {
    pub(crate) level: ResolvedLevel,
    pub(crate) relation: ResolvedLevel,
}

impl Upper {
    /// Returns an upper level of a cache URL, checked against its scheme as [`Level::resolve`]
    /// checks a single level.
    pub(crate) fn resolve(level: &Level, scheme: &'static Scheme) -> Result<Self, UrlError> {
        let (level, relation) = take(level);
        Ok(Self { level: level.resolve(scheme)?, relation: relation.resolve(&OPTIONS)? })
    }

    /// Returns the upper level of a cache URL in its canonical form, with all its options.
    pub(crate) fn level(&self) -> Result<Level, UrlError> {
        let mut options = self.relation.level().options();
        let level = self.level.level().clone();
        options.try_fold(level, |level, (name, value)| level.with_option(name, value))
    }
}

/// Splits a level into itself and its tier options.
fn take(level: &Level) -> (Level, Level) {
    level.split_options(|name| OPTIONS.option(name).is_some())
}

/// Returns an error if the last level of a cache URL has options that only upper levels have.
pub(crate) fn refuse(level: &Level) -> Result<(), UrlError> {
    match take(level).1.options().find_map(|(name, _)| OPTIONS.option(name)) {
        Some(option) => Err(UrlError::NoLevelBelow { name: option.name }),
        None => Ok(()),
    }
}
