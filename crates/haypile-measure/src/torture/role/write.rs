//! The role of a writer, which writes its own keys, and reports each operation before and after it.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use super::target::{Refusal, Target};
use super::{Orders, line, nanos, say};
use crate::torture::draw::Draw;
use crate::torture::value::{self, Lengths, key_bytes};

pub(super) fn run(
    orders: &Orders,
    target: &mut dyn Target,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut writer = Writer {
        target,
        lengths: orders.lengths(),
        writers: orders.number("writers").max(1),
        number: orders.number("number"),
        value: Vec::new(),
        said: String::new(),
    };
    writer.audit(orders.number("audit"), out)?;
    let is_over = watch_input();
    let own_keys = orders.number("keys") / writer.writers;
    let (deletes, fetches) = (orders.number("delete"), orders.number("fetch"));
    let mut draw = Draw::new(orders.seed);
    let mut sequence = orders.number("first");
    while !is_over.load(Ordering::Relaxed) {
        let key = writer.own(draw.skewed(own_keys));
        let what = draw.below(100);
        if what < deletes {
            writer.delete(key, out)?;
            continue;
        }
        let is_missing = what >= deletes + fetches || writer.fetch(key, out)?;
        if is_missing {
            writer.set(key, sequence, out)?;
            sequence += 1;
        }
    }
    writer.said.push_str("end\n");
    say(out, &writer.said)
}

/// Becomes true when standard input ends: the parent wants an end, or is gone.
fn watch_input() -> Arc<AtomicBool> {
    let is_over = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_over);
    thread::spawn(move || {
        // Whatever an error is, nobody is there.
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        flag.store(true, Ordering::Relaxed);
    });
    is_over
}

struct Writer<'a> {
    target: &'a mut dyn Target,
    lengths: Lengths,
    writers: u64,
    number: u64,
    value: Vec<u8>,
    /// Text that is written together with the next line.
    said: String,
}

impl Writer<'_> {
    /// The key of this writer's own number `rank`.
    fn own(&self, rank: u64) -> u64 {
        rank * self.writers + self.number
    }

    /// Says what is there of the first keys.
    fn audit(&mut self, ranks: u64, out: &mut impl Write) -> io::Result<()> {
        for rank in 0..ranks {
            let key = self.own(rank);
            match self.target.get_into(key_bytes(key).as_bytes(), &mut self.value) {
                Ok(false) => {}
                Ok(true) => match value::read(self.lengths, key, &self.value) {
                    Ok(sequence) => self.add(format_args!("found {key} {sequence}")),
                    Err(wrong) => self.add(format_args!("wrong {key} {wrong}")),
                },
                Err(refusal) => self.refused(&refusal, 0),
            }
        }
        self.said.push_str("ready\n");
        say(out, &self.said)?;
        self.said.clear();
        Ok(())
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        writeln!(self.said, "{text}").expect("a string takes all");
    }

    fn refused(&mut self, refusal: &Refusal, time: u64) {
        match refusal {
            Refusal::Busy => self.add(format_args!("busy {time}")),
            Refusal::Unsupported => self.add(format_args!("failed {time} it is not supported")),
            Refusal::Failed(error) => self.add(format_args!("failed {time} {}", line(error))),
        }
    }

    /// Says what was done last and what comes now, by one call of the system.
    fn announce(&mut self, text: std::fmt::Arguments<'_>, out: &mut impl Write) -> io::Result<()> {
        self.add(text);
        say(out, &self.said)?;
        self.said.clear();
        Ok(())
    }

    fn finish(&mut self, result: Result<(), Refusal>, begun: Instant) {
        let time = nanos(begun);
        match result {
            Ok(()) => self.add(format_args!("done {time}")),
            Err(refusal) => self.refused(&refusal, time),
        }
    }

    fn set(&mut self, key: u64, sequence: u64, out: &mut impl Write) -> io::Result<()> {
        value::write(self.lengths, key, sequence, &mut self.value);
        let name = key_bytes(key);
        self.announce(format_args!("set {key} {sequence}"), out)?;
        let begun = Instant::now();
        let result = self.target.set(name.as_bytes(), &self.value);
        self.finish(result, begun);
        Ok(())
    }

    fn delete(&mut self, key: u64, out: &mut impl Write) -> io::Result<()> {
        let name = key_bytes(key);
        self.announce(format_args!("delete {key}"), out)?;
        let begun = Instant::now();
        let result = self.target.delete(name.as_bytes());
        self.finish(result, begun);
        Ok(())
    }

    /// Whether it is not there.
    fn fetch(&mut self, key: u64, out: &mut impl Write) -> io::Result<bool> {
        let name = key_bytes(key);
        self.announce(format_args!("get {key}"), out)?;
        let begun = Instant::now();
        let result = self.target.get_into(name.as_bytes(), &mut self.value);
        let time = nanos(begun);
        match result {
            Ok(false) => self.add(format_args!("miss {time}")),
            Ok(true) => match value::read(self.lengths, key, &self.value) {
                Ok(sequence) => self.add(format_args!("hit {sequence} {time}")),
                Err(wrong) => self.add(format_args!("wrong {key} {wrong}")),
            },
            Err(refusal) => self.refused(&refusal, time),
        }
        Ok(self.said.starts_with("miss"))
    }
}
