//! Generated traces of known distributions, for tests and comparisons.
//!
//! **A promise:** the same [`Spec`] gives the same requests on every machine and in every later
//! version. A test pins the output; whoever breaks it has to add a new pattern instead.

mod fields;
mod pattern;
mod random;
mod size;
mod zipf;

pub use fields::SpecError;
pub use pattern::{Mixture, Pattern, PatternPart};
pub use size::{SizeDistribution, SizePer, Sizes};

pub(crate) use random::Random;
pub(crate) use size::SizeSource;

use self::fields::bad_value;
use self::pattern::{Walk, is_weight};
use super::{Key, Op, Request, Sink, TraceError};

/// The streams of random numbers of a trace; the parts of the mixture follow.
const MIXING: u64 = 0;
const OPERATIONS: u64 = 1;
const SIZES: u64 = 2;
const PARTS: u64 = 3;

/// The description of a trace to generate: how keys are chosen, the number of requests, sizes, and shares of writes and
/// deletions.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The patterns by which the keys of the generated requests are chosen.
    pub mixture: Mixture,
    /// The number of requests to generate.
    pub requests: u64,
    /// The seed of the random numbers; another seed generates another trace of the same kind.
    pub seed: u64,
    /// The distribution of the sizes of values; `None` for a trace without sizes. Deletions never have a size.
    pub sizes: Option<Sizes>,
    /// The share of the generated requests that are writes, from 0 to 1.
    pub writes: f64,
    /// The share of the generated requests that are deletions, from 0 to 1; with the writes at most 1.
    pub deletes: f64,
}

impl Spec {
    /// Creates the description of a trace to generate that has only reads, no sizes, and the seed 0.
    pub fn new(mixture: Mixture, requests: u64) -> Self {
        Self { mixture, requests, seed: 0, sizes: None, writes: 0.0, deletes: 0.0 }
    }

    /// Creates the generator of the trace's requests.
    ///
    /// # Errors
    /// [`SpecError`] if a field is out of its range.
    pub fn generator(&self) -> Result<Generator, SpecError> {
        let share = 0.0..=1.0;
        if !share.contains(&self.writes) {
            return Err(bad_value("writes", self.writes, "a share from 0 to 1"));
        }
        if !share.contains(&self.deletes) || !share.contains(&(self.writes + self.deletes)) {
            return Err(bad_value("deletes", self.deletes, "a share from 0 to 1, with the writes"));
        }
        if self.mixture.parts.is_empty() {
            return Err(bad_value("patterns", 0, "at least one"));
        }
        let mut parts = Vec::new();
        let mut up_to = 0.0;
        let mut free = 0_u64;
        for (part, stream) in self.mixture.parts.iter().zip(PARTS..) {
            part.pattern.validate()?;
            if !is_weight(part.weight) {
                return Err(bad_value("weight", part.weight, "above 0 and up to 1000000000"));
            }
            up_to += part.weight;
            let from = part.from.unwrap_or(free);
            free = from
                .checked_add(part.pattern.keys())
                .ok_or_else(|| bad_value("from", from, "so small that all keys are below 2^64"))?;
            let walk = Walk::new(part.pattern, Random::new(self.seed, stream));
            parts.push(Turn { up_to, from, walk });
        }
        Ok(Generator {
            left: self.requests,
            parts,
            mixing: Random::new(self.seed, MIXING),
            operations: Random::new(self.seed, OPERATIONS),
            sizes: self.sizes.map(|sizes| SizeSource::new(sizes, self.seed, SIZES)),
            writes: self.writes,
            writes_and_deletes: self.writes + self.deletes,
        })
    }
}

/// A generator of the requests of a trace that a [`Spec`] describes, one by one.
#[derive(Clone, Debug)]
pub struct Generator {
    left: u64,
    parts: Vec<Turn>,
    mixing: Random,
    operations: Random,
    sizes: Option<SizeSource>,
    writes: f64,
    writes_and_deletes: f64,
}

/// A part of the mixture at work.
#[derive(Clone, Debug)]
struct Turn {
    /// The sum of the weights up to this part.
    up_to: f64,
    from: u64,
    walk: Walk,
}

impl Generator {
    /// Generates all remaining requests and passes them to a sink.
    ///
    /// # Errors
    /// The first error of the sink.
    pub fn run(self, sink: &mut impl Sink) -> Result<(), TraceError> {
        for request in self {
            sink.push(request)?;
        }
        Ok(())
    }

    fn key(&mut self) -> u64 {
        let part = match &mut self.parts[..] {
            [only] => only,
            parts => {
                let total = parts.last().map_or(0.0, |last| last.up_to);
                let drawn = self.mixing.unit() * total;
                let part = parts.partition_point(|part| part.up_to <= drawn);
                // Rounding could give the total itself.
                let last = parts.len() - 1;
                &mut parts[part.min(last)]
            }
        };
        part.from + part.walk.next()
    }
}

impl Iterator for Generator {
    type Item = Request<'static>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let key = Key::Number(self.key());
        let op = if self.writes_and_deletes > 0.0 {
            match self.operations.unit() {
                drawn if drawn < self.writes => Op::Write,
                drawn if drawn < self.writes_and_deletes => Op::Delete,
                _ => Op::Read,
            }
        } else {
            Op::Read
        };
        let sizes = self.sizes.as_mut().filter(|_| op != Op::Delete);
        let size_bytes = sizes.map(|sizes| u64::from(sizes.next(key)));
        Some(Request { key, size_bytes, op, time_us: None, ttl_us: None, cost_ns: None })
    }
}
