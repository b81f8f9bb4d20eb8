use std::io::Write;
use std::net::TcpListener;
use std::thread;
use std::time::Instant;

use haypile::ManualClock;

use super::*;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

/// Fences on a clock that only the test moves.
struct Setup {
    clock: Arc<ManualClock>,
    fences: Fences,
    server: Arc<str>,
}

impl Setup {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new());
        let fences = Fences::new(Arc::<ManualClock>::clone(&clock));
        Self { clock, fences, server: "server".into() }
    }

    /// Loses a connection while these keys were to change; returns the server's side of it.
    fn lose(&self, keys: &[&[u8]]) -> TcpStream {
        let (client, server) = pair();
        self.fences.watch(client, false, &self.server, keys.iter().copied());
        server
    }

    /// Returns the keys that the next poll no longer sets apart.
    fn settled(&self) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        self.fences.settle(|key| keys.push(key.to_vec()));
        keys.sort();
        keys
    }

    /// Polls until keys are no longer set apart.
    fn settled_soon(&self) -> Vec<Vec<u8>> {
        let start = Instant::now();
        loop {
            let keys = self.settled();
            if !keys.is_empty() {
                return keys;
            }
            assert!(start.elapsed() < LONG, "nothing has ended");
            thread::yield_now();
        }
    }

    /// Answers other requests, this long after the last answer.
    fn answer_after(&self, pause: Duration) {
        self.clock.advance(pause);
        self.fences.answered(&self.server);
    }

    fn is_apart(&self, key: &[u8]) -> bool {
        self.fences.apart([key]).is_some()
    }
}

/// Returns both ends of a connection: the client's and the server's.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    server.set_read_timeout(Some(LONG)).unwrap();
    (client, server)
}

/// Returns the error of a connection that its client resets.
fn error_soon(server: &TcpStream) -> io::ErrorKind {
    let start = Instant::now();
    loop {
        if let Some(error) = server.take_error().unwrap() {
            return error.kind();
        }
        assert!(start.elapsed() < LONG, "it is not reset");
        thread::yield_now();
    }
}

#[test]
fn keys_are_set_apart_until_the_server_ends_the_connection() {
    let setup = Setup::new();
    assert_eq!(setup.fences.apart([b"a".as_slice()]), None);
    let (mut client, mut server) = pair();
    client.write_all(b"late").unwrap();
    setup.fences.watch(client, false, &setup.server, [b"a".as_slice(), b"b"]);
    let apart = setup.fences.apart([b"a".as_slice(), b"c", b"b"]);
    assert_eq!(apart, Some(vec![true, false, true]));
    assert_eq!(setup.settled(), [b""; 0]);

    // The server reads what was sent, and then the end.
    let mut late = Vec::new();
    server.read_to_end(&mut late).unwrap();
    assert_eq!((late.as_slice(), setup.settled().len()), (&b"late"[..], 0));
    drop(server);
    assert_eq!(setup.settled_soon(), [b"a", b"b"]);
    assert!(!setup.is_apart(b"a"));
    assert_eq!((setup.fences.unfenced(), setup.fences.warnings()), (0, Vec::new()));
}

#[test]
fn answers_that_arrive_late_are_not_the_end() {
    let setup = Setup::new();
    let mut server = setup.lose(&[b"a"]);
    // More than one poll reads.
    server.write_all(&vec![b'x'; 4096 * READS_AT_ONCE * 2]).unwrap();
    for _ in 0..10 {
        assert_eq!(setup.settled(), [b""; 0]);
    }
    drop(server);
    assert_eq!(setup.settled_soon(), [b"a"]);
}

#[test]
fn a_connection_that_the_server_resets_has_ended() {
    let setup = Setup::new();
    let server = setup.lose(&[b"a"]);
    SockRef::from(&server).set_linger(Some(Duration::ZERO)).unwrap();
    drop(server);
    assert_eq!(setup.settled_soon(), [b"a"]);
    // It had ended before it was known to be lost.
    let (client, server) = pair();
    drop(server);
    let mut client = client;
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    setup.fences.watch(client, false, &setup.server, [b"a".as_slice()]);
    assert!(!setup.is_apart(b"a"));
    assert_eq!(setup.fences.unfenced(), 0);
}

#[test]
fn a_key_waits_for_all_connections_that_may_change_it() {
    let setup = Setup::new();
    let first = setup.lose(&[b"a", b"b"]);
    let second = setup.lose(&[b"b", b"c"]);
    drop(first);
    assert_eq!(setup.settled_soon(), [b"a"]);
    assert_eq!(setup.settled(), [b""; 0]);
    assert!(setup.is_apart(b"b") && setup.is_apart(b"c"));
    drop(second);
    assert_eq!(setup.settled_soon(), [b"b", b"c"]);
    assert_eq!(setup.fences.state.lock().key_bytes, 0);
}

#[test]
fn a_connection_is_given_up_after_a_second_of_answers_to_others() {
    let setup = Setup::new();
    let server = setup.lose(&[b"a"]);
    let tenth = Duration::from_millis(100);
    // A server that stood still for an hour has not answered for an hour.
    setup.answer_after(LONG);
    setup.answer_after(Duration::from_hours(1));
    setup.fences.answered("another");
    for _ in 0..8 {
        setup.answer_after(tenth);
        setup.fences.answered(&setup.server);
        assert_eq!(setup.settled(), [b""; 0]);
    }
    assert_eq!(setup.fences.unfenced(), 0);
    setup.answer_after(tenth);
    assert_eq!(setup.fences.unfenced(), 1);
    assert_eq!(error_soon(&server), io::ErrorKind::BrokenPipe);
    assert!(setup.is_apart(b"a"));
    assert_eq!(setup.settled(), [b"a"]);
    let warnings = setup.fences.warnings();
    assert!(warnings[0].starts_with("1 connections were lost"), "{warnings:?}");
}

#[test]
fn keys_that_another_server_has_wait_for_the_answers_of_that_one() {
    let setup = Setup::new();
    let _server = setup.lose(&[b"a"]);
    setup.fences.assign(|key| (key == b"a").then(|| "heir".into()));
    for _ in 0..20 {
        setup.answer_after(PATIENCE);
    }
    assert_eq!(setup.fences.unfenced(), 0);
    for _ in 0..11 {
        setup.clock.advance(PATIENCE);
        setup.fences.answered("heir");
    }
    assert_eq!((setup.fences.unfenced(), setup.settled().len()), (1, 1));
}

#[test]
fn more_connections_than_are_kept_are_waited_for_without_them() {
    let setup = Setup::new();
    let keys: Vec<_> = (0..=MAX_CONNECTIONS).map(|number| format!("{number}")).collect();
    let mut servers: Vec<_> = keys.iter().map(|key| setup.lose(&[key.as_bytes()])).collect();
    assert_eq!(setup.fences.unfenced(), 1);
    let surplus = servers.pop().unwrap();
    assert_eq!(error_soon(&surplus), io::ErrorKind::BrokenPipe);
    drop(surplus);
    assert_eq!(setup.settled(), [b""; 0]);
    // The end of a kept connection makes room.
    drop(servers.pop());
    assert_eq!(setup.settled_soon(), [keys[MAX_CONNECTIONS - 1].as_bytes()]);
    let _server = setup.lose(&[b"more"]);
    assert_eq!(setup.fences.unfenced(), 1);
    for _ in 0..11 {
        setup.answer_after(PATIENCE);
    }
    // Each of them but the surplus one counts once more than it did.
    assert_eq!(setup.fences.unfenced(), 1 + MAX_CONNECTIONS as u64);
    assert_eq!(setup.settled().len(), MAX_CONNECTIONS + 1);
}

#[test]
fn a_connection_that_the_network_broke_has_no_end_to_wait_for() {
    let setup = Setup::new();
    let (client, server) = pair();
    setup.fences.watch(client, true, &setup.server, [b"a".as_slice()]);
    drop(server);
    assert_eq!((setup.fences.unfenced(), setup.settled().len()), (1, 0));
    for _ in 0..11 {
        setup.answer_after(PATIENCE);
    }
    assert_eq!((setup.fences.unfenced(), setup.settled()), (1, vec![b"a".to_vec()]));
}

#[test]
fn the_bound_on_keys_holds_and_what_is_left_out_is_counted() {
    let setup = Setup::new();
    let keys: Vec<_> = (0..100_u8).map(|number| vec![number; 60_000]).collect();
    let borrowed: Vec<_> = keys.iter().map(Vec::as_slice).collect();
    let server = setup.lose(&borrowed);
    let kept = setup.fences.state.lock().keys.len();
    assert_eq!(kept, MAX_KEY_BYTES / (60_000 + KEY_OVERHEAD_BYTES));
    let warnings = setup.fences.warnings();
    assert!(warnings[0].starts_with(&format!("{} keys", 100 - kept)), "{warnings:?}");
    // A connection without a key is not kept.
    let other = setup.lose(&[&keys[99]]);
    assert_eq!(error_soon(&other), io::ErrorKind::BrokenPipe);
    assert_eq!(setup.fences.state.lock().fences.len(), 1);
    drop(server);
    assert_eq!(setup.settled_soon().len(), kept);
}

#[test]
fn a_forked_child_leaves_the_connections_to_its_parent() {
    let setup = Setup::new();
    let (client, mut server) = pair();
    let mut parents = client.try_clone().unwrap();
    setup.fences.watch(client, false, &setup.server, [b"a".as_slice()]);
    {
        let mut state = setup.fences.state.lock();
        // A process with this number is not this one.
        state.process = 0;
        state.fences[0].connection.as_mut().unwrap().process = 0;
    }
    server.write_all(b"answer").unwrap();
    assert_eq!(setup.settled(), [b""; 0]);
    assert_eq!(SockRef::from(&parents).linger().unwrap(), None);
    parents.set_nonblocking(false).unwrap();
    parents.set_read_timeout(Some(LONG)).unwrap();
    parents.read_exact(&mut [0; 6]).unwrap();
    // The child waits for as long as the parent would.
    drop(server);
    assert_eq!(setup.settled(), [b""; 0]);
    for _ in 0..11 {
        setup.answer_after(PATIENCE);
    }
    assert_eq!((setup.fences.unfenced(), setup.settled()), (0, vec![b"a".to_vec()]));
}
