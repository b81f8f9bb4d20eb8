//! Servers of a subject: started for a job, and ended with its last process.
//!
//! A level that names no server has one: `memcached` and `redis` on a socket in the working
//! directory, `memcached://127.0.0.1:0` and `redis://127.0.0.1:0` on a free port of this machine.

mod guard;

use std::env;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use haypile::OpenError;
use haypile::url::Level;

use super::error::Cause;
use super::{Found, Room};
use crate::reach;
use guard::Guard;

/// The longest wait until a server can be connected to.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest path of a socket, in bytes: unix(7).
const MAX_SOCKET_BYTES: usize = 107;
const PAUSE: Duration = Duration::from_millis(1);

/// Another program may take a port between the moment when it was free and the server's start.
const ATTEMPTS: u32 = 5;

/// A server of a subject's own on a free port is asked for by this address.
const FREE_PORT: &str = "127.0.0.1:0";

/// The share of its `maxmemory` that an empty Redis takes, amply.
const REDIS_OWN_BYTES: u64 = 2 << 20;

const MIB: u64 = 1 << 20;

/// The smallest memory that memcached takes for its items.
const MEMCACHED_MIN_MIB: u64 = 2;

/// Servers that can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerKind {
    Memcached,
    Redis,
}

impl ServerKind {
    fn of(level: &Level) -> Option<Self> {
        match level.scheme() {
            "memcached" => Some(Self::Memcached),
            "redis" => Some(Self::Redis),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Memcached => "memcached",
            Self::Redis => "redis",
        }
    }

    /// Its programs, of which the first that is there is taken, and the package that has them.
    fn programs(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::Memcached => (&["memcached"], "memcached"),
            Self::Redis => (&["redis-server", "valkey-server"], "redis-server"),
        }
    }

    /// The one that is installed, or how to get one.
    fn program(self) -> Result<&'static str, String> {
        let (programs, package) = self.programs();
        let program = programs.iter().copied().find(|program| is_installed(program));
        program.ok_or_else(|| {
            format!("{} is not installed; run: apt-get install {package}", programs.join(" or "))
        })
    }

    fn arguments(self, room: &Room, place: &ServerPlace) -> Vec<String> {
        match self {
            Self::Memcached => {
                let mib = (room.capacity_bytes / MIB).max(MEMCACHED_MIN_MIB);
                let mut arguments = strings(&["-u", "root", "-m", &mib.to_string()]);
                // It refuses a limit of more than half of its memory, and has 1 MiB by default.
                if mib >= 2 * MEMCACHED_MIN_MIB {
                    arguments.extend(strings(&["-I", "2m"]));
                }
                arguments.extend(match place {
                    ServerPlace::Socket(path) => strings(&["-s", &path.to_string_lossy()]),
                    ServerPlace::Port(port) => {
                        strings(&["-l", "127.0.0.1", "-p", &port.to_string()])
                    }
                });
                arguments
            }
            Self::Redis => {
                let bytes = room.capacity_bytes.saturating_add(REDIS_OWN_BYTES).to_string();
                let mut arguments = strings(&["--maxmemory", &bytes]);
                arguments.extend(strings(&["--maxmemory-policy", "allkeys-lru"]));
                arguments.extend(strings(&["--save", "", "--appendonly", "no"]));
                arguments.extend(match place {
                    ServerPlace::Socket(path) => {
                        strings(&["--port", "0", "--unixsocket", &path.to_string_lossy()])
                    }
                    ServerPlace::Port(port) => {
                        strings(&["--bind", "127.0.0.1", "--port", &port.to_string()])
                    }
                });
                arguments
            }
        }
    }
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Where a server listens.
#[derive(Clone, Debug)]
enum ServerPlace {
    Socket(PathBuf),
    Port(u16),
}

impl ServerPlace {
    fn answers(&self) -> bool {
        match self {
            Self::Socket(path) => UnixStream::connect(path).is_ok(),
            Self::Port(port) => {
                reach::connect(&(Ipv4Addr::LOCALHOST, *port).into(), PATIENCE).is_ok()
            }
        }
    }

    /// The level with the server's address, and with a time to wait in which a slow machine is no
    /// lost server.
    fn written(&self, kind: ServerKind, level: &Level) -> Result<Level, OpenError> {
        let mut written = match (self, kind) {
            (Self::Socket(path), ServerKind::Redis) => {
                Level::new("redis+unix")?.with_path(path.as_path())?
            }
            (Self::Socket(path), ServerKind::Memcached) => {
                Level::new(kind.name())?.with_path(path.as_path())?
            }
            (Self::Port(port), _) => {
                Level::new(kind.name())?.with_server(format!("127.0.0.1:{port}"))
            }
        };
        for (name, value) in level.options() {
            written = written.with_option(name, value)?;
        }
        if level.option("timeout").is_none() {
            written = written.with_option("timeout", "30s")?;
        }
        Ok(written)
    }
}

/// Whether a level of a cache (one of several chained caches) needs a server that is started for
/// the subject alone.
pub(super) fn is_own(level: &Level) -> bool {
    ServerKind::of(level).is_some()
        && level.path().as_os_str().is_empty()
        && (level.server().is_empty() || level.server() == FREE_PORT)
}

/// Returns the server program that a level of a cache needs, or how to install it; `None` if the
/// level needs none.
pub(super) fn program(level: &Level) -> Option<Result<&'static str, String>> {
    ServerKind::of(level).filter(|_| is_own(level)).map(ServerKind::program)
}

/// Whether a level of a cache names a server that is already running, which others may use.
pub(super) fn is_of_others(level: &Level) -> bool {
    let is_elsewhere = ["redis+unix", "redis+cluster"].contains(&level.scheme());
    let is_server = ServerKind::of(level).is_some() || is_elsewhere;
    is_server && !is_own(level)
}

/// Returns the level of a cache with a placeholder for its server's address, to check the level's
/// other settings.
pub(super) fn assumed(level: &Level) -> Result<Level, OpenError> {
    match ServerKind::of(level).filter(|_| is_own(level)) {
        Some(kind) => ServerPlace::Socket("/socket".into()).written(kind, level),
        None => Ok(level.clone()),
    }
}

/// A cache server that runs as long as a process of its job uses it.
#[derive(Debug)]
pub(super) struct Server {
    kind: ServerKind,
    place: ServerPlace,
    guard: Guard,
}

impl Server {
    /// Starts an empty server for a level of a cache, or joins the server that the job's first
    /// process has started.
    ///
    /// # Errors
    ///
    /// That there is no such program and how to get it, or what it said.
    pub(super) fn of(level: &Level, room: &Room, directory: &Path) -> Result<Self, Cause> {
        let kind = ServerKind::of(level).ok_or("only memcached and redis can be started")?;
        let is_on_socket = level.server().is_empty();
        match room.found {
            Found::Nothing => Self::start(kind, is_on_socket, room, directory),
            Found::Cache => Self::join(kind, is_on_socket, directory),
        }
    }

    fn start(
        kind: ServerKind,
        is_on_socket: bool,
        room: &Room,
        directory: &Path,
    ) -> Result<Self, Cause> {
        let program = kind.program()?;
        let attempts = if is_on_socket { 1 } else { ATTEMPTS };
        let mut said = String::new();
        for _ in 0..attempts {
            let place = if is_on_socket {
                let path = socket(kind, directory);
                let bytes = path.as_os_str().len();
                if bytes > MAX_SOCKET_BYTES {
                    return Err(format!(
                        "{}: {bytes} bytes, and the path of a socket has at most \
                         {MAX_SOCKET_BYTES}; take a shorter --directory",
                        path.display()
                    )
                    .into());
                }
                guard::remove(&path)?;
                ServerPlace::Socket(path)
            } else {
                ServerPlace::Port(free_port()?)
            };
            let arguments = kind.arguments(room, &place);
            let is_alone = room.processes == 1;
            let mut guard = Guard::start(directory, kind.name(), program, &arguments, is_alone)?;
            let deadline = Instant::now() + PATIENCE;
            while guard.is_running() && Instant::now() < deadline {
                if place.answers() && guard.is_running() {
                    if let ServerPlace::Port(port) = place {
                        fs::write(port_file(kind, directory), port.to_string())?;
                    }
                    return Ok(Self { kind, place, guard });
                }
                thread::sleep(PAUSE);
            }
            said = guard.said();
        }
        Err(format!("{program} cannot be started: {said}").into())
    }

    fn join(kind: ServerKind, is_on_socket: bool, directory: &Path) -> Result<Self, Cause> {
        let guard = Guard::join(directory, kind.name())?;
        let place = if is_on_socket {
            ServerPlace::Socket(socket(kind, directory))
        } else {
            ServerPlace::Port(fs::read_to_string(port_file(kind, directory))?.trim().parse()?)
        };
        Ok(Self { kind, place, guard })
    }

    /// Returns the level of the cache with the address of this server filled in.
    pub(super) fn written(&self, level: &Level) -> Result<Level, OpenError> {
        self.place.written(self.kind, level)
    }

    /// Returns the process id of the cache server.
    pub(super) fn pid(&self) -> u32 {
        self.guard.pid()
    }
}

fn socket(kind: ServerKind, directory: &Path) -> PathBuf {
    directory.join(format!("{}.sock", kind.name()))
}

fn port_file(kind: ServerKind, directory: &Path) -> PathBuf {
    directory.join(format!("{}.port", kind.name()))
}

fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
