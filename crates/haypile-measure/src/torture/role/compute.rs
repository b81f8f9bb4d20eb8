//! The role of a process that computes a value for others, or waits for the process that computes
//! it.

use std::cell::RefCell;
use std::io::{self, Write};
use std::time::Instant;

use super::target::Target;
use super::{Orders, ask, nanos, refused, say};
use crate::torture::value::{self, key_bytes};

pub(super) fn run(
    orders: &Orders,
    target: &mut dyn Target,
    out: &mut impl Write,
) -> io::Result<()> {
    let (key, sequence) = (orders.number("key"), orders.number("first"));
    say(out, "ready\nasking\n")?;
    let begun = Instant::now();
    let shared = RefCell::new(&mut *out);
    let result = target.get_or_compute(key_bytes(key).as_bytes(), &[], &mut || {
        ask(&mut **shared.borrow_mut(), |told| (told == "go").then_some(()));
        let mut value = Vec::new();
        value::write(orders.lengths(), key, sequence, &mut value);
        value
    });
    let time = nanos(begun);
    let text = match result {
        Ok(value) => match value::read(orders.lengths(), key, &value) {
            Ok(sequence) => format!("value {sequence} {time}"),
            Err(wrong) => format!("wrong {key} {wrong}"),
        },
        Err(refusal) => refused(&refusal, time),
    };
    say(out, &format!("{text}\nend\n"))
}
