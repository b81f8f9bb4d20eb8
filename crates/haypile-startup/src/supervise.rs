//! The supervisor's loop: it starts a command, waits until the command is ready, and ends it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use regex_lite::Regex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, set_child_subreaper};

use super::census::{Census, limit_tasks};
use super::observe::Observation;
use super::orders::{CpuSource, StartOrders, StartReport, in_seconds};
use super::probe::{Probe, succeeds_already};
use super::ready::Ready;
use super::reap::{Reaped, keep_ended_children, reap};
use super::span::Span;
use super::tally::Tally;
use super::tree;
use super::window::Windows;

/// Between two looks at a port, a server or a file.
const LOOK_PAUSE: Duration = Duration::from_micros(500);
/// The longest sleep, after which ended grandchildren are reaped.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// Between two looks at a tree that is to become quiet.
const QUIET_PAUSE: Duration = Duration::from_millis(20);
/// A tree that uses less than this share of a processor is quiet.
const QUIET_SHARE: f64 = 0.05;
/// The longest wait for processes that go on after the command has exited.
const STRAGGLER_PATIENCE: Duration = Duration::from_secs(1);
/// The longest wait for killed processes to be gone.
const KILL_PATIENCE: Duration = Duration::from_secs(5);
/// The end of the output that is kept, in bytes.
const OUTPUT_BYTES: usize = 64 << 10;
/// The longest line of output that is compared, in bytes.
const LINE_BYTES: usize = 64 << 10;
/// A part of the processor time by which a control group may exceed the processes that were waited
/// for, and nanoseconds: the times of a group are not of one instant.
const INCOMPLETE_PART: u64 = 50;
const INCOMPLETE_NS: u64 = 3_000_000;

/// Starts a command and measures the start, as ordered; returns the report, which contains any error.
pub(super) fn supervise(orders: &StartOrders, stop: &impl AsFd) -> StartReport {
    let mut report = StartReport::default();
    match Supervision::begin(orders, stop) {
        Ok(mut supervision) => {
            let outcome = supervision.run(stop, &mut report);
            supervision.end(&mut report);
            report.error = outcome.err().map(|text| supervision.explain(&text));
        }
        Err(text) => report.error = Some(text),
    }
    report
}

/// Opens what the command reads from its standard input.
fn input(orders: &StartOrders) -> Result<Stdio, String> {
    let Some(path) = &orders.input else { return Ok(Stdio::null()) };
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(file.into())
}

/// A start under way.
struct Supervision<'a> {
    orders: &'a StartOrders,
    own: i32,
    start: Instant,
    main: i32,
    /// Readable once the command has exited; `None` after that.
    exit: Option<OwnedFd>,
    exited: Option<(Instant, ExitStatus)>,
    has_children: bool,
    streams: Vec<Stream>,
    line: Option<Regex>,
    has_line: bool,
    output: Vec<u8>,
    probe: Probe,
    windows: Option<Windows>,
    tally: Tally<'a>,
    observation: Option<Observation>,
    span: Option<Span>,
    census: Census<'a>,
}

/// An output stream of the command.
struct Stream {
    file: File,
    line: Vec<u8>,
}

impl<'a> Supervision<'a> {
    fn begin(orders: &'a StartOrders, stop: &impl AsFd) -> Result<Self, String> {
        keep_ended_children();
        set_child_subreaper(Some(getpid()))
            .map_err(|error| format!("cannot adopt daemons: {error}"))?;
        if orders.ready.is_seen() == Some(true) {
            return Err(format!(
                "it is ready before the start: {} is there already; end or remove what an earlier start \
                 has left",
                orders.ready
            ));
        }
        let line = match &orders.ready {
            Ready::Line(regex) => Some(Regex::new(regex).map_err(|error| error.to_string())?),
            _ => None,
        };
        if let Ready::Command(command) = &orders.ready
            && succeeds_already(orders, command, stop)?
        {
            return Err(format!("it is ready before the start: '{command}' succeeds already"));
        }
        let windows = match &orders.ready {
            Ready::Window(title) => {
                Some(Windows::watch(orders.environment.get("DISPLAY").map(String::as_str), title)?)
            }
            _ => None,
        };
        let (program, arguments) = orders.command.split_first().ok_or("there is no command")?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(&orders.environment);
        command.current_dir(&orders.directory);
        command.stdin(input(orders)?).stdout(Stdio::piped()).stderr(Stdio::piped());
        limit_tasks(orders.group.as_ref(), orders.most_tasks());
        let span = orders.span.clone().map(Span::begin);
        let tally = Tally::begin(orders.group.as_ref());
        let start = Instant::now();
        let mut child =
            command.spawn().map_err(|error| format!("{program} cannot be started: {error}"))?;
        let main = i32::try_from(child.id()).map_err(|error| error.to_string())?;
        let exit = Pid::from_raw(main).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let streams =
            [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
        let stream = |end: OwnedFd| -> io::Result<Stream> {
            fcntl_setfl(&end, fcntl_getfl(&end)? | OFlags::NONBLOCK)?;
            Ok(Stream { file: end.into(), line: Vec::new() })
        };
        let streams = streams.into_iter().flatten().map(stream).collect::<io::Result<_>>();
        let observe = |ms| Observation::begin(Duration::from_millis(ms), start);
        Ok(Self {
            orders,
            own: getpid().as_raw_nonzero().get(),
            start,
            main,
            exit,
            exited: None,
            has_children: true,
            streams: streams.map_err(|error| format!("cannot read the output: {error}"))?,
            line,
            has_line: false,
            output: Vec::new(),
            probe: Probe::begin(start),
            windows,
            tally,
            observation: orders.observe_ms.map(observe),
            span,
            census: Census::begin(orders.group.as_ref(), orders.max_processes),
        })
    }

    /// Waits until the command is ready and, if asked for, quiet.
    fn run(&mut self, stop: &impl AsFd, report: &mut StartReport) -> Result<(), String> {
        let ready = self.wait_until_ready(stop)?;
        report.ready_ns = ns(ready - self.start);
        report.ready_within_ns = self.probe.success().map(|success| ns(success.within));
        if self.orders.ready == Ready::Exit {
            report.exit_code = self.exited.and_then(|(_, status)| status.code());
            self.wait_for_stragglers(stop, report)?;
            let (settled, _) = self.exited.unwrap_or((ready, ExitStatus::default()));
            report.settled_ns = Some(ns(settled.max(ready) - self.start));
        } else {
            self.with_living(Tally::moment).write(report);
            if self.orders.settle_ms > 0 {
                report.settled_ns = Some(ns(self.wait_until_quiet(stop, ready)? - self.start));
            }
        }
        if let Some((span_ns, operations)) = self.span.as_mut().and_then(Span::found) {
            report.span_ns = Some(span_ns);
            report.span_operations = Some(operations);
        }
        Ok(())
    }

    fn wait_until_ready(&mut self, stop: &impl AsFd) -> Result<Instant, String> {
        let deadline = self.start + Duration::from_millis(self.orders.timeout_ms);
        let mut is_last_asked = false;
        loop {
            let pause = match &self.orders.ready {
                Ready::Exit | Ready::Line(_) | Ready::Window(_) => LONGEST_PAUSE,
                Ready::Command(_) => {
                    let next = self.probe.next().map(|next| next - Instant::now().min(next));
                    next.map_or(LONGEST_PAUSE, |pause| pause.min(LONGEST_PAUSE))
                }
                Ready::Port { .. } | Ready::Http(_) | Ready::File(_) => LOOK_PAUSE,
            };
            let now = self.turn(stop, pause)?;
            if self.exited.is_some() {
                // Its last words may be younger than the last reading.
                self.read_output();
            }
            let is_ready = match &self.orders.ready {
                Ready::Exit => match self.exited {
                    Some((at, status)) if self.orders.accepted.takes(status) => return Ok(at),
                    _ => false,
                },
                Ready::Line(_) => self.has_line,
                Ready::Command(command) => {
                    // One that has ended is asked for once more, at once: it may have been ready between two runs.
                    let has_ended = self.exited.is_some() && !self.has_children;
                    let is_last = has_ended && !is_last_asked && self.probe.pid().is_none();
                    is_last_asked |= is_last;
                    self.probe.run((self.orders, command), now, is_last)?;
                    self.probe.success().is_some()
                }
                Ready::Window(_) => self.windows.as_ref().is_some_and(Windows::is_seen),
                seen => seen.is_seen() == Some(true),
            };
            if is_ready {
                return Ok(self.probe.success().map_or_else(Instant::now, |success| success.at));
            }
            let is_asking = matches!(self.orders.ready, Ready::Command(_))
                && (!is_last_asked || self.probe.pid().is_some());
            if let Some((_, status)) = self.exited
                && (!self.orders.accepted.takes(status) || !self.has_children && !is_asking)
            {
                return Err(match &self.orders.ready {
                    Ready::Exit => format!("it ended with {status}"),
                    ready => format!("it ended with {status} before it was ready ({ready})"),
                });
            }
            if now > deadline {
                return Err(format!(
                    "it was not ready after {} ({}); --timeout gives it more time",
                    self.orders.timeout(),
                    self.orders.ready
                ));
            }
        }
    }

    /// Lets the processes that the command has left end by themselves for a while; whatever the tree
    /// used until its end counts.
    fn wait_for_stragglers(
        &mut self,
        stop: &impl AsFd,
        report: &mut StartReport,
    ) -> Result<(), String> {
        let patience = STRAGGLER_PATIENCE.max(Duration::from_millis(self.orders.settle_ms));
        let deadline = Instant::now() + patience;
        while self.has_children && Instant::now() < deadline {
            self.turn(stop, QUIET_PAUSE)?;
        }
        if self.has_children {
            report.left_running = self.with_living(|_, living| living.len()) as u64;
        }
        self.with_living(Tally::moment).write(report);
        if let Some(group) = report.group_cpu_ns
            && report.cpu_source == CpuSource::Waited
            && group > report.cpu_ns + (report.cpu_ns / INCOMPLETE_PART).max(INCOMPLETE_NS)
        {
            report.cpu_ns = group;
            report.cpu_source = CpuSource::Group;
        }
        Ok(())
    }

    /// Waits until the tree has been quiet for as long as was asked, and returns when that began.
    fn wait_until_quiet(&mut self, stop: &impl AsFd, ready: Instant) -> Result<Instant, String> {
        let quiet = Duration::from_millis(self.orders.settle_ms);
        let deadline = self.start + Duration::from_millis(self.orders.timeout_ms);
        let (mut since, mut at) = (ready, ready);
        let mut busy = 0.0;
        let mut before = self.with_living(|tally, living| tally.cpu_ns(living).0);
        while self.has_children {
            let now = self.turn(stop, QUIET_PAUSE)?;
            if now - at < QUIET_PAUSE {
                continue;
            }
            let cpu_ns = self.with_living(|tally, living| tally.cpu_ns(living).0);
            let share = cpu_ns.saturating_sub(before) as f64 / (now - at).as_nanos() as f64;
            if share >= QUIET_SHARE {
                (since, busy) = (now, share);
            } else if now - since >= quiet {
                break;
            }
            if now > deadline {
                return Err(format!(
                    "it was ready, but not quiet for {} in {}: it last used {:.0} % of a processor, and quiet is \
                     below {:.0} %; --timeout gives it more time, --settle asks for less",
                    in_seconds(self.orders.settle_ms),
                    self.orders.timeout(),
                    busy * 100.0,
                    QUIET_SHARE * 100.0
                ));
            }
            (before, at) = (cpu_ns, now);
        }
        Ok(since)
    }

    /// Waits for something to happen, at most `pause`, and takes note of it. Returns the moment.
    fn turn(&mut self, stop: &impl AsFd, pause: Duration) -> Result<Instant, String> {
        let mut until = (Instant::now() + pause).min(self.census.next());
        let observation = self.observation.as_ref().map(Observation::next);
        for next in observation.into_iter().chain(self.span.as_ref().map(Span::next)) {
            until = until.min(next);
        }
        // Without a descriptor that tells of the exit, it is asked for again and again.
        if self.exit.is_none() && self.exited.is_none() {
            until = until.min(Instant::now() + Duration::from_millis(1));
        }
        let left = until.saturating_duration_since(Instant::now());
        let mut events = vec![PollFd::new(stop, PollFlags::IN)];
        events.extend(self.exit.as_ref().map(|exit| PollFd::new(exit, PollFlags::IN)));
        events.extend(self.windows.as_ref().map(|windows| PollFd::new(windows, PollFlags::IN)));
        events.extend(self.streams.iter().map(|stream| PollFd::new(&stream.file, PollFlags::IN)));
        let left = Timespec::try_from(left).map_err(|error| error.to_string())?;
        match poll(&mut events, Some(&left)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("cannot wait for the command: {error}")),
        }
        let now = Instant::now();
        let is_stopped = !events[0].revents().is_empty();
        drop(events);
        self.read_output();
        self.reap(now);
        if let Some(windows) = &mut self.windows {
            windows.look()?;
        }
        if let Some(span) = &mut self.span {
            span.look();
        }
        if let Some(observation) = &mut self.observation {
            observation.look(self.own, self.main, self.probe.pid(), &self.tally);
        }
        if self.has_children && self.census.is_due(now) {
            let processes = self.with_living(|_, living| living.len());
            self.census.note(now, processes)?;
        }
        if is_stopped { Err("stopped".to_owned()) } else { Ok(now) }
    }

    fn read_output(&mut self) {
        let mut buffer = vec![0; 16 << 10];
        let (output, line, has_line) = (&mut self.output, &self.line, &mut self.has_line);
        self.streams.retain_mut(|stream| {
            // What comes faster than it is read does not keep the loop from its other tasks.
            for _ in 0..16 {
                match stream.file.read(&mut buffer) {
                    Ok(0) => {
                        *has_line |= line.as_ref().is_some_and(|line| stream.ends_with(line));
                        return false;
                    }
                    Ok(bytes) => {
                        output.extend(&buffer[..bytes]);
                        *has_line |=
                            line.as_ref().is_some_and(|line| stream.has(line, &buffer[..bytes]));
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
                }
            }
            true
        });
        if output.len() > 2 * OUTPUT_BYTES {
            output.drain(..output.len() - OUTPUT_BYTES);
        }
    }

    fn reap(&mut self, now: Instant) {
        loop {
            match reap() {
                Reaped::NotYet => return,
                Reaped::NoChildren => {
                    self.has_children = false;
                    return;
                }
                Reaped::Ended(pid, status, usage) => {
                    if self.probe.ended(pid, status.success(), now) {
                        self.tally.probes_ns += usage.cpu_ns;
                        continue;
                    }
                    if pid == self.main {
                        self.exit = None;
                        self.exited = Some((now, status));
                    }
                    self.tally.ended.add(usage);
                    self.tally.reaped += 1;
                }
            }
        }
    }

    fn with_living<T>(&self, then: impl FnOnce(&Tally<'a>, &[&tree::Process]) -> T) -> T {
        if !self.has_children {
            return then(&self.tally, &[]);
        }
        let all = tree::all();
        then(&self.tally, &tree::living(self.own, self.probe.pid(), &all))
    }

    /// Ends whatever is left of the tree, within a bound, and completes the report.
    fn end(&mut self, report: &mut StartReport) {
        for signal in [Signal::TERM, Signal::KILL] {
            let grace = Duration::from_millis(self.orders.grace_ms);
            let deadline =
                Instant::now() + if signal == Signal::TERM { grace } else { KILL_PATIENCE };
            if signal == Signal::TERM {
                // One that grows without end is not asked: it would grow in the meantime.
                if self.census.is_overgrown() {
                    continue;
                }
                self.signal(Signal::TERM);
            }
            self.reap(Instant::now());
            while self.has_children && Instant::now() < deadline {
                if signal == Signal::KILL {
                    let pid = |process: &tree::Process| process.pid;
                    tree::kill(|all| {
                        tree::descendants(self.own, all).into_iter().map(pid).collect()
                    });
                }
                self.read_output();
                thread::sleep(LOOK_PAUSE);
                self.reap(Instant::now());
            }
        }
        self.read_output();
        report.reaped = self.tally.reaped;
        report.probes_ns = self.tally.probes_ns;
        let tail = self.output.len().saturating_sub(OUTPUT_BYTES);
        report.output = String::from_utf8_lossy(&self.output[tail..]).into_owned();
        if let Some(observation) = self.observation.take() {
            observation.write(report);
        }
        report.is_cpu_incomplete =
            report.ignores_children.is_some() && report.cpu_source != CpuSource::Group;
        if self.has_children {
            report.error.get_or_insert_with(|| "some of its processes cannot be ended".to_owned());
        }
    }

    fn signal(&self, signal: Signal) {
        let all = tree::all();
        for process in tree::descendants(self.own, &all) {
            tree::send(process.pid, signal);
        }
    }

    /// Returns an error with the end of the output.
    fn explain(&self, text: &str) -> String {
        let output = String::from_utf8_lossy(&self.output);
        let lines: Vec<&str> = output.trim().lines().rev().take(3).collect();
        let tail = lines.into_iter().rev().collect::<Vec<_>>().join(" / ");
        let tail: String = tail.chars().take(500).collect();
        if tail.is_empty() { text.to_owned() } else { format!("{text}: {tail}") }
    }
}

impl Stream {
    /// Whether a line that ends within these bytes matches.
    fn has(&mut self, line: &Regex, bytes: &[u8]) -> bool {
        let mut parts = bytes.split(|byte| *byte == b'\n');
        let mut found = false;
        self.keep(parts.next().unwrap_or_default());
        for part in parts {
            found |= self.is_match(line);
            self.line.clear();
            self.keep(part);
        }
        found
    }

    /// Whether the line at the end of the output matches, which may have no line break.
    fn ends_with(&self, line: &Regex) -> bool {
        !self.line.is_empty() && self.is_match(line)
    }

    fn is_match(&self, line: &Regex) -> bool {
        line.is_match(String::from_utf8_lossy(&self.line).trim_end_matches('\r'))
    }

    fn keep(&mut self, part: &[u8]) {
        let room = LINE_BYTES.saturating_sub(self.line.len());
        self.line.extend(&part[..part.len().min(room)]);
    }
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
