//! A proxy that holds back the bytes of some connections, as a server does that stands still.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::daemon::Daemon;

/// The time that the server may take to read what was held back. No test waits this long if all is
/// well.
const PATIENCE: Duration = Duration::from_secs(30);

/// A port that forwards to a server's socket. From [`hold`](Self::hold) on, what clients send on
/// the connections that exist then stays here until [`release`](Self::release).
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    connections: Vec<Held>,
    has_ended: bool,
}

/// Whether the bytes of a connection are held back.
struct Held {
    is_held: bool,
    /// Whether the server has read all bytes that the client sent, and the client knows.
    is_over: bool,
}

impl Proxy {
    /// Starts to forward to a server.
    pub(crate) fn start(daemon: &Daemon) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (shared, socket) = (Arc::<Shared>::default(), daemon.socket());
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                let mut state = of_thread.state.lock().unwrap();
                if state.has_ended {
                    return;
                }
                let number = state.connections.len();
                state.connections.push(Held { is_held: false, is_over: false });
                drop(state);
                forward(client.unwrap(), &socket, number, &of_thread);
            }
        });
        Self { port, shared }
    }

    /// Returns the port that clients connect to.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Holds back what clients send from now on, on the connections that exist now.
    pub(crate) fn hold(&self) {
        let mut state = self.shared.state.lock().unwrap();
        state.connections.iter_mut().for_each(|held| held.is_held = !held.is_over);
    }

    /// Forwards what was held back, and waits until the server has read it to its end.
    pub(crate) fn release(&self) {
        let mut state = self.shared.state.lock().unwrap();
        let held: Vec<_> = (0..state.connections.len())
            .filter(|number| state.connections[*number].is_held)
            .collect();
        assert!(!held.is_empty(), "nothing was held back");
        for number in &held {
            state.connections[*number].is_held = false;
        }
        self.shared.changed.notify_all();
        let is_open = |state: &mut State| held.iter().any(|at| !state.connections[*at].is_over);
        let (_state, waited) =
            self.shared.changed.wait_timeout_while(state, PATIENCE, is_open).unwrap();
        assert!(!waited.timed_out(), "the client has not ended what it sent, or the server hangs");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock().unwrap();
        state.has_ended = true;
        state.connections.iter_mut().for_each(|held| held.is_held = false);
        drop(state);
        self.shared.changed.notify_all();
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Forwards both directions of a connection in threads of their own.
fn forward(mut client: TcpStream, socket: &PathBuf, number: usize, shared: &Arc<Shared>) {
    let Ok(mut server) = UnixStream::connect(socket) else { return };
    client.set_nodelay(true).unwrap();
    let (mut to, mut from) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let of_thread = Arc::clone(shared);
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let length = from.read(&mut buffer).unwrap_or(0);
            let state = of_thread.state.lock().unwrap();
            drop(of_thread.changed.wait_while(state, |state| state.connections[number].is_held));
            if length == 0 || to.write_all(&buffer[..length]).is_err() {
                // The server reads the end, and not that the connection was reset.
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
        }
    });
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        let _ = std::io::copy(&mut server, &mut client);
        let _ = client.shutdown(Shutdown::Write);
        shared.state.lock().unwrap().connections[number].is_over = true;
        shared.changed.notify_all();
    });
}
