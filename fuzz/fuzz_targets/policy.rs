//! Every policy, with any parameters, under any requests: the bound holds, each entry is in one
//! queue, slots that belong to keys and slots that are reused lead to the same decisions. The file
//! store's policy runs in a simulated file, which has keys and no slots.

#![no_main]

#[path = "../../crates/haypile-sim/tests/segment/cache.rs"]
mod cache;
#[path = "../../crates/haypile-policy/tests/policy/driver.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod driver;
#[path = "../../crates/haypile-policy/tests/policy/invariants.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod invariants;

use std::fmt::Write;

use haypile_policy::PolicySpec;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

use crate::cache::file;
use crate::driver::{Cache, Op, Setup};
use crate::invariants::{check, check_empties, same_decisions};

/// Keys are few, so that they come again.
const KEYS: u32 = 64;
/// No entry weighs nothing, nor more than the largest store holds: sums of weights do not overflow.
const MAX_WEIGHT: u64 = haypile_policy::rules::memory::MAX_SIZE_BYTES;
const MAX_REQUESTS: usize = 400;

fuzz_target!(|bytes: &[u8]| {
    // Input that ends early is filled up with zeros; it never fails.
    let _ = run(&mut Unstructured::new(bytes));
});

fn run(input: &mut Unstructured<'_>) -> Result<()> {
    let spec = spec(input)?;
    let weighted = input.arbitrary()?;
    let capacity = capacity(input)?;
    let setup = Setup { spec: &spec, capacity, weighted, keys: KEYS };
    let mut ops = Vec::new();
    while !input.is_empty() && ops.len() < MAX_REQUESTS {
        ops.push(op(input, weighted)?);
    }
    if spec.parse::<PolicySpec>().is_ok_and(|spec| spec.is_of_file_store()) {
        ops.retain(|op| !matches!(op, Op::Resize(_)));
        apply_all(file(&setup), &spec, &ops);
        return Ok(());
    }
    for cache in [setup.by_slot(), setup.by_fingerprint()] {
        apply_all(cache, &spec, &ops);
    }
    for mut cache in [setup.with_collisions(), setup.with_shared_hits()] {
        for op in &ops {
            cache.apply(*op);
        }
    }
    same_decisions(&setup, setup.by_slot(), setup.by_same_fingerprint(), &ops);
    Ok(())
}

fn apply_all(mut cache: Box<dyn Cache>, spec: &str, ops: &[Op]) {
    // The queues are checked only now and then: that takes longer than the requests.
    let every = ops.len() / 20 + 1;
    for (at, op) in ops.iter().enumerate() {
        cache.apply(*op);
        if at % every == 0 {
            check(&*cache, spec);
        }
    }
    check_empties(cache, spec);
}

/// A policy with values for some of its parameters.
fn spec(input: &mut Unstructured<'_>) -> Result<String> {
    let kind = input.choose(PolicySpec::kinds())?;
    let mut text = kind.name.to_owned();
    for param in kind.params {
        let value = match input.arbitrary::<u8>()? {
            byte @ 1..=101 => param.min + (param.max - param.min) * f64::from(byte - 1) / 100.0,
            _ => continue,
        };
        // The invariants know shares of the capacity in whole per cents.
        let value = if param.whole || value > 1.0 { value.round() } else { value };
        write!(text, ":{}={value}", param.name).expect("a text grows");
    }
    // The invariants read parameters as the specification prints them.
    Ok(text.parse::<PolicySpec>().expect("a value within its range").to_string())
}

/// Mostly small; now and then as large as it gets.
fn capacity(input: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match input.arbitrary::<u8>()? {
        small @ 0..=200 => u64::from(small),
        201..=250 => u64::from(input.arbitrary::<u16>()?),
        _ => input.arbitrary()?,
    })
}

fn op(input: &mut Unstructured<'_>, weighted: bool) -> Result<Op> {
    let kind = input.arbitrary::<u8>()?;
    let key = u32::from(input.arbitrary::<u8>()?) % KEYS;
    if kind >= 250 {
        return Ok(Op::Resize(capacity(input)?));
    }
    if kind >= 230 {
        return Ok(Op::Remove(key));
    }
    let weight = match input.arbitrary::<u8>()? {
        _ if !weighted => 1,
        small @ 0..=220 => 1 + u64::from(small % 32),
        221..=250 => 1 + u64::from(input.arbitrary::<u8>()?),
        _ => 1 + input.arbitrary::<u64>()? % MAX_WEIGHT,
    };
    Ok(if kind < 180 { Op::Read(key, weight) } else { Op::Write(key, weight) })
}
