//! Naming a policy in text: `s3fifo`, `s3fifo:small=10,threshold=1`.
//!
//! Where commas already separate something else, colons separate parameters as well:
//! `s3fifo:small=10:threshold=1`.

use std::fmt;
use std::str::FromStr;

use super::ghost::{BySlot, Memory};
use super::weight::{PerSlot, Unit};
use super::{Policy, arc, clock, fifo, lirs, lru, s3fifo, segment, sieve, slru, slru4, wtinylfu};

/// The description of an eviction policy: its name, its paper and its parameters.
#[derive(Debug)]
pub struct PolicyKind {
    /// The policy's name in cache URLs and on the command line.
    pub name: &'static str,
    /// A description of the policy in one line, for users.
    pub summary: &'static str,
    /// The publication that describes the policy.
    pub paper: &'static str,
    /// The parameters of the policy, in the order in which they are printed.
    pub params: &'static [Param],
}

/// The description of a policy's parameter: its name, default and range.
#[derive(Debug)]
pub struct Param {
    /// The name of the policy's parameter.
    pub name: &'static str,
    /// The default value of the policy's parameter.
    pub default: f64,
    /// The smallest allowed value of the policy's parameter.
    pub min: f64,
    /// The largest allowed value of the policy's parameter.
    pub max: f64,
    /// Whether the policy's parameter takes only whole numbers.
    pub whole: bool,
    /// A description of the policy's parameter, with its unit, for users.
    pub help: &'static str,
}

/// Every policy there is, in the order in which they are listed.
static KINDS: [&PolicyKind; 11] = [
    &fifo::KIND,
    &lru::KIND,
    &slru::KIND,
    &slru4::KIND,
    &clock::KIND,
    &sieve::KIND,
    &s3fifo::KIND,
    &wtinylfu::KIND,
    &arc::KIND,
    &lirs::KIND,
    &segment::KIND,
];

/// The specification of an eviction policy: its name with the values of its parameters, such as `s3fifo:small=10`.
///
/// ```
/// use haypile_policy::PolicySpec;
///
/// let spec: PolicySpec = "s3fifo:threshold=2".parse().unwrap();
/// assert_eq!(spec.to_string(), "s3fifo:threshold=2");
/// assert_eq!(spec.value("small"), 10.0);
/// assert!("s4fifo".parse::<PolicySpec>().unwrap_err().to_string().contains("s3fifo"));
/// ```
#[derive(Clone, Debug)]
pub struct PolicySpec {
    kind: &'static PolicyKind,
    values: Vec<f64>,
}

/// A function that receives the policy named by a [`PolicySpec`] as its own type, so that the
/// caller's code is compiled for each policy.
pub trait PolicyVisitor {
    /// The result of the visit.
    type Output;

    /// Called once, with what makes the policy for a capacity.
    fn visit<P: Policy + 'static>(self, make: impl Fn(u64) -> P) -> Self::Output;
}

impl PolicySpec {
    /// Returns the descriptions of all known eviction policies.
    pub fn kinds() -> &'static [&'static PolicyKind] {
        &KINDS
    }

    /// Parses a list of policies separated by commas. A part that is `name=value` is a parameter of the policy before
    /// it: `lru,s3fifo:small=10,threshold=1,sieve` are three.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, PolicyError> {
        Self::split_list(text).iter().map(|text| text.parse()).collect()
    }

    /// Splits a list of policies at the commas at which [`parse_list`](Self::parse_list) does,
    /// without checking the names.
    pub fn split_list(text: &str) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let is_param = part.find('=').is_some_and(|equals| !part[..equals].contains(':'));
            match texts.last_mut() {
                Some(last) if is_param => {
                    last.push(':');
                    last.push_str(part);
                }
                _ => texts.push(part.to_owned()),
            }
        }
        texts
    }

    /// Returns the description of the policy that this specification names.
    pub fn kind(&self) -> &'static PolicyKind {
        self.kind
    }

    /// Whether the policy may exceed the cache's size, so that only the simulator can run it.
    pub fn exceeds_bound(&self) -> bool {
        struct Ask;

        impl PolicyVisitor for Ask {
            type Output = bool;

            fn visit<P: Policy + 'static>(self, _make: impl Fn(u64) -> P) -> bool {
                P::EXCEEDS_BOUND
            }
        }

        self.build::<BySlot, _>(false, Ask).unwrap_or(false)
    }

    /// Whether this is the policy of the file store, which the `memory` store refuses.
    pub fn is_of_file_store(&self) -> bool {
        self.kind.name == segment::KIND.name
    }

    /// Returns the value of the policy's parameter with this name.
    ///
    /// # Panics
    ///
    /// If the policy has no parameter of that name.
    pub fn value(&self, name: &str) -> f64 {
        let position = self.kind.params.iter().position(|param| param.name == name);
        self.values[position.expect("a parameter that the policy declares")]
    }

    /// Calls `visitor` with a function that creates the policy, and returns its result; returns `None` for the file
    /// store's policy, which is not a [`Policy`].
    ///
    /// `weighted` says whether entries differ in weight (bytes) or all weigh 1 (objects); `M` how
    /// the driver's slots relate to keys, which decides how ghosts are kept.
    pub fn build<M: Memory, V: PolicyVisitor>(
        &self,
        weighted: bool,
        visitor: V,
    ) -> Option<V::Output> {
        if weighted {
            self.build_with::<M, PerSlot, V>(visitor)
        } else {
            self.build_with::<M, Unit, V>(visitor)
        }
    }

    fn build_with<M: Memory, W: super::weight::Weights, V: PolicyVisitor>(
        &self,
        visitor: V,
    ) -> Option<V::Output> {
        Some(match self.kind.name {
            "fifo" => visitor.visit(|_| fifo::Fifo::new()),
            "lru" => visitor.visit(|_| lru::Lru::new()),
            "slru" => {
                let config = slru::Config::of(self);
                if self.value("overflow") == 0.0 {
                    visitor.visit(|capacity| slru::Slru::<W, false>::new(capacity, config))
                } else {
                    visitor.visit(|capacity| slru::Slru::<W, true>::new(capacity, config))
                }
            }
            "slru4" => visitor.visit(|capacity| slru4::Slru4::<W>::new(capacity, self)),
            "clock" => visitor.visit(|_| clock::Clock::new(self)),
            "sieve" => visitor.visit(|_| sieve::Sieve::new()),
            "s3fifo" => visitor.visit(|capacity| s3fifo::S3Fifo::<W, M>::new(capacity, self)),
            "wtinylfu" => visitor.visit(|capacity| wtinylfu::WTinyLfu::<W, M>::new(capacity, self)),
            "arc" => visitor.visit(|capacity| arc::Arc::<W, M>::new(capacity, self)),
            "lirs" => visitor.visit(|capacity| lirs::Lirs::<W, M>::new(capacity, self)),
            "segment" => return None,
            other => unreachable!("{other} is in KINDS and not built"),
        })
    }
}

impl PartialEq for PolicySpec {
    fn eq(&self, other: &Self) -> bool {
        self.kind.name == other.kind.name && self.values == other.values
    }
}

impl Default for PolicySpec {
    /// `s3fifo`: the best mean byte hit ratio over the traces it was chosen on.
    fn default() -> Self {
        Self::of(&s3fifo::KIND)
    }
}

impl PolicySpec {
    fn of(kind: &'static PolicyKind) -> Self {
        Self { kind, values: kind.params.iter().map(|param| param.default).collect() }
    }
}

/// The error for an unknown eviction policy, or a wrong parameter of a policy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// There is no policy of that name.
    #[error("unknown policy '{name}'{} (known: {})", meant(name), names())]
    UnknownPolicy {
        /// The name given.
        name: String,
    },
    /// The policy has no such parameter.
    #[error("policy '{policy}' has no parameter '{param}'; {}", allowed(policy))]
    UnknownParam {
        /// The policy.
        policy: &'static str,
        /// The parameter given.
        param: String,
    },
    /// The value is no number, or out of range.
    #[error(
        "policy '{policy}': parameter '{param}' must be a {} from {min} to {max}, not '{value}'",
        if *whole { "whole number" } else { "number" }
    )]
    BadValue {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        param: &'static str,
        /// The value given.
        value: String,
        /// The smallest value allowed.
        min: f64,
        /// The largest value allowed.
        max: f64,
        /// Whether only whole numbers are allowed.
        whole: bool,
    },
    /// The same parameter is given twice.
    #[error("policy '{policy}': parameter '{param}' is given twice")]
    Twice {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        param: &'static str,
    },
    /// Something that is not `name=value`.
    #[error("policy '{policy}': '{text}' is not of the form name=value; {}", allowed(policy))]
    NotAParam {
        /// The policy.
        policy: &'static str,
        /// The text given.
        text: String,
    },
}

/// Policies that are not here, and the one that decides by the same: how often a key is asked for.
const RELATED: [(&[&str], &str); 1] = [(&["lfu", "tinylfu", "w-tinylfu", "lfuda"], "wtinylfu")];

/// Returns the policy that a wrong name is nearly, as a question; or one of the same kind.
fn meant(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    if let Some((_, nearest)) = RELATED.iter().find(|(names, _)| names.contains(&name.as_str())) {
        return format!("; '{nearest}' is the nearest of its kind");
    }
    let kinds = KINDS.iter().map(|kind| (distance(&name, kind.name), kind.name));
    match kinds.min() {
        Some((0..=1, nearest)) => format!(", did you mean '{nearest}'?"),
        _ => String::new(),
    }
}

/// Levenshtein's distance of two names.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.bytes().enumerate() {
            let change = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

fn names() -> String {
    KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

fn allowed(policy: &str) -> String {
    let params: Vec<&str> = KINDS
        .iter()
        .filter(|kind| kind.name == policy)
        .flat_map(|kind| kind.params)
        .map(|param| param.name)
        .collect();
    if params.is_empty() {
        "it takes none".to_owned()
    } else {
        format!("it takes {}", params.join(", "))
    }
}

impl FromStr for PolicySpec {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let (name, params) = text.split_once(':').unwrap_or((text, ""));
        let kind = KINDS
            .iter()
            .find(|kind| kind.name == name)
            .ok_or_else(|| PolicyError::UnknownPolicy { name: name.to_owned() })?;
        let mut spec = Self::of(kind);
        let mut is_given = vec![false; kind.params.len()];
        for text in params.split([',', ':']).filter(|text| !text.is_empty()) {
            let (name, value) = text.split_once('=').ok_or_else(|| PolicyError::NotAParam {
                policy: kind.name,
                text: text.to_owned(),
            })?;
            let position =
                kind.params.iter().position(|param| param.name == name).ok_or_else(|| {
                    PolicyError::UnknownParam { policy: kind.name, param: name.to_owned() }
                })?;
            let param = &kind.params[position];
            if std::mem::replace(&mut is_given[position], true) {
                return Err(PolicyError::Twice { policy: kind.name, param: param.name });
            }
            // `-0` is a way to write 0, and both have to print alike: adding 0 takes the sign away.
            let number = value.parse::<f64>().ok().map(|number| number + 0.0);
            let in_range = number.filter(|number| {
                (param.min..=param.max).contains(number) && (!param.whole || number.fract() == 0.0)
            });
            spec.values[position] = in_range.ok_or_else(|| PolicyError::BadValue {
                policy: kind.name,
                param: param.name,
                value: value.to_owned(),
                min: param.min,
                max: param.max,
                whole: param.whole,
            })?;
        }
        Ok(spec)
    }
}

impl fmt::Display for PolicySpec {
    /// The name, and the parameters that differ from their defaults.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name)?;
        let mut separator = ':';
        for (param, value) in self.kind.params.iter().zip(&self.values) {
            #[expect(clippy::float_cmp, reason = "the default is copied, not computed")]
            if *value != param.default {
                write!(f, "{separator}{}={value}", param.name)?;
                separator = ',';
            }
        }
        Ok(())
    }
}
