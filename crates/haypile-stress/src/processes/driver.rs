//! Starts the processes of a test, kills and stops them, and judges the end.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use haypile::Cache;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use super::checker::{Checker, Judgement};
use super::ledger::{Counted, Ledger};
use super::lines::{self, Line};
use super::plan::{PLAN_VARIABLE, Plan, SHARED_KEYS};
use super::record::{Name, Record};
use super::tally::Tally;
use crate::target::{self, Target, new_directory, shown};
use crate::watch::{Watch, is_interrupted};

/// The time between two looks at the processes.
const PAUSE: Duration = Duration::from_millis(1);

/// The silence of a process that is taken for a hang. Each writes a line 20 times a second.
const PATIENCE: Duration = Duration::from_mins(1);

/// The findings of a kind that a report has.
const MOST_FINDINGS: usize = 10;

/// The bytes of a crashed process's standard error that a finding shows.
const SHOWN_BYTES: u64 = 2_000;

/// The outcome of a stress test with many processes on one cache: counts and wrong answers.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) url: String,
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    pub(crate) kills: u64,
    pub(crate) stops: u64,
    #[serde(flatten)]
    pub(crate) tally: Tally,
    pub(crate) sets_per_second: f64,
    /// The share of reads that found a value, among those of keys that should have one; `None` without such reads.
    pub(crate) hit_ratio: Option<f64>,
    /// Whether the test found nothing wrong.
    pub(crate) is_right: bool,
    pub(crate) findings: Vec<String>,
}

/// Runs a stress test with many processes on one cache, and reports its outcome.
///
/// # Errors
///
/// A URL that is wrong, a cache that cannot be opened, or a process that cannot be started.
pub(crate) fn test(plan: Plan, watch: &mut Watch) -> Result<Report> {
    let target = Target::new(&plan.url)?;
    ensure!(
        target.is_shared() || (plan.processes() == 1 && plan.kills == 0),
        "{} belongs to one process; name a cache that several can open, or use --writers 1 \
         --readers 0 without kills",
        target.url()
    );
    ensure!(plan.writing_threads() > 0, "at least one process and thread has to write");
    let directory = new_directory()?;
    let plan =
        Plan { url: target.url().to_string(), directory: directory.path().to_owned(), ..plan };
    Ledger::create(&plan).context("cannot create the ledger")?;
    if target.is_shared() {
        let cache = open(&plan, &target)?;
        prepare(&cache)?;
        cache.close()?;
    }
    let mut driver = Driver::start(&plan)?;
    driver.run(watch)?;
    let mut report = driver.finish();
    if target.is_shared() {
        let cache = open(&plan, &target)?;
        let findings = audit(&plan, &target, &cache)?;
        cache.close()?;
        for text in findings {
            let tally = &mut report.tally;
            *(if text.starts_with("lost") { &mut tally.lost } else { &mut tally.wrong }) += 1;
            report.find(text);
        }
        check_file(&target, &mut report)?;
    }
    report.judge(&plan);
    Ok(report)
}

/// Empties the cache, and writes the keys that all processes share.
pub(super) fn prepare(cache: &Cache) -> Result<()> {
    cache.clear()?;
    for number in 0..SHARED_KEYS {
        cache.set(Name::Counter(number).key(), "0")?;
        let name = Name::Swapped(number);
        cache.set(name.key(), Record::shared(name, 0).to_vec())?;
    }
    Ok(())
}

fn open(plan: &Plan, target: &Target) -> Result<Cache> {
    Ok(Cache::new(target::open(target.url(), None, plan.seed)?))
}

/// The processes.
struct Driver<'a> {
    plan: &'a Plan,
    random: ChaCha8Rng,
    begin: Instant,
    sender: Sender<Heard>,
    receiver: Receiver<Heard>,
    processes: Vec<ChildProcess>,
    /// Operations of the writing processes, as far as they were heard.
    writers_operations: u64,
    report: Report,
}

/// A process, or its successors.
struct ChildProcess {
    child: Child,
    /// Passes on what the process writes, until its output ends.
    reader: Option<JoinHandle<()>>,
    life: u64,
    /// Counts of this life, as far as they were heard.
    tally: Tally,
    heard_at: Instant,
    /// When a stopped process goes on.
    stopped_until: Option<Instant>,
}

/// A line of a process in one of its lives.
struct Heard {
    process: usize,
    life: u64,
    line: Line,
}

impl<'a> Driver<'a> {
    fn start(plan: &'a Plan) -> Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let mut driver = Self {
            plan,
            random: ChaCha8Rng::seed_from_u64(plan.seed),
            begin: Instant::now(),
            sender,
            receiver,
            processes: Vec::new(),
            writers_operations: 0,
            report: Report { url: shown(&plan.url), seed: plan.seed, ..Report::default() },
        };
        for number in 0..plan.processes() {
            let process = driver.spawn(usize::try_from(number)?, 0)?;
            driver.processes.push(process);
        }
        Ok(driver)
    }

    fn spawn(&self, number: usize, life: u64) -> Result<ChildProcess> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.arg("work").arg(number.to_string()).arg(life.to_string());
        // Not as an argument, which other users can read: the URL may have a password.
        command.env(PLAN_VARIABLE, serde_json::to_string(self.plan)?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start a process")?;
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let sender = self.sender.clone();
        let reader = thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(line) = Line::parse(&line)
                    && sender.send(Heard { process: number, life, line }).is_err()
                {
                    return;
                }
            }
        });
        let (heard_at, tally) = (Instant::now(), Tally::default());
        Ok(ChildProcess { child, reader: Some(reader), life, tally, heard_at, stopped_until: None })
    }

    /// Kills and stops processes until the time is over, or enough was done.
    fn run(&mut self, watch: &mut Watch) -> Result<()> {
        let mut kills = self.schedule(self.plan.kills);
        let mut stops = self.schedule(self.plan.stops);
        loop {
            thread::sleep(PAUSE);
            self.listen();
            self.go_on(false);
            self.look_after()?;
            let progress = self.progress();
            if progress >= 1.0 || is_interrupted() {
                return Ok(());
            }
            if kills.pop_if(|at| *at <= progress).is_some() {
                self.kill_one()?;
            }
            if stops.pop_if(|at| *at <= progress).is_some() {
                self.stop_one();
            }
            watch.progress(|| {
                let tally = self.sum();
                format!(
                    "{:.0} s: {} operations, {} kills, {} busy, {} full, {} wrong, {} lost",
                    self.begin.elapsed().as_secs_f64(),
                    tally.operations,
                    self.report.kills,
                    tally.busy,
                    tally.full,
                    tally.wrong,
                    tally.lost
                )
            });
        }
    }

    /// Returns instants, as parts of the test, the last one first.
    fn schedule(&mut self, events: u64) -> Vec<f64> {
        let mut instants: Vec<f64> =
            (0..events).map(|_| self.random.random_range(0.0..1.0)).collect();
        instants.sort_by(|one, other| other.total_cmp(one));
        instants
    }

    /// Returns the part of the test that is done, by its time or by its operations.
    fn progress(&self) -> f64 {
        let by_time = self.begin.elapsed().as_secs_f64() / self.plan.time.as_secs_f64().max(1e-9);
        let operations = self.writers_operations as f64;
        let by_steps = self.plan.steps.map_or(0.0, |steps| operations / steps.max(1) as f64);
        by_time.max(by_steps)
    }

    /// Takes in what processes have written.
    fn listen(&mut self) {
        while let Ok(Heard { process: number, life, line }) = self.receiver.try_recv() {
            let process = &mut self.processes[number];
            let is_current = life == process.life;
            if is_current {
                process.heard_at = Instant::now();
            }
            match line {
                // A life's counts were summed up when it ended.
                Line::Tally(tally) => {
                    if is_current {
                        if (number as u64) < self.plan.writers {
                            self.writers_operations += tally.operations - process.tally.operations;
                        }
                        process.tally = tally;
                    }
                }
                Line::Finding(text) => self.report.find(text),
            }
        }
    }

    /// Notices processes that crashed or hang.
    fn look_after(&mut self) -> Result<()> {
        for number in 0..self.processes.len() {
            let process = &mut self.processes[number];
            if process.stopped_until.is_some() {
                continue;
            }
            if let Some(status) = process.child.try_wait()? {
                let text = describe_end(number, status, &mut process.child);
                self.report.find(text);
                self.restart(number)?;
            } else if process.heard_at.elapsed() > PATIENCE {
                self.report.find(format!("process {number} hangs"));
                let _ = process.child.kill();
                let _ = process.child.wait();
                self.restart(number)?;
            }
        }
        Ok(())
    }

    /// Kills a process at random; the first one is a survivor.
    fn kill_one(&mut self) -> Result<()> {
        let number = self.choose();
        let process = &mut self.processes[number];
        // One that is stopped as well.
        process.stopped_until = None;
        process.child.kill()?;
        let status = process.child.wait()?;
        if status.signal() == Some(Signal::KILL.as_raw()) {
            self.report.kills += 1;
        } else if !status.success() {
            let text = describe_end(number, status, &mut process.child);
            self.report.find(text);
        }
        self.restart(number)
    }

    fn stop_one(&mut self) {
        let number = self.choose();
        let longest = self.plan.longest_stop.as_secs_f64();
        let pause = Duration::from_secs_f64(self.random.random_range(0.0..=longest));
        let process = &mut self.processes[number];
        if process.stopped_until.is_none()
            && kill_process(Pid::from_child(&process.child), Signal::STOP).is_ok()
        {
            process.stopped_until = Some(Instant::now() + pause);
            self.report.stops += 1;
        }
    }

    /// Sends SIGCONT to the stopped processes whose pause is over; with `all`, to every stopped process.
    fn go_on(&mut self, all: bool) {
        for process in &mut self.processes {
            if process.stopped_until.is_some_and(|until| all || Instant::now() >= until) {
                process.stopped_until = None;
                process.heard_at = Instant::now();
                let _ = kill_process(Pid::from_child(&process.child), Signal::CONT);
            }
        }
    }

    /// Returns a process to kill or to stop.
    fn choose(&mut self) -> usize {
        let first = usize::from(self.processes.len() > 1);
        self.random.random_range(first..self.processes.len())
    }

    /// Starts the successor of a process that has ended.
    fn restart(&mut self, number: usize) -> Result<()> {
        let successor = self.spawn(number, self.processes[number].life + 1)?;
        // What the process wrote before its end still belongs to it.
        if let Some(reader) = self.processes[number].reader.take() {
            let _ = reader.join();
        }
        self.listen();
        let ended = std::mem::replace(&mut self.processes[number], successor);
        self.report.tally.add(&ended.tally);
        Ok(())
    }

    /// Returns the counts of all processes so far.
    fn sum(&self) -> Tally {
        let mut sum = self.report.tally;
        self.processes.iter().for_each(|process| sum.add(&process.tally));
        sum
    }

    /// Ends all processes in order, and sums up.
    fn finish(mut self) -> Report {
        self.go_on(true);
        let seconds = self.begin.elapsed().as_secs_f64();
        self.processes.iter_mut().for_each(|process| drop(process.child.stdin.take()));
        let end = Instant::now() + PATIENCE;
        for number in 0..self.processes.len() {
            let process = &mut self.processes[number];
            let ended = loop {
                match process.child.try_wait() {
                    Ok(Some(status)) if status.success() => break None,
                    Ok(Some(status)) => {
                        break Some(describe_end(number, status, &mut process.child));
                    }
                    _ if Instant::now() >= end => {
                        let _ = process.child.kill();
                        break Some(format!("process {number} does not end"));
                    }
                    _ => thread::sleep(PAUSE),
                }
            };
            if let Some(reader) = process.reader.take() {
                let _ = reader.join();
            }
            if let Some(text) = ended {
                self.report.find(text);
            }
        }
        self.listen();
        self.report.tally = self.sum();
        self.report.seconds = seconds;
        std::mem::take(&mut self.report)
    }
}

impl Drop for Driver<'_> {
    /// Leaves no process behind.
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

fn describe_end(number: usize, status: ExitStatus, child: &mut Child) -> String {
    let mut text = String::new();
    if let Some(errors) = child.stderr.take() {
        let _ = errors.take(SHOWN_BYTES).read_to_string(&mut text);
    }
    format!("process {number} ended by itself ({status}): {}", text.trim())
}

/// Compares all entries of the cache with the recorded writes, while no process changes it; returns descriptions of
/// what is wrong.
pub(super) fn audit(plan: &Plan, target: &Target, cache: &Cache) -> Result<Vec<String>> {
    let (ledger, checker) = (Ledger::open(plan)?, Checker::new(plan, target, None));
    let mut findings = Vec::new();
    for key in 0..plan.owned_keys() {
        let before = checker.before(&ledger, key)?;
        let found = cache.get(Name::Owned(key).key())?;
        match checker.judge(&ledger, key, &before, found.as_deref())? {
            Judgement::Right => {}
            Judgement::Wrong(text) => findings.push(format!("wrong at the end: {text}")),
            Judgement::Lost(text) => findings.push(format!("lost at the end: {text}")),
        }
    }
    for counted in Counted::all() {
        let (sum, count) = (ledger.sum(counted)?, count_of(cache, counted)?);
        match count {
            None if plan.keeps_all() => findings.push(format!("lost at the end: {counted:?}")),
            None => {}
            Some(count) => {
                let least = if plan.keeps_all() { sum.acknowledged } else { 0 };
                if count < least || count > sum.attempted {
                    findings.push(format!("wrong at the end: {counted:?} is {count} of {sum:?}"));
                }
            }
        }
    }
    Ok(findings)
}

/// Checks the file of the last level as `haypile check` does.
fn check_file(target: &Target, report: &mut Report) -> Result<()> {
    #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
    if let Some(path) = target.file() {
        let check = haypile::file::FileCheck::of(path, |_| {})?;
        if check.damaged > 0 {
            report.find(format!("the file is damaged: {check:?}"));
        }
    }
    let _ = (target, report);
    Ok(())
}

/// Returns the value of a counter, or the sequence number of a swapped value.
fn count_of(cache: &Cache, counted: Counted) -> Result<Option<u64>> {
    Ok(match counted {
        Counted::Counter(number) => {
            let found = cache.get(Name::Counter(number).key())?;
            found.and_then(|found| haypile_policy::rules::counter::parse(&found))
        }
        Counted::Swapped(number) => {
            let name = Name::Swapped(number);
            let found = cache.get(name.key())?;
            found.and_then(|found| Record::parse(name, &found).ok()).map(|record| record.sequence)
        }
    })
}

impl Report {
    fn find(&mut self, text: String) {
        if lines::is_news(&self.findings, &text, MOST_FINDINGS) {
            self.findings.push(text);
        }
    }

    fn judge(&mut self, plan: &Plan) {
        let Tally { sets, hits, expected_hits, busy, full, failed, wrong, lost, .. } = self.tally;
        self.sets_per_second = sets as f64 / self.seconds.max(1e-9);
        self.hit_ratio = (expected_hits > 0).then(|| hits as f64 / expected_hits as f64);
        let denied = (plan.denies_busy && busy > 0) || (plan.denies_full && full > 0);
        self.is_right = wrong + lost + failed == 0 && !denied && self.findings.is_empty();
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally {
            operations, sets, gets, pins_compared, busy, full, failed, wrong, lost, ..
        } = self.tally;
        writeln!(
            f,
            "{}, seed {}: {operations} operations in {:.1} s, {} kills, {} stops",
            self.url, self.seed, self.seconds, self.kills, self.stops
        )?;
        writeln!(
            f,
            "{sets} sets ({:.0} per second), {gets} reads (hit ratio {}), {pins_compared} \
             comparisons in place, longest operation {} ms",
            self.sets_per_second,
            self.hit_ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.4}")),
            self.tally.longest_us / 1_000
        )?;
        writeln!(f, "{busy} busy, {full} full, {failed} failed, {wrong} wrong, {lost} lost")?;
        for finding in &self.findings {
            writeln!(f, "  {finding}")?;
        }
        f.write_str(if self.is_right { "nothing wrong" } else { "WRONG" })
    }
}
