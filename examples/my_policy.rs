//! A policy of your own, competing with ours on a trace.
//!
//! ```sh
//! cargo run --release --example my_policy -- traces/redis-build.csv.zst
//! ```

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::error::Error;
use std::ops::ControlFlow;

use haypile_policy::{Newcomer, Policy, Slot};
use haypile_sim::simulate::{Accounting, Contender, Options, simulate, simulate_policy};
use haypile_sim::trace::{BuildOptions, TraceBuilder, format};

/// Evicts the less used of the two oldest; the other goes to the back of the queue.
#[derive(Default)]
struct Duel {
    queue: std::collections::VecDeque<Slot>,
    uses: Vec<u32>,
}

impl Policy for Duel {
    fn reserve_slots(&mut self, slots: usize) {
        self.uses.resize(slots, 0);
    }

    fn on_hit(&mut self, slot: Slot) {
        self.uses[slot as usize] += 1;
    }

    fn evict(&mut self, _newcomer: Option<Newcomer>) -> Slot {
        let first = self.queue.pop_front().expect("an entry to evict");
        let Some(second) = self.queue.pop_front() else { return first };
        let first_loses = self.uses[first as usize] <= self.uses[second as usize];
        let (loser, winner) = if first_loses { (first, second) } else { (second, first) };
        self.uses[winner as usize] /= 2;
        self.queue.push_back(winner);
        loser
    }

    fn on_insert(&mut self, slot: Slot, _newcomer: Newcomer) {
        self.uses[slot as usize] = 0;
        self.queue.push_back(slot);
    }

    fn on_remove(&mut self, slot: Slot) {
        self.queue.retain(|other| *other != slot);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let mut builder = TraceBuilder::new(BuildOptions::default());
    format::read(&paths, &format::ReadOptions::default(), &mut builder)?;
    let trace = builder.finish()?;

    let options = Options::new(Accounting::Objects);
    let mut go_on = |_| ControlFlow::Continue(());
    let capacity = u64::from(trace.keys()) / 4;
    let show = |name: &str, hit_ratio: f64| println!("{name:10} {hit_ratio:.3}");
    println!("{capacity} objects");
    let mine = simulate_policy(&trace, Duel::default(), capacity, &options, &mut go_on)?;
    show("duel", mine.expect("not interrupted").counts.hit_ratio());
    for contender in Contender::parse_list("fifo,lru,clock,sieve,s3fifo,belady")? {
        let ours = simulate(&trace, &contender, capacity, &options, &mut go_on)?;
        show(&contender.to_string(), ours.expect("not interrupted").counts.hit_ratio());
    }
    Ok(())
}
