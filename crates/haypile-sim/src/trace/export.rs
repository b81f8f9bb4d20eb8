//! Writes a trace in a form that other simulators read.

use std::io::{self, Write};

use super::{Key, Trace, TraceError};

/// The next access of a request whose key is never asked for again, as libCacheSim wants it.
const NEVER: i64 = -1;

impl Trace {
    /// Writes the trace in libCacheSim's oracleGeneral form: for each request a little-endian u32
    /// time in seconds, u64 key, u32 size, and i64 number of the key's next request, or -1.
    ///
    /// Where any key is text, all are written as their dense numbers. A request without a size has size 1,
    /// one without a time the time 0. Operations are lost: the form has none.
    ///
    /// # Errors
    /// [`TraceError::Temporary`] if the next uses of a large trace do not fit into a temporary
    /// file, [`TraceError::Write`] if writing fails.
    pub fn write_oracle_general(&self, out: &mut impl Write) -> Result<(), TraceError> {
        let next_use = self.compute_next_use()?;
        // Numbers of one kind among those of the other would make one key of two.
        let all_numbers = (0..self.keys()).all(|id| matches!(self.key(id), Key::Number(_)));
        let (sizes, times) = (self.sizes(), self.times_us());
        let start_us = times.and_then(|times| times.iter().map(|time| time.get()).min());
        let write = |out: &mut dyn Write, at: usize, id: u32, next: u32| -> io::Result<()> {
            let since_us = times.map_or(0, |times| times[at].get() - start_us.unwrap_or_default());
            let seconds = u32::try_from(since_us / 1_000_000).unwrap_or(u32::MAX);
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
        out.flush().map_err(TraceError::Write)
    }
}

#[cfg(test)]
mod tests {
    use crate::trace::{BuildOptions, Op, Request, Sink, TraceBuilder};

    use super::*;

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
            builder.push(Request { key, size_bytes, op: Op::Read, time_us }).unwrap();
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
