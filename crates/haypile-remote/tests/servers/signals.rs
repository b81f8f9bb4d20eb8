//! Signals that arrive while a server is waited for.

#![expect(unsafe_code, reason = "signals as other programs handle and send them")]

use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::thread;

use haypile::SetOptions;

use crate::daemon::{Daemon, Kind};
use crate::open;

extern "C" fn handle(_: libc::c_int) {}

/// Lets a thread work while one signal after the other comes to it.
fn under_signals(work: impl FnOnce() + Send + 'static) {
    // SAFETY: the handler does nothing, and no other tests use this signal.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()), 0);
    }
    let worker = thread::spawn(work);
    while !worker.is_finished() {
        // SAFETY: the thread has not been joined.
        unsafe { libc::pthread_kill(worker.as_pthread_t(), libc::SIGUSR2) };
        thread::yield_now();
    }
    worker.join().unwrap();
}

#[test]
fn signals_keep_no_server_from_being_opened() {
    for kind in Kind::ALL {
        let Some(daemon) = Daemon::start(kind) else { continue };
        let url = daemon.url("timeout=30s");
        under_signals(move || (0..300).for_each(|_| drop(open(&url).unwrap())));
    }
}

#[test]
fn signals_end_no_wait_for_a_server() {
    for kind in Kind::ALL {
        let Some(daemon) = Daemon::start(kind) else { continue };
        let store = open(&daemon.url("timeout=30s")).unwrap();
        let of_worker = Arc::clone(&store);
        under_signals(move || {
            for number in 0..3_000_u32 {
                let value = number.to_le_bytes();
                assert!(of_worker.set(b"k", &value, &SetOptions::set()).unwrap().is_stored());
                // The client of memcached loses what it has read of a value.
                if kind == Kind::Redis {
                    assert_eq!(of_worker.get(b"k").unwrap().as_deref(), Some(&value[..]));
                }
            }
        });
        let stats = store.stats().unwrap();
        assert_eq!((stats.unreachable, stats.sets), (0, 3_000), "{:?}", store.warnings());
        assert_eq!(store.warnings(), [""; 0]);
    }
}
