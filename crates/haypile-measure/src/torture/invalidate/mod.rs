//! The case `invalidate`: clients delete, clear and invalidate while others compute and read, and are killed and
//! stopped: no value that is read may be older than a removal that was acknowledged before.
//!
//! Each client does one order after the other, which a thread gives it. The *database* that its values come from is a number
//! here, which rises with each change, so that it is known of each value what it was computed from.

mod client;
mod orders;
mod truth;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use client::{Client, End};
use orders::{Fate, Order, Removal};
use truth::Truth;

use super::context::TestContext;
use super::draw::{Draw, word};
use super::role::SERVERS;
use super::spoken::Unsupported;
use super::tally::Tally;
use crate::measure::Failure;

/// The most orders of a client before it is killed.
const MOST_ORDERS: u64 = 200;

/// One of this number of orders is done by a process that is stopped in the middle.
const STOP_ONE_OF: u64 = 256;

/// The longest time for which a client is stopped, in nanoseconds.
const LONGEST_STOP_NS: u64 = 5_000_000;

/// The longest time from an order to the kill in the middle of it, in nanoseconds.
const LONGEST_LIFE_NS: u64 = 60_000;

/// One of this number of computations takes time.
const SLOW_ONE_OF: u64 = 2;

/// The longest time that a computation takes, in nanoseconds.
const LONGEST_COMPUTATION_NS: u64 = 400_000;

/// Runs the torture case `invalidate` (entries are removed while processes compute them), with kills of client
/// processes, or without as a control run.
pub(super) fn run(context: &TestContext<'_>, is_control: bool) -> Result<(), Unsupported> {
    let truth = Truth::new(context.stage.keys);
    let left = AtomicU64::new(context.options.kills);
    let is_unsupported = AtomicBool::new(false);
    thread::scope(|scope| {
        let (truth, left, is_unsupported) = (&truth, &left, &is_unsupported);
        let survivor =
            scope.spawn(move || Driver::new(context, truth, is_unsupported, 0).survive());
        let victims: Vec<_> = (1..context.options.writers)
            .map(|number| {
                let driver = Driver::new(context, truth, is_unsupported, number);
                scope.spawn(move || driver.die_again(left, is_control))
            })
            .collect();
        for victim in victims {
            victim.join().expect("no panic");
        }
        context.end();
        survivor.join().expect("no panic");
    });
    if is_unsupported.into_inner() { Err(Unsupported) } else { Ok(()) }
}

/// A server on the same machine has done by then what a client asked for that was killed.
const SERVER_GRACE: Duration = Duration::from_millis(20);

/// Gives orders to one client after the other.
struct Driver<'a> {
    context: &'a TestContext<'a>,
    truth: &'a Truth,
    /// Whether the cache has no operations of this case.
    is_unsupported: &'a AtomicBool,
    draw: Draw,
    /// The removal that the client performs.
    removal: Option<Removal>,
    tally: Tally,
}

impl<'a> Driver<'a> {
    fn new(
        context: &'a TestContext<'a>,
        truth: &'a Truth,
        is_unsupported: &'a AtomicBool,
        number: u64,
    ) -> Self {
        let draw = Draw::new(word(context.options.seed, number));
        Self { context, truth, is_unsupported, draw, removal: None, tally: Tally::default() }
    }

    /// Orders until all others have died; then reads every key.
    fn survive(mut self) {
        while !self.context.has_given_up() && !self.context.watcher.is_interrupted() {
            let ended = self.live(|driver, client| {
                while !driver.context.ends() {
                    driver.step(client, false)?;
                }
                for key in 0..driver.truth.keys() {
                    driver.order(client, Order::Get(key), Fate::Live)?;
                }
                Ok(())
            });
            if ended {
                break;
            }
        }
        self.report();
    }

    /// Clients that are killed, or end, until there were as many as were asked for.
    fn die_again(mut self, left: &AtomicU64, is_control: bool) {
        let take = |left: u64| left.checked_sub(1);
        while !self.context.ends()
            && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
        {
            let orders = self.draw.below(MOST_ORDERS);
            self.live(|driver, client| {
                for _ in 0..orders {
                    driver.step(client, false)?;
                }
                if is_control { Ok(()) } else { driver.step(client, true) }
            });
            self.context.watcher.advance(1);
        }
        self.report();
    }

    fn report(mut self) {
        self.context.operations.fetch_add(self.tally.acknowledged, Ordering::Relaxed);
        self.context.tally.lock().take(&mut self.tally);
    }

    /// The life of one client, in which `orders` are given; whether it ended as it had to.
    fn live(&mut self, orders: impl FnOnce(&mut Self, &mut Client) -> Result<(), End>) -> bool {
        let seed = self.draw.number();
        let ended = Client::start(self.context, seed, &mut self.tally).and_then(|mut client| {
            orders(self, &mut client)?;
            client.finish(self.context)
        });
        // What it had begun ends with it, but a server may still have it to do.
        if let Some(removal) = self.removal.take() {
            if SERVERS.contains(&self.context.contestant.subject.name()) {
                thread::sleep(SERVER_GRACE);
            }
            self.truth.end(removal);
        }
        match ended {
            Ok(()) => return true,
            Err(End::Killed) => {
                self.tally.kills += 1;
                return true;
            }
            Err(End::Unsupported) => {
                self.is_unsupported.store(true, Ordering::Relaxed);
                self.context.end();
                return true;
            }
            Err(End::Failed(Failure::Interrupted)) => {}
            Err(End::Failed(Failure::Late(error))) => self.context.hung(error),
            Err(End::Failed(Failure::Failed(error))) => self.context.crashed(error),
        }
        false
    }

    /// One order, which kills the client in its middle if `kills`.
    fn step(&mut self, client: &mut Client, kills: bool) -> Result<(), End> {
        let order = Order::draw(&mut self.draw, self.truth.keys());
        let fate = if kills {
            Fate::draw_death(&mut self.draw, LONGEST_LIFE_NS)
        } else if self.draw.below(STOP_ONE_OF) == 0 {
            Fate::Stopped(Duration::from_nanos(self.draw.below(LONGEST_STOP_NS)))
        } else {
            Fate::Live
        };
        self.order(client, order, fate)
    }

    fn order(&mut self, client: &mut Client, order: Order, fate: Fate) -> Result<(), End> {
        let slow = if self.draw.below(SLOW_ONE_OF) == 0 {
            Duration::from_nanos(self.draw.below(LONGEST_COMPUTATION_NS))
        } else {
            Duration::ZERO
        };
        let read = || {
            let now = self.truth.now();
            // What is computed now is of the moment at which the database was read.
            if !slow.is_zero() {
                thread::sleep(slow);
            }
            now
        };
        let tally = &mut self.tally;
        match order {
            Order::Get(key) | Order::Compute(key) | Order::Fill(key) => {
                let before = self.truth.before(key);
                let answer = client.perform(self.context, order, fate, &read, tally)?;
                self.truth.judge(key, before, &answer, tally);
            }
            Order::Remove(removal) => {
                let changed = self.truth.change(removal);
                self.removal = Some(removal);
                let answer = client.perform(self.context, order, fate, &read, tally)?;
                self.truth.removed(removal, changed, &answer, tally);
                self.truth.end(removal);
                self.removal = None;
            }
        }
        Ok(())
    }
}
