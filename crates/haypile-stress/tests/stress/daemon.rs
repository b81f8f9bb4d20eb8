//! Servers that live as long as a test.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The time that a server may take to start. No test waits this long if all is well.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server on a socket in a directory of its own. Dropping this ends it.
pub(crate) struct Daemon {
    scheme: &'static str,
    directory: TempDir,
    child: Child,
}

impl Daemon {
    /// Starts memcached; `None`, and a message, if it is not installed.
    pub(crate) fn memcached() -> Option<Self> {
        let command = |socket: &Path| {
            let mut command = Command::new("memcached");
            // Started by root, memcached needs the name of a user.
            command.args(["-u", "root", "-m", "256", "-s"]).arg(socket);
            command
        };
        Self::start("memcached", command)
    }

    /// Starts Redis; `None`, and a message, if it is not installed.
    pub(crate) fn redis() -> Option<Self> {
        let command = |socket: &Path| {
            let mut command = Command::new("redis-server");
            command.args(["--port", "0", "--save", "", "--appendonly", "no", "--dir"]);
            command.arg(socket.parent().expect("a directory")).arg("--unixsocket").arg(socket);
            command
        };
        Self::start("redis+unix", command)
    }

    fn start(scheme: &'static str, command: impl Fn(&Path) -> Command) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let mut command = command(&socket);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let required = std::env::var("HAYPILE_REQUIRE_RIVALS").is_ok_and(|it| it != "0");
                assert!(!required, "{command:?} is required and not installed");
                eprintln!("skipped: {command:?} is not installed");
                return None;
            }
            Err(error) => panic!("{command:?}: {error}"),
        };
        let begin = Instant::now();
        while UnixStream::connect(&socket).is_err() {
            assert_eq!(child.try_wait().expect("a child"), None, "{command:?} ended at once");
            assert!(begin.elapsed() < PATIENCE, "{command:?} does not open its socket");
            thread::yield_now();
        }
        Some(Self { scheme, directory, child })
    }

    /// Returns the URL of its store. The long timeout keeps a slow machine from looking like a lost
    /// server.
    pub(crate) fn url(&self) -> String {
        let socket = self.directory.path().join("socket");
        format!("{}:{},timeout=30s", self.scheme, socket.display())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
