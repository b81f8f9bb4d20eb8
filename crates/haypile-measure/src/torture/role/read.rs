//! The role of a reader, which reads a fixed mix of keys, and checks that values are whole and time
//! does not run backwards.

use std::fmt::Write as _;
use std::io::{self, BufRead, Write};
use std::time::Instant;

use super::target::{Refusal, Target};
use super::{Orders, line, nanos, say};
use crate::torture::draw::Draw;
use crate::torture::value::{self, key_bytes};

#[derive(Default)]
struct Round {
    hits: u64,
    busy: u64,
    failed: u64,
    longest_ns: u64,
}

pub(super) fn run(
    orders: &Orders,
    target: &mut dyn Target,
    out: &mut impl Write,
) -> io::Result<()> {
    let keys = orders.number("keys");
    let mut draw = Draw::new(orders.seed);
    let mut newest = vec![0; usize::try_from(keys).unwrap_or(0)];
    let mut buffer = Vec::new();
    say(out, "ready\n")?;
    for order in io::stdin().lock().lines() {
        let order = order?;
        let reads = order.strip_prefix("read ").and_then(|number| number.parse().ok());
        let Some(reads) = reads else {
            return say(out, &format!("error '{}' is no order\n", line(&order)));
        };
        let mut round = Round::default();
        let mut said = String::new();
        for _ in 0..reads {
            let key = draw.skewed(keys);
            let name = key_bytes(key);
            let begun = Instant::now();
            let found = target.get_into(name.as_bytes(), &mut buffer);
            round.longest_ns = round.longest_ns.max(nanos(begun));
            match found {
                Ok(false) => {}
                Ok(true) => {
                    round.hits += 1;
                    let newest = newest.get_mut(usize::try_from(key).unwrap_or(0));
                    let newest = newest.expect("as many as there are keys");
                    let wrong = match value::read(orders.lengths(), key, &buffer) {
                        Ok(sequence) if sequence < *newest => {
                            format!("{sequence} after {newest} was read: it was overwritten")
                        }
                        Ok(sequence) => {
                            *newest = sequence;
                            continue;
                        }
                        Err(wrong) => wrong,
                    };
                    writeln!(said, "wrong {key} {wrong}").expect("a string takes all");
                }
                Err(Refusal::Busy) => round.busy += 1,
                Err(Refusal::Unsupported) => round.failed += 1,
                Err(Refusal::Failed(error)) => {
                    round.failed += 1;
                    writeln!(said, "failed {}", line(&error)).expect("a string takes all");
                }
            }
        }
        let Round { hits, busy, failed, longest_ns } = round;
        writeln!(said, "round {reads} {hits} {busy} {failed} {longest_ns}")
            .expect("a string takes all");
        say(out, &said)?;
    }
    say(out, "end\n")
}
