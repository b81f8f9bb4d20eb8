//! The traces that need no file.

use haypile_sim::Trace;
use haypile_sim::trace::generate::Spec;
use haypile_sim::trace::{BuildOptions, Sink, TraceBuilder, TraceError};

/// A generated trace, which always has the same requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The name of the generated trace on the command line and in results.
    pub name: &'static str,
    /// A description of the generated trace for help texts.
    pub help: &'static str,
    /// The pattern of the generated trace's keys, as `haypile trace generate` takes it.
    pub pattern: &'static str,
}

/// The sizes of the values of each generated trace, as `haypile trace generate` takes them.
pub const SIZES: &str = "lognormal:median=1024,sigma=1.5";

/// The number of requests of each generated trace.
pub const REQUESTS: u64 = 1_000_000;

/// The seed of each generated trace.
pub const SEED: u64 = 1;

impl Generated {
    /// All generated traces of the experiment `replay`.
    pub const ALL: [Self; 2] = [
        Self {
            name: "zipf",
            help: "100,000 keys by Zipf's law with an exponent of 0.99",
            pattern: "zipf:keys=100000,exponent=0.99",
        },
        Self {
            name: "zipf-scan",
            help: "the same for 80 % of the requests, the others scanning 100,000 further keys",
            pattern: "zipf:keys=100000,exponent=0.99@0.8+scan:keys=100000@0.2",
        },
    ];

    /// Finds the generated trace with this name; `None` if there is none.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|generated| generated.name == name)
    }

    /// Generates all requests of this trace.
    ///
    /// # Errors
    ///
    /// [`TraceError`] if it does not fit into memory and not into a temporary file either.
    pub fn trace(self) -> Result<Trace, TraceError> {
        let mixture = self.pattern.parse().expect("a test reads every pattern");
        let sizes = SIZES.parse().expect("a test reads the sizes");
        let spec = Spec { seed: SEED, sizes: Some(sizes), ..Spec::new(mixture, REQUESTS) };
        let mut builder = TraceBuilder::new(BuildOptions::default());
        for request in spec.generator().expect("a test generates every trace") {
            builder.push(request)?;
        }
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trace_is_made() {
        for generated in Generated::ALL {
            let trace = generated.trace().unwrap();
            assert_eq!(trace.requests() as u64, REQUESTS, "{}", generated.name);
            assert!(trace.sizes().is_some());
            assert_eq!(Generated::find(generated.name), Some(generated));
        }
        assert_eq!(Generated::find("w106"), None);
    }
}
