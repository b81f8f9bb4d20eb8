//! The acknowledged writes of a writer and of those before it, and the values that reads may
//! therefore find.

use super::tally::Tally;

/// The sequence number of a key that is not there.
const ABSENT: u64 = 0;

/// The state of a key, as far as it is known.
#[derive(Clone, Debug, Default)]
struct KnownEntry {
    /// The sequence number of the last acknowledged write.
    settled: u64,
    /// Sequence numbers of other values that may be there: operations that were cut by a death or
    /// failed.
    possible: Vec<u64>,
    /// Number of operations since then that were refused with Busy, for debugging.
    refused: u64,
}

/// The operation in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flight {
    Write { key: u64, sequence: u64 },
    Read { key: u64 },
}

/// The meaning of a line that a writer process of the torture prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// An operation ended, or nothing of interest.
    Nothing,
    /// An operation was acknowledged. It wrote the value of this key and sequence number.
    Done(Option<(u64, u64)>),
    /// The writer has reported all entries that it found.
    Ready,
    /// The writer ended in order.
    End,
    /// The writer cannot go on.
    Error(String),
}

/// The record of what one writer has written to its keys in the cache, across all its processes.
#[derive(Debug)]
pub(super) struct Ledger {
    number: u64,
    writers: u64,
    /// Whether the cache may evict entries.
    evicts: bool,
    /// Whether the latencies of the writer's operations are counted.
    pub(super) is_timed: bool,
    known: Vec<KnownEntry>,
    audited: Vec<bool>,
    audit: usize,
    flight: Option<Flight>,
    last_sequence: u64,
}

impl Ledger {
    pub(super) fn new(number: u64, writers: u64, keys: u64, evicts: bool) -> Self {
        let own = usize::try_from(keys / writers).expect("keys fit the memory");
        Self {
            number,
            writers,
            evicts,
            is_timed: true,
            known: vec![KnownEntry::default(); own],
            audited: Vec::new(),
            audit: 0,
            flight: None,
            last_sequence: ABSENT,
        }
    }

    /// Returns the number of keys that belong to the writer.
    pub(super) fn own_keys(&self) -> u64 {
        self.known.len() as u64
    }

    /// Begins the record of a new process of the writer, which first reports its first `audit`
    /// keys; returns the process's first sequence number.
    pub(super) fn begin(&mut self, audit: u64) -> u64 {
        self.audit = usize::try_from(audit).expect("as many as there are").min(self.known.len());
        self.audited = vec![false; self.audit];
        self.last_sequence + 1
    }

    /// Records that the writer's process was killed: its last operation may or may not have
    /// happened.
    pub(super) fn died(&mut self) {
        if let Some(Flight::Write { key, sequence }) = self.flight.take()
            && let Some(known) = self.known(key)
        {
            known.possible.push(sequence);
        }
    }

    fn known(&mut self, key: u64) -> Option<&mut KnownEntry> {
        let rank = self.rank(key)?;
        self.known.get_mut(rank)
    }

    fn rank(&self, key: u64) -> Option<usize> {
        let is_own = key % self.writers == self.number;
        let rank = usize::try_from(key / self.writers).ok()?;
        (is_own && rank < self.known.len()).then_some(rank)
    }

    /// Reads a line that the writer process printed, and checks it against the record of the
    /// writer's keys.
    ///
    /// # Errors
    ///
    /// That it is none which could come here.
    pub(super) fn line(&mut self, line: &str, tally: &mut Tally) -> Result<Said, String> {
        self.understand(line, tally).ok_or_else(|| {
            let shown: String = line.chars().take(80).collect();
            format!("writer {} said '{}'", self.number, shown.escape_debug())
        })
    }

    /// None for nonsense.
    fn understand(&mut self, line: &str, tally: &mut Tally) -> Option<Said> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "set" => {
                let (key, sequence) = pair(rest)?;
                let is_next = sequence > self.last_sequence && self.flight.is_none();
                self.rank(key).filter(|_| is_next)?;
                self.last_sequence = sequence;
                self.flight = Some(Flight::Write { key, sequence });
            }
            "delete" | "get" => {
                let key = rest.parse().ok()?;
                self.rank(key).filter(|_| self.flight.is_none())?;
                let sequence = ABSENT;
                let write = Flight::Write { key, sequence };
                self.flight = Some(if word == "get" { Flight::Read { key } } else { write });
            }
            "done" => {
                self.took(rest, tally)?;
                let Flight::Write { key, sequence } = self.flight.take()? else { return None };
                *self.known(key)? = KnownEntry { settled: sequence, ..KnownEntry::default() };
                tally.acknowledged += 1;
                return Some(Said::Done((sequence != ABSENT).then_some((key, sequence))));
            }
            "hit" | "miss" => {
                let (sequence, time) =
                    if word == "hit" { rest.split_once(' ')? } else { ("0", rest) };
                self.took(time, tally)?;
                let Flight::Read { key } = self.flight.take()? else { return None };
                self.judge(key, sequence.parse().ok()?, tally);
                tally.acknowledged += 1;
                return Some(Said::Done(None));
            }
            "busy" => {
                self.took(rest, tally)?;
                // Nothing has changed, as the cache says.
                if let Some(Flight::Write { key, .. }) = self.flight.take()
                    && let Some(known) = self.known(key)
                {
                    known.refused += 1;
                }
                tally.busy += 1;
            }
            "failed" => {
                let (_time, why) = rest.split_once(' ')?;
                self.died();
                tally.failed += 1;
                tally.find(|| format!("writer {}: {why}", self.number));
            }
            "wrong" => {
                self.flight = None;
                let (key, wrong) = rest.split_once(' ')?;
                if let Some(rank) = self.rank(key.parse().ok()?)
                    && let Some(audited) = self.audited.get_mut(rank)
                {
                    *audited = true;
                }
                tally.wrong += 1;
                tally.find(|| format!("writer {} read key {key}: {wrong}", self.number));
            }
            "found" => {
                let (key, sequence) = pair(rest)?;
                let rank = self.rank(key)?;
                *self.audited.get_mut(rank)? = true;
                self.judge(key, sequence, tally);
            }
            "opened" => tally.opened(rest.parse().ok()?),
            "ready" => {
                for rank in 0..self.audit {
                    if !self.audited[rank] {
                        self.judge(rank as u64 * self.writers + self.number, ABSENT, tally);
                    }
                }
                return Some(Said::Ready);
            }
            "end" => return Some(Said::End),
            "error" => return Some(Said::Error(rest.to_owned())),
            _ => return None,
        }
        Some(Said::Nothing)
    }

    fn took(&self, time: &str, tally: &mut Tally) -> Option<()> {
        let time = time.parse().ok()?;
        if self.is_timed {
            tally.wrote(time);
        }
        Some(())
    }

    /// Compares what was found with what was acknowledged.
    fn judge(&mut self, key: u64, found: u64, tally: &mut Tally) {
        tally.compared += 1;
        let evicts = self.evicts;
        let number = self.number;
        let Some(known) = self.known(key) else { return };
        if found == known.settled && known.possible.is_empty() {
            return;
        }
        let is_allowed = found == known.settled || known.possible.contains(&found);
        if found == ABSENT && evicts {
            // It may have been evicted, or not have been seen in a hurry: nothing is known.
            return;
        }
        if !is_allowed {
            let due: Vec<u64> =
                [known.settled].into_iter().chain(known.possible.iter().copied()).collect();
            let mut due = due.iter().map(|&due| name(due)).collect::<Vec<_>>().join(" or ");
            if known.refused > 0 {
                due = format!("{due} (and {} times Busy since)", known.refused);
            }
            if found == ABSENT {
                tally.lost += 1;
                tally.find(|| format!("key {key} of writer {number}: {due} is lost"));
            } else {
                tally.wrong += 1;
                let found = name(found);
                tally.find(|| format!("key {key} of writer {number}: {found} in place of {due}"));
            }
        }
        *known = KnownEntry { settled: found, ..KnownEntry::default() };
    }
}

fn name(sequence: u64) -> String {
    if sequence == ABSENT { "nothing".to_owned() } else { format!("number {sequence}") }
}

fn pair(text: &str) -> Option<(u64, u64)> {
    let (one, other) = text.split_once(' ')?;
    let other: u64 = other.parse().ok()?;
    Some((one.parse().ok()?, other)).filter(|_| other != ABSENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ledger of the keys 1, 4, 7, 10.
    fn ledger(evicts: bool) -> Ledger {
        Ledger::new(1, 3, 12, evicts)
    }

    fn say(ledger: &mut Ledger, text: &str) -> Tally {
        let mut tally = Tally::default();
        for line in text.split(", ") {
            ledger.line(line, &mut tally).expect("a line");
        }
        tally
    }

    fn wrong_and_lost(tally: &Tally) -> (u64, u64) {
        (tally.wrong, tally.lost)
    }

    #[test]
    fn what_was_acknowledged_has_to_be_found() {
        let mut ledger = ledger(false);
        assert_eq!(ledger.begin(4), 1);
        let tally = say(&mut ledger, "ready, set 4 1, done 10, set 7 2, done 30, delete 4, done 5");
        assert_eq!((tally.acknowledged, tally.longest_write_ns), (3, 30));
        assert_eq!(wrong_and_lost(&tally), (0, 0));
        ledger.died();
        assert_eq!(ledger.begin(4), 3);
        assert_eq!(wrong_and_lost(&say(&mut ledger, "found 7 2, ready")), (0, 0));
        ledger.begin(4);
        assert_eq!(wrong_and_lost(&say(&mut ledger, "ready")), (0, 1));
        // It is said once.
        ledger.begin(4);
        assert_eq!(wrong_and_lost(&say(&mut ledger, "ready")), (0, 0));
        ledger.begin(4);
        let tally = say(&mut ledger, "found 4 1, ready");
        assert_eq!(wrong_and_lost(&tally), (1, 0));
        assert_eq!(tally.findings, ["key 4 of writer 1: number 1 in place of nothing"]);
        assert!(tally.verdict().expect("one").starts_with("wrong values: 1; key 4"));
    }

    #[test]
    fn what_was_in_flight_has_happened_or_not() {
        for (found, is_wrong) in [("found 4 1, ready", 0), ("found 4 2, ready", 0), ("ready", 1)] {
            let mut ledger = ledger(false);
            ledger.begin(0);
            say(&mut ledger, "set 4 1, done 10, set 4 2");
            ledger.died();
            ledger.begin(4);
            assert_eq!(wrong_and_lost(&say(&mut ledger, found)), (0, is_wrong), "{found}");
        }
        // What was decided once stays.
        let mut ledger = ledger(false);
        ledger.begin(0);
        say(&mut ledger, "set 4 1, done 10, delete 4");
        ledger.died();
        ledger.begin(4);
        say(&mut ledger, "ready");
        ledger.begin(4);
        assert_eq!(wrong_and_lost(&say(&mut ledger, "found 4 1, ready")), (1, 0));
    }

    #[test]
    fn a_cache_that_evicts_may_miss_but_not_go_back() {
        let mut ledger = ledger(true);
        ledger.begin(0);
        let tally = say(&mut ledger, "set 4 1, done 1, get 4, miss 1, set 4 2, done 1");
        assert_eq!(wrong_and_lost(&tally), (0, 0));
        assert_eq!(wrong_and_lost(&say(&mut ledger, "get 4, hit 2 7")), (0, 0));
        assert_eq!(wrong_and_lost(&say(&mut ledger, "get 4, hit 1 7")), (1, 0));
        say(&mut ledger, "delete 4, done 1");
        assert_eq!(wrong_and_lost(&say(&mut ledger, "get 4, hit 2 7")), (1, 0));
    }

    #[test]
    fn what_was_refused_has_not_happened_and_what_failed_may_have() {
        let mut ledger = ledger(false);
        ledger.begin(0);
        let tally = say(&mut ledger, "set 4 1, busy 9, set 7 2, failed 9 no room left");
        assert_eq!((tally.busy, tally.failed), (1, 1));
        ledger.begin(4);
        let tally = say(&mut ledger, "found 4 1, found 7 2, ready");
        assert_eq!(wrong_and_lost(&tally), (1, 0));
    }

    #[test]
    fn nonsense_is_refused() {
        for line in
            ["", "set 4", "set 5 1", "set 400 1", "done 1", "hit 1 1", "found 4 0", "set 4 x"]
        {
            let mut ledger = ledger(false);
            ledger.begin(4);
            ledger.line(line, &mut Tally::default()).unwrap_err();
        }
    }
}
