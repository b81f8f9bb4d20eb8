//! Writes a trace in a form that other simulators read.

use std::io::{self, Write};

use haypile_number::grouped;

use super::{BuildOptions, Key, Op, Request, Sink, Trace, TraceBuilder, TraceError};

/// The next access of a request whose key is never asked for again, as libCacheSim wants it.
const NEVER: i64 = -1;

/// The information of a trace that is lost when it is written in libCacheSim's oracleGeneral format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OracleGeneralLosses {
    /// Number of deletions in the trace, which are not written.
    pub deletes: u64,
    /// Number of writes in the trace, which are written as requests like all others.
    pub writes: u64,
    /// Whether the trace has no sizes of values, so that each is written as 1.
    pub sizes: bool,
    /// Whether some keys of the trace are texts, so that all keys are written as numbers.
    pub key_texts: bool,
    /// Number of requests whose time in seconds exceeds 32 bits, and is written as the largest 32-bit number.
    pub late: u64,
}

impl OracleGeneralLosses {
    /// Returns the kinds of lost information as texts for people, one for each kind.
    pub fn describe(&self) -> Vec<String> {
        let counted = [
            (self.deletes, "deletions that were left out"),
            (self.writes, "writes that became reads"),
            (self.late, "requests later than its times reach, which have the latest of them"),
        ];
        let mut losses: Vec<String> = counted
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, loss)| format!("{loss}: {}", grouped(*count)))
            .collect();
        losses.extend(self.sizes.then(|| "the trace has no sizes, and all became 1".to_owned()));
        losses.extend(self.key_texts.then(|| "keys became numbers".to_owned()));
        losses
    }
}

impl Trace {
    /// Writes the trace in libCacheSim's oracleGeneral format, and returns which information was lost. A request is a
    /// little-endian u32 time in seconds, u64 key, u32 size, and i64 number of the key's next request, or -1; the
    /// format has neither operations nor text keys.
    ///
    /// Deletions are left out: as requests they would bring keys back. Where any key is text, all are
    /// written as their dense numbers. A request without a size has size 1, one without a time the time
    /// 0.
    ///
    /// # Errors
    /// [`TraceError::Temporary`] if the next uses of a large trace do not fit into a temporary
    /// file, [`TraceError::OnlyDeletes`] if nothing is left, [`TraceError::Write`] if writing fails.
    pub fn write_oracle_general(
        &self,
        out: &mut impl Write,
    ) -> Result<OracleGeneralLosses, TraceError> {
        let deletes = self.count_ops(Op::Delete);
        let losses = OracleGeneralLosses {
            deletes,
            writes: self.count_ops(Op::Write),
            sizes: self.sizes().is_none(),
            key_texts: (0..self.keys()).any(|id| matches!(self.key(id), Key::Text(_))),
            late: 0,
        };
        if deletes == self.requests() as u64 {
            return Err(TraceError::OnlyDeletes);
        }
        let late = if deletes > 0 {
            self.without_deletes()?.write_requests(out)?
        } else {
            self.write_requests(out)?
        };
        Ok(OracleGeneralLosses { late, ..losses })
    }

    fn count_ops(&self, op: Op) -> u64 {
        let is_it = |number: &&u8| Op::from_number(**number) == op;
        self.ops().map_or(0, |ops| ops.iter().filter(is_it).count() as u64)
    }

    fn without_deletes(&self) -> Result<Self, TraceError> {
        let mut builder = TraceBuilder::new(BuildOptions::default());
        for (at, id) in self.ids().iter().enumerate() {
            let op = self.ops().map_or(Op::Read, |ops| Op::from_number(ops[at]));
            if op != Op::Delete {
                builder.push(Request {
                    key: self.key(id.get()),
                    size_bytes: self.sizes().map(|sizes| u64::from(sizes[at].get())),
                    op,
                    time_us: self.times_us().map(|times| times[at].get()),
                    ttl_us: None,
                    cost_ns: None,
                })?;
            }
        }
        builder.finish()
    }

    /// Writes every request; returns how many are too late for the form.
    fn write_requests(&self, out: &mut impl Write) -> Result<u64, TraceError> {
        let next_use = self.compute_next_use()?;
        let mut late = 0;
        // Numbers of one kind among those of the other would make one key of two.
        let all_numbers = (0..self.keys()).all(|id| matches!(self.key(id), Key::Number(_)));
        let (sizes, times) = (self.sizes(), self.times_us());
        let start_us = times.and_then(|times| times.iter().map(|time| time.get()).min());
        let mut write = |out: &mut dyn Write, at: usize, id: u32, next: u32| -> io::Result<()> {
            let since_us = times.map_or(0, |times| times[at].get() - start_us.unwrap_or_default());
            let seconds = u32::try_from(since_us / 1_000_000).unwrap_or_else(|_| {
                late += 1;
                u32::MAX
            });
            let key = match self.key(id) {
                Key::Number(number) if all_numbers => number,
                _ => u64::from(id),
            };
            let size = sizes.map_or(1, |sizes| sizes[at].get());
            let next = if next == u32::MAX { NEVER } else { i64::from(next) };
            out.write_all(&seconds.to_le_bytes())?;
            out.write_all(&key.to_le_bytes())?;
            out.write_all(&size.to_le_bytes())?;
            out.write_all(&next.to_le_bytes())
        };
        for (at, (id, next)) in self.ids().iter().zip(next_use.iter()).enumerate() {
            write(out, at, id.get(), next.get()).map_err(TraceError::Write)?;
        }
        out.flush().map_err(TraceError::Write)?;
        Ok(late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(requests: &[(Key<'_>, Op, Option<u64>)]) -> Trace {
        let mut builder = TraceBuilder::new(BuildOptions::default());
        for &(key, op, time_us) in requests {
            builder
                .push(Request { key, size_bytes: None, op, time_us, ttl_us: None, cost_ns: None })
                .unwrap();
        }
        builder.finish().unwrap()
    }

    #[test]
    fn deletions_are_left_out_and_every_loss_is_counted() {
        let (a, b) = (Key::Text(b"a"), Key::Text(b"b"));
        let trace = trace(&[
            (a, Op::Write, Some(0)),
            (b, Op::Delete, Some(0)),
            (a, Op::Delete, Some(0)),
            (a, Op::Read, Some(1 << 62)),
        ]);
        let mut out = Vec::new();
        let losses = trace.write_oracle_general(&mut out).unwrap();
        let expected =
            OracleGeneralLosses { deletes: 2, writes: 1, sizes: true, key_texts: true, late: 1 };
        assert_eq!(losses, expected);
        assert_eq!(losses.describe().len(), 5);
        // Two requests of one key: the second is the next of the first.
        assert_eq!(out.len(), 48);
        assert_eq!(out[16..24], 1_i64.to_le_bytes());
    }

    #[test]
    fn deletions_alone_are_an_error() {
        let trace = trace(&[(Key::Number(1), Op::Delete, None)]);
        let error = trace.write_oracle_general(&mut Vec::new()).unwrap_err();
        assert!(matches!(error, TraceError::OnlyDeletes), "{error}");
    }

    #[test]
    fn keys_stay_apart() {
        let mut builder = TraceBuilder::new(BuildOptions::default());
        for key in [Key::Text(b"abc"), Key::Number(0)] {
            builder.push(Request::read(key)).unwrap();
        }
        let mut out = Vec::new();
        builder.finish().unwrap().write_oracle_general(&mut out).unwrap();
        assert_ne!(out[4..12], out[28..36]);
    }

    #[test]
    fn a_request_is_24_bytes_and_knows_the_next_one() {
        let mut builder = TraceBuilder::new(BuildOptions::default());
        for (key, time_us) in [(7, 5_000_000), (8, 6_000_000), (7, 8_500_000)] {
            let key = Key::Number(key);
            let (size_bytes, time_us) = (Some(100), Some(time_us));
            builder
                .push(Request {
                    key,
                    size_bytes,
                    op: Op::Read,
                    time_us,
                    ttl_us: None,
                    cost_ns: None,
                })
                .unwrap();
        }
        let mut out = Vec::new();
        builder.finish().unwrap().write_oracle_general(&mut out).unwrap();
        let mut expected = Vec::new();
        for (time, key, next) in [(0_u32, 7_u64, 2_i64), (1, 8, -1), (3, 7, -1)] {
            expected.extend(time.to_le_bytes());
            expected.extend(key.to_le_bytes());
            expected.extend(100_u32.to_le_bytes());
            expected.extend(next.to_le_bytes());
        }
        assert_eq!(out, expected);
    }
}
