//! Real servers that live as long as a test.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The time that a server may take to start. No test waits this long if all is well.
const PATIENCE: Duration = Duration::from_secs(30);

/// The kinds of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Memcached,
    Redis,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Memcached, Self::Redis];

    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Memcached => &["memcached"],
            Self::Redis => &["redis-server", "valkey-server"],
        }
    }

    fn command(self, program: &str, socket: &Path, port: Option<u16>) -> Command {
        let mut command = Command::new(program);
        match self {
            Self::Memcached => {
                // Started by root, memcached needs the name of a user.
                command.args(["-u", "root", "-m", "64", "-t", "2"]);
                match port {
                    Some(port) => command.args(["-l", "127.0.0.1", "-p", &port.to_string()]),
                    None => command.arg("-s").arg(socket),
                };
            }
            Self::Redis => {
                command.args(["--port", "0", "--save", "", "--appendonly", "no", "--dir"]);
                command.arg(socket.parent().unwrap()).arg("--unixsocket").arg(socket);
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// A server on a socket in a directory of its own. Dropping this ends it.
#[derive(Debug)]
pub(crate) struct Daemon {
    kind: Kind,
    program: &'static str,
    directory: TempDir,
    extra: Vec<String>,
    /// The port that a memcached listens on in the place of its socket.
    port: Option<u16>,
    child: Option<Child>,
}

impl Daemon {
    /// Starts a server; `None`, and a message, if it is not installed.
    pub(crate) fn start(kind: Kind) -> Option<Self> {
        Self::start_with(kind, &[])
    }

    /// Starts a server with more arguments.
    pub(crate) fn start_with(kind: Kind, extra: &[&str]) -> Option<Self> {
        Self::try_start(kind, None, extra).unwrap()
    }

    /// Starts a server on a free port of this machine. A memcached has no socket then.
    pub(crate) fn start_on_port(kind: Kind, extra: &[&str]) -> Option<(Self, u16)> {
        with_free_ports(|port, _| {
            let number = port.to_string();
            let daemon = match kind {
                Kind::Memcached => Self::try_start(kind, Some(port), extra),
                Kind::Redis => {
                    let place = ["--bind", "127.0.0.1", "--port", &number];
                    Self::try_start(kind, None, &[&place, extra].concat())
                }
            };
            Ok(daemon?.map(|daemon| (daemon, port)))
        })
    }

    /// Starts a server with more arguments; `None`, and a message, if it is not installed. It is an
    /// error if it ends at once, for example because its port is taken.
    pub(crate) fn try_start(
        kind: Kind,
        port: Option<u16>,
        extra: &[&str],
    ) -> io::Result<Option<Self>> {
        let extra: Vec<String> = extra.iter().map(|&text| text.to_owned()).collect();
        for &program in kind.programs() {
            let mut daemon = Self {
                kind,
                program,
                directory: tempfile::tempdir().unwrap(),
                extra: extra.clone(),
                port,
                child: None,
            };
            match daemon.spawn() {
                Ok(()) => return Ok(Some(daemon)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let required = std::env::var("HAYPILE_REQUIRE_RIVALS").is_ok_and(|value| value != "0");
        assert!(!required, "{} is required and not installed", kind.programs()[0]);
        eprintln!("skipped: {} is not installed", kind.programs()[0]);
        Ok(None)
    }

    fn spawn(&mut self) -> io::Result<()> {
        let socket = self.socket();
        let mut command = self.kind.command(self.program, &socket, self.port);
        self.child = Some(command.args(&self.extra).spawn()?);
        let start = Instant::now();
        let is_open = || match (self.kind, self.port) {
            (_, Some(port)) => TcpStream::connect(("127.0.0.1", port)).is_ok(),
            (Kind::Memcached, None) => UnixStream::connect(&socket).is_ok(),
            (Kind::Redis, None) => answers(&socket),
        };
        while !is_open() {
            let child = self.child.as_mut().unwrap();
            if let Some(status) = child.try_wait()? {
                return Err(io::Error::other(format!("{command:?} ended at once: {status}")));
            }
            assert!(start.elapsed() < PATIENCE, "{command:?} does not open its socket");
            thread::yield_now();
        }
        Ok(())
    }

    /// Returns the path of its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// Returns the URL of its store; `options` are `NAME=VALUE&NAME=VALUE`.
    pub(crate) fn url(&self, options: &str) -> String {
        let scheme = match self.kind {
            Kind::Memcached => "memcached",
            Kind::Redis => "redis+unix",
        };
        format!("{scheme}://{}?{options}", self.socket().display())
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Restarts it on the same socket, after [`kill`](Self::kill).
    pub(crate) fn restart(&mut self) {
        let _ = std::fs::remove_file(self.socket());
        self.spawn().unwrap();
    }

    /// Suspends it until [`go_on`](Self::go_on).
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().unwrap();
        kill_process(Pid::from_child(child), signal).unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether a Redis answers on its socket, if only that it wants a password. It opens the socket
/// before it knows that it can open its other ports.
fn answers(socket: &Path) -> bool {
    let Ok(mut stream) = UnixStream::connect(socket) else { return false };
    stream.write_all(b"PING\r\n").is_ok() && stream.read_exact(&mut [0]).is_ok()
}

/// Calls `start` with two ports that nobody listens on, until it succeeds: others may take them in
/// the meantime.
pub(crate) fn with_free_ports<T>(start: impl Fn(u16, u16) -> io::Result<T>) -> T {
    const ATTEMPTS: usize = 20;
    let mut last = None;
    for _ in 0..ATTEMPTS {
        match start(free_port(), free_port()) {
            Ok(started) => return started,
            Err(error) => last = Some(error),
        }
    }
    panic!("no port is free: {last:?}");
}

/// Returns a port that nobody listens on, below those that the system assigns to clients.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Processes whose numbers are close to each other begin at ports that are not.
    let start = u16::try_from(u64::from(std::process::id()) * 7_919 % 12_000).unwrap();
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + (start + number) % 12_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
