//! Servers that run in the background: their threads or tasks, and how they end.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::thread;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A server that runs in a task or a thread. Dropping it ends the server, and waits for the end of
/// its thread, if it has one.
#[derive(Debug)]
pub(crate) struct Running(Option<RunsIn>);

#[derive(Debug)]
enum RunsIn {
    Task { end: oneshot::Sender<()>, task: JoinHandle<()> },
    Thread { end: oneshot::Sender<()>, thread: thread::JoinHandle<()> },
}

impl Running {
    /// Runs a server on the caller's async runtime, until the server is told to end through its
    /// receiver. Returns it with its addresses.
    pub(crate) fn on_runtime<F, A>(
        serve: impl FnOnce(oneshot::Receiver<()>) -> io::Result<(F, A)>,
    ) -> io::Result<(Self, A)>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let (end, ended) = oneshot::channel();
        let (serving, addresses) = serve(ended)?;
        let task = runtime.spawn(serving);
        Ok((Self(Some(RunsIn::Task { end, task })), addresses))
    }

    /// Runs a server on a separate thread with its own async runtime, until it is told to end
    /// through its receiver. Returns the server with its addresses.
    pub(crate) fn in_thread<F, A>(
        name: &str,
        serve: impl FnOnce(oneshot::Receiver<()>) -> io::Result<(F, A)>,
    ) -> io::Result<(Self, A)>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel();
        let (serving, addresses) = {
            let _entered = runtime.enter();
            serve(ended)?
        };
        let run = move || runtime.block_on(serving);
        let thread = thread::Builder::new().name(name.into()).spawn(run)?;
        Ok((Self(Some(RunsIn::Thread { end, thread })), addresses))
    }

    /// Stops the server, and waits until it has ended.
    pub(crate) async fn stop(mut self) {
        if let Some(RunsIn::Task { end, task }) = self.0.take() {
            // A failure to send or to join: it has ended already.
            let _ = end.send(());
            let _ = task.await;
        }
        // Dropping it waits for a thread.
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        match self.0.take() {
            Some(RunsIn::Task { task, .. }) => task.abort(),
            Some(RunsIn::Thread { end, thread }) => {
                let _ = end.send(());
                // It fails if the thread has panicked, which has been reported then.
                let _ = thread.join();
            }
            None => {}
        }
    }
}

/// Opens a listening socket on a free port of 127.0.0.1. The caller is inside an async runtime.
pub(crate) fn listen() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((TcpListener::from_std(listener)?, address))
}
