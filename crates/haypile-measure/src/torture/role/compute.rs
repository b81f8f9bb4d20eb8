//! Computes a value that others wait for, or waits for the process that computes it.

use std::cell::RefCell;
use std::io::{self, BufRead, Write};
use std::process;
use std::time::Instant;

use super::target::{Refusal, Target};
use super::{Orders, line, nanos, say};
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
        let mut order = String::new();
        let said = say(&mut **shared.borrow_mut(), "computing\n");
        let heard = said.and_then(|()| io::stdin().lock().read_line(&mut order));
        if heard.is_err() || order.trim_end() != "go" {
            // The parent is gone. A value must not come of it.
            process::exit(0);
        }
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
        Err(Refusal::Unsupported) => "unsupported".to_owned(),
        Err(Refusal::Busy) => format!("busy {time}"),
        Err(Refusal::Failed(error)) => format!("failed {time} {}", line(&error)),
    };
    say(out, &format!("{text}\nend\n"))
}
