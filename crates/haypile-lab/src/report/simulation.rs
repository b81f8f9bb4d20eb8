//! The output of `haypile simulate --json`.

use serde::{Deserialize, Deserializer};

/// The version of the document that is known.
const VERSION: u64 = 1;

/// The results of simulating eviction policies on one or several traces.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Simulations {
    version: u64,
    pub(crate) traces: Vec<Trace>,
}

/// The results of simulating eviction policies on one trace.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Trace {
    #[serde(rename = "trace")]
    pub(crate) name: String,
    pub(crate) requests: u64,
    pub(crate) keys: u64,
    pub(crate) accounting: String,
    /// Whether the simulation ran to its end; false if it was interrupted.
    pub(crate) complete: bool,
    pub(crate) simulations: Vec<SimulatedOutcome>,
    #[serde(default)]
    pub(crate) lru_curve: Vec<CurvePoint>,
}

/// The simulated result of one eviction policy at one cache size.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct SimulatedOutcome {
    pub(crate) policy: String,
    pub(crate) capacity: u64,
    /// The hit ratio of the simulated policy; 0 if the trace has no reads.
    #[serde(deserialize_with = "null_is_zero")]
    pub(crate) hit_ratio: f64,
    pub(crate) byte_hit_ratio: Option<f64>,
}

/// A point of the curve of LRU's miss ratio over cache sizes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct CurvePoint {
    pub(crate) capacity: u64,
    pub(crate) miss_ratio: f64,
    /// The estimated error of the point's miss ratio, by which the parts of a sample differ; 0 if
    /// the curve is exact or its error is unknown.
    #[serde(deserialize_with = "null_is_zero")]
    pub(crate) error: f64,
}

fn null_is_zero<'de, D: Deserializer<'de>>(number: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(number)?.unwrap_or_default())
}

impl Simulations {
    /// Parses the JSON that `haypile simulate --json` prints; the error says what is wrong with it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let parsed: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if parsed.version != VERSION {
            return Err(format!("its version is {}, and {VERSION} is known", parsed.version));
        }
        let is_ratio = |ratio: &f64| (0.0..=1.0).contains(ratio);
        for trace in &parsed.traces {
            let hits = trace.simulations.iter().map(|outcome| outcome.hit_ratio);
            let misses = trace.lru_curve.iter().map(|point| point.miss_ratio);
            let errors = trace.lru_curve.iter().map(|point| point.error);
            if let Some(wrong) = hits.chain(misses).chain(errors).find(|ratio| !is_ratio(ratio)) {
                return Err(format!("{wrong} is not a ratio from 0 to 1"));
            }
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_simulation_is_refused_with_a_reason() {
        for (bytes, reason) in [
            (&b"{"[..], "EOF"),
            (b"{\"version\":2,\"traces\":[]}", "version is 2"),
            (b"[1]", "invalid"),
            (
                b"{\"version\":1,\"traces\":[{\"trace\":\"t\",\"requests\":1,\"keys\":1,\"accounting\":\"objects\",\
                  \"complete\":true,\"simulations\":[{\"policy\":\"lru\",\"capacity\":1,\"hit_ratio\":1.5,\
                  \"byte_hit_ratio\":null}]}]}",
                "1.5 is not a ratio",
            ),
        ] {
            let error = Simulations::parse(bytes).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
