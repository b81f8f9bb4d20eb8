//! Servers that answer with garbage.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use haypile::{SetOptions, Store, Ttl};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::open;

/// Returns a correct server's answer to a line, given its port; `None` where it sends garbage.
type Behave = fn(&[u8], u16) -> Option<Vec<u8>>;

/// A server that behaves until a store is open, and then answers with these bytes and ends the
/// connection.
struct Liar {
    address: SocketAddr,
    answer: Arc<Mutex<Vec<u8>>>,
    has_ended: Arc<AtomicBool>,
}

impl Liar {
    fn start(behave: Behave) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (answer, has_ended) = (Arc::<Mutex<Vec<u8>>>::default(), Arc::<AtomicBool>::default());
        let (answers, ended) = (Arc::clone(&answer), Arc::clone(&has_ended));
        thread::spawn(move || {
            for client in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let answers = Arc::clone(&answers);
                thread::spawn(move || serve(&client.unwrap(), behave, &answers));
            }
        });
        Self { address, answer, has_ended }
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(client: &TcpStream, behave: Behave, answer: &Mutex<Vec<u8>>) {
    let port = client.local_addr().unwrap().port();
    let mut reader = BufReader::new(client);
    let mut writer = client;
    loop {
        let mut line = Vec::new();
        if reader.read_until(b'\n', &mut line).unwrap_or(0) == 0 {
            return;
        }
        if let Some(good) = behave(&line, port) {
            if writer.write_all(&good).is_err() {
                return;
            }
            continue;
        }
        let answer = answer.lock().unwrap().clone();
        let _ = writer.write_all(&answer);
        // Reads the rest of the client's bytes, so that the client reads the answer and not a
        // connection reset.
        let _ = client.shutdown(std::net::Shutdown::Write);
        let _ = reader.read_to_end(&mut Vec::new());
        return;
    }
}

fn like_memcached(line: &[u8], _port: u16) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(line);
    if text.starts_with("stats") {
        return Some(b"STAT item_size_max 1048576\r\nEND\r\n".to_vec());
    }
    let tag = text.split_whitespace().find(|word| word.starts_with('O'))?;
    text.contains("haypile:hello").then(|| format!("EN {tag}\r\n").into_bytes())
}

fn like_redis(line: &[u8], _port: u16) -> Option<Vec<u8>> {
    match line {
        b"*1\r\n" | b"$4\r\n" => Some(Vec::new()),
        b"PING\r\n" => Some(b"+PONG\r\n".to_vec()),
        _ => None,
    }
}

/// Returns the answers of a node that has all slots. An empty host is its own.
fn like_a_cluster(line: &[u8], port: u16) -> Option<Vec<u8>> {
    match line {
        [b'*' | b'$', ..] | b"CLUSTER\r\n" => Some(Vec::new()),
        b"PING\r\n" => Some(b"+PONG\r\n".to_vec()),
        b"SLOTS\r\n" => {
            let slots = format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:{port}\r\n");
            Some(slots.into_bytes())
        }
        _ => None,
    }
}

/// Tries all operations: none may panic, and none may find anything.
fn try_all(store: &dyn Store) {
    let no_value = |value: Result<Option<Vec<u8>>, haypile::Error>| {
        assert!(value.as_ref().map_or(true, Option::is_none), "{value:?}");
    };
    no_value(store.get(b"k"));
    if let Ok(found) = store.get_many(&[b"k", b"l"]) {
        assert!(found.iter().all(Option::is_none), "{found:?}");
    }
    let _ = store.set(b"k", b"v", &SetOptions::set());
    let _ = store.set(b"k", b"v", &SetOptions::add());
    let _ = store.set_many(&[(b"k", b"v", SetOptions::set()), (b"l", b"v", SetOptions::set())]);
    let _ = store.delete(b"k");
    let _ = store.delete_many(&[b"k", b"l"]);
    let _ = store.touch(b"k", Ttl::Never);
    let _ = store.contains(b"k");
    let _ = store.incr(b"k", 1);
    let _ = store.len();
    let _ = store.keys(haypile::Cursor::default(), 10);
    let _ = store.stats();
    no_value(store.get(b"k"));
}

fn check(url: impl Fn(SocketAddr) -> String, behave: Behave, known: &[&[u8]]) {
    let liar = Liar::start(behave);
    let attempt = |answer: &[u8]| {
        liar.answer.lock().unwrap().clear();
        let store = open(&url(liar.address)).unwrap();
        *liar.answer.lock().unwrap() = answer.to_vec();
        try_all(&*store);
    };
    for answer in known {
        attempt(answer);
    }
    let word = prop::sample::select(known.iter().map(|answer| answer.to_vec()).collect::<Vec<_>>());
    let part = prop_oneof![word, prop::collection::vec(any::<u8>(), 0..30)];
    let answers = prop::collection::vec(part, 0..4);
    let mut runner =
        TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    runner
        .run(&answers, |parts| {
            attempt(&parts.concat());
            Ok(())
        })
        .unwrap();
}

#[test]
fn memcached_that_talks_nonsense() {
    let long = vec![b'x'; 4 << 20];
    let known: [&[u8]; 15] = [
        b"",
        b"\r\n",
        b"VA 3\r\nfoo\r\n",
        b"VA 3 O777\r\nfoo\r\n",
        b"VA 1073741824 O0\r\nfoo",
        b"VA 99999999999999999999 O0\r\n",
        b"VA -1 O0\r\n",
        b"VA 3 O0 t-1 c1\r\nfooo\r\n",
        b"HD O-1\r\n",
        b"HD",
        b"ERROR\r\n",
        b"CLIENT_ERROR you\r\n",
        b"SERVER_ERROR out of memory\r\n",
        b"END\r\n",
        &long,
    ];
    check(|address| format!("memcached://{address}?timeout=10s"), like_memcached, &known);
}

/// Answers that a Redis never sends, or not in that place.
const NO_REDIS: [&[u8]; 20] = [
    b"",
    b"\r\n",
    b"$3\r\nfo",
    b"$99999999999999999999\r\n",
    b"$-5\r\n",
    b"*2147483647\r\n",
    b"*-1\r\n",
    b"+\r\n",
    b"-ERR no\r\n",
    b"-LOADING it is\r\n",
    b":x\r\n",
    b"+OK\r\n+OK\r\n",
    b"%1\r\n+a\r\n+b\r\n",
    b"-MOVED 1 127.0.0.1:1\r\n",
    b"-MOVED 1 :1\r\n",
    b"-MOVED\r\n-MOVED x y\r\n-ASK 1 127.0.0.1:99999\r\n",
    b"-ASK 7 [::1]:1\r\n-ASK 7 [::1]:1\r\n",
    b"-CLUSTERDOWN it is\r\n",
    b"-TRYAGAIN -1 @@@:0\r\n",
    b"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n",
];

#[test]
fn redis_that_talks_nonsense() {
    let deep = b"*1\r\n".repeat(200);
    let known = [NO_REDIS.as_slice(), &[&deep]].concat();
    check(|address| format!("redis://{address}?timeout=10s"), like_redis, &known);
}

#[test]
fn a_redis_cluster_that_talks_nonsense() {
    let deep = b"*1\r\n".repeat(200);
    let known = [NO_REDIS.as_slice(), &[&deep]].concat();
    let url = |address| format!("redis+cluster://{address}?timeout=10s");
    check(url, like_a_cluster, &known);
    // Knows its address, and answers every question about the slots with garbage.
    for answer in known {
        let liar = Liar::start(like_redis);
        *liar.answer.lock().unwrap() = answer.to_vec();
        let error = open(&url(liar.address)).unwrap_err().to_string();
        assert!(error.contains("the Redis Cluster cannot be used: 127.0.0.1:"), "{error}");
    }
}
