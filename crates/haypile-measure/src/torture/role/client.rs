//! The role of a client, which performs the orders of standard input, one after the other.

use std::cell::RefCell;
use std::io::{self, Write};
use std::time::Instant;

use super::target::{Filled, Refusal, Target};
use super::{Orders, ask, line, nanos, refused, say};
use crate::torture::value::{self, key_bytes};

/// The number of groups of keys that can be removed together in the torture case `invalidate`: a
/// key's group is its number modulo this.
pub(in crate::torture) const GROUPS: u64 = 6;

/// The number of the group that contains all keys of the torture case `invalidate`, in addition to
/// the groups that have some of them.
pub(in crate::torture) const ALL_KEYS: u64 = GROUPS;

pub(super) fn run(
    orders: &Orders,
    target: &mut dyn Target,
    out: &mut impl Write,
) -> io::Result<()> {
    say(out, "ready\n")?;
    let out = RefCell::new(out);
    let mut client = Client { orders, target, out: &out, buffer: Vec::new() };
    let mut order = String::new();
    loop {
        order.clear();
        if io::stdin().read_line(&mut order)? == 0 {
            return say(&mut **out.borrow_mut(), "end\n");
        }
        let answer = client.perform(order.trim_end());
        say(&mut **out.borrow_mut(), &format!("{answer}\n"))?;
    }
}

struct Client<'a, W> {
    orders: &'a Orders,
    target: &'a mut dyn Target,
    out: &'a RefCell<&'a mut W>,
    buffer: Vec<u8>,
}

impl<W: Write> Client<'_, W> {
    /// Gives the line that answers the order.
    fn perform(&mut self, order: &str) -> String {
        let begun = Instant::now();
        let (word, number) = order.split_once(' ').unwrap_or((order, "0"));
        let Ok(number) = number.parse() else {
            return format!("error '{}' is no order", line(order));
        };
        let done = match word {
            "get" => self.get(number, begun),
            "compute" => self.compute(number, begun),
            "fill" => self.fill(number, begun),
            "delete" => self.target.delete(key_bytes(number).as_bytes()).map(|()| done(begun)),
            "invalidate" => self.target.invalidate(&group(number)).map(|()| done(begun)),
            "clear" => self.target.clear().map(|()| done(begun)),
            _ => return format!("error '{}' is no order", line(order)),
        };
        done.unwrap_or_else(|refusal| refused(&refusal, nanos(begun)))
    }

    fn get(&mut self, key: u64, begun: Instant) -> Result<String, Refusal> {
        let is_hit = self.target.get_into(key_bytes(key).as_bytes(), &mut self.buffer)?;
        let time = nanos(begun);
        Ok(if is_hit { self.found("hit", key, &self.buffer, time) } else { format!("miss {time}") })
    }

    fn compute(&mut self, key: u64, begun: Instant) -> Result<String, Refusal> {
        let compute = &mut || read(self.out, self.orders, key);
        let value = self.target.get_or_compute(key_bytes(key).as_bytes(), &groups(key), compute)?;
        Ok(self.found("value", key, &value, nanos(begun)))
    }

    fn fill(&mut self, key: u64, begun: Instant) -> Result<String, Refusal> {
        let compute = &mut || read(self.out, self.orders, key);
        let name = key_bytes(key);
        let filled = self.target.fill(name.as_bytes(), &groups(key), &mut self.buffer, compute)?;
        let time = nanos(begun);
        Ok(match filled {
            Filled::Hit => self.found("hit", key, &self.buffer, time),
            Filled::Stored => format!("stored {time}"),
            Filled::Refused => format!("refused {time}"),
        })
    }

    fn found(&self, word: &str, key: u64, value: &[u8], time: u64) -> String {
        match value::read(self.orders.lengths(), key, value) {
            Ok(sequence) => format!("{word} {sequence} {time}"),
            Err(wrong) => format!("wrong {key} {wrong}"),
        }
    }
}

/// Reads the value of a key from the database, which is whoever gives the orders.
fn read(out: &RefCell<&mut impl Write>, orders: &Orders, key: u64) -> Vec<u8> {
    let number = |told: &str| told.strip_prefix("go ")?.parse().ok();
    let sequence = ask(&mut **out.borrow_mut(), number);
    let mut value = Vec::new();
    value::write(orders.lengths(), key, sequence, &mut value);
    value
}

/// The groups of a key.
fn groups(key: u64) -> [String; 2] {
    [group(key % GROUPS), group(ALL_KEYS)]
}

fn group(number: u64) -> String {
    format!("torture-group:{number}")
}

fn done(begun: Instant) -> String {
    format!("done {}", nanos(begun))
}
