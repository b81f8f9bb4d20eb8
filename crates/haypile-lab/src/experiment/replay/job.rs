//! A trace as the operations of a job.

use haypile_sim::Trace;
use haypile_sim::trace::Op;

use haypile_measure::job::{JobError, Ops, Population};

/// A replay of a trace on a cache: it reads the key of each request and, on a miss, writes a value
/// (cache-aside).
///
/// Each request reads its key and, on a miss, writes a value, as most simulators take it: what the
/// trace calls a write is a request like any other. A deletion deletes. The key is the number of
/// the trace's key in 8 bytes, little-endian. Its size is that of its first request: a job has one
/// value per key, so that sizes that change later stay as they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    population: Population,
    ops: Ops,
    requested_bytes: u64,
}

impl Replay {
    /// Creates the replay of a trace on a cache; values have `assumed_bytes` if the trace has no
    /// sizes.
    ///
    /// # Errors
    ///
    /// [`JobError::TooLarge`] for more keys than a job can have.
    pub fn new(trace: &Trace, assumed_bytes: u32) -> Result<Self, JobError> {
        let sizes = trace.sizes();
        let mut population = Population::new();
        let mut ops = Ops::new();
        let mut requested_bytes = 0;
        for (request, id) in trace.ids().iter().enumerate() {
            let key = id.get();
            if key == population.len() {
                // Keys are numbered in the order in which they come.
                let size = sizes.map_or(assumed_bytes, |sizes| sizes[request].get());
                population.push(&u64::from(key).to_le_bytes(), size)?;
            }
            match trace.ops().map_or(Op::Read, |ops| Op::from_number(ops[request])) {
                Op::Read | Op::Write => {
                    ops.get_set(key);
                    requested_bytes += u64::from(population.value_bytes(key));
                }
                Op::Delete => ops.delete(key),
            }
        }
        Ok(Self { population, ops, requested_bytes })
    }

    /// Returns the keys that the replay of the trace requests, each with the size of its value.
    pub fn population(&self) -> &Population {
        &self.population
    }

    /// Returns the cache operations of the replay, one for each request of the trace.
    pub fn ops(&self) -> &Ops {
        &self.ops
    }

    /// Returns the sum of the sizes of the values of all requests of the trace, in bytes; byte hit
    /// ratios are relative to it.
    pub fn requested_bytes(&self) -> u64 {
        self.requested_bytes
    }

    /// Returns the sum of the sizes of all distinct keys' values in the trace, in bytes; capacities
    /// are relative to it.
    pub fn trace_bytes(&self) -> u64 {
        (0..self.population.len()).map(|key| u64::from(self.population.value_bytes(key))).sum()
    }
}

#[cfg(test)]
mod tests {
    use haypile_sim::trace::{BuildOptions, Key, Request, Sink, TraceBuilder};

    use super::*;

    fn trace(requests: &[(u64, u64, Op)]) -> Trace {
        let mut builder = TraceBuilder::new(BuildOptions::default());
        for &(key, size, op) in requests {
            let request = Request {
                key: Key::Number(key),
                size_bytes: Some(size),
                op,
                time_us: None,
                ttl_us: None,
                cost_ns: None,
            };
            builder.push(request).unwrap();
        }
        builder.finish().unwrap()
    }

    #[test]
    fn a_request_reads_and_writes_on_a_miss() {
        let trace = trace(&[
            (70, 10, Op::Read),
            (80, 20, Op::Write),
            (70, 30, Op::Read),
            (80, 0, Op::Delete),
        ]);
        let replay = Replay::new(&trace, 7).unwrap();
        let mut expected = Ops::new();
        expected.get_set(0);
        expected.get_set(1);
        expected.get_set(0);
        expected.delete(1);
        assert_eq!(replay.ops(), &expected);
        assert_eq!(replay.population().key(1), 1_u64.to_le_bytes());
        // The second request of 70 asks for the 10 bytes of the first.
        assert_eq!((replay.requested_bytes(), replay.trace_bytes()), (40, 30));
    }

    #[test]
    fn values_without_a_size_get_the_one_assumed() {
        let mut builder = TraceBuilder::new(BuildOptions::default());
        for key in [1, 2, 1] {
            builder.push(Request::read(Key::Number(key))).unwrap();
        }
        let replay = Replay::new(&builder.finish().unwrap(), 4_096).unwrap();
        assert_eq!((replay.requested_bytes(), replay.trace_bytes()), (3 * 4_096, 2 * 4_096));
    }
}
