//! `haypile proxy` among other processes: several on one file, killed ones, and its end.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::program::{haypile, path_in, text};

const PAGES: usize = 40;
/// Longer than any machine needs.
const LONG: Duration = Duration::from_mins(1);

/// Returns the body of a page: each is different and of another length.
fn page(path: &str) -> String {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let hash = hasher.finish();
    let length = usize::try_from(hash % 150_000).unwrap();
    format!("{path} {hash:x} ").repeat(length / 20 + 1)
}

/// A server of pages that are fresh for an hour; it counts its requests.
struct Origin {
    url: String,
    requests: Arc<AtomicUsize>,
}

impl Origin {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counted = Arc::clone(&counted);
                // A proxy that is killed leaves its connections.
                thread::spawn(move || drop(serve(&stream, &counted)));
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn serve(stream: &TcpStream, requests: &AtomicUsize) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap().to_owned();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line)?;
        }
        requests.fetch_add(1, Ordering::SeqCst);
        let body = page(&path);
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: {length}\r\n\r\n"
        );
        (&mut &*stream).write_all((head + &body).as_bytes())?;
    }
}

struct Proxy {
    child: Child,
    address: String,
    stderr: BufReader<ChildStderr>,
}

impl Proxy {
    fn start(cache: &str, origin: &Origin) -> Self {
        Self::start_with(cache, origin, &[])
    }

    fn start_with(cache: &str, origin: &Origin, more: &[&str]) -> Self {
        let arguments =
            ["proxy", "--cache", cache, "--origin", &origin.url, "--listen", "127.0.0.1:0"];
        let mut child = haypile(&[&arguments, more].concat()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("haypile: listening on http://");
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, address, stderr }
    }

    /// Waits until it has said this on standard error.
    fn wait_for(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it never says {text}");
        }
    }

    /// Asks it to end, and waits for it.
    fn end(mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }

    /// Returns the head and the body of a page, if the whole response comes.
    fn get(&self, path: &str) -> std::io::Result<(String, String)> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(LONG))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        Ok((head.to_lowercase(), body.to_owned()))
    }

    fn get_all(&self) -> usize {
        let is_hit = |number| {
            let path = format!("/{number}");
            let (head, body) = self.get(&path).unwrap();
            assert!(body == page(&path), "{path}: {head}");
            head.contains("cache-status: haypile; hit")
        };
        (0..PAGES).filter(|number| is_hit(*number)).count()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_one_process_has_stored_another_serves_also_after_its_end() {
    let dir = TempDir::new().unwrap();
    let cache = format!("file:{},size=64MiB", path_in(&dir, "pages"));
    let origin = Origin::start();
    let (first, second) = (Proxy::start(&cache, &origin), Proxy::start(&cache, &origin));
    assert_eq!(first.get_all(), 0);
    assert_eq!(second.get_all(), PAGES);
    drop((first, second));
    assert_eq!(Proxy::start(&cache, &origin).get_all(), PAGES);
    assert_eq!(origin.requests(), PAGES);
}

#[test]
fn a_process_that_is_killed_under_load_harms_no_other() {
    kill_under_load(false);
}

#[test]
fn a_process_that_is_killed_under_load_after_a_flush_loses_nothing_of_before() {
    kill_under_load(true);
}

/// Kills one of two proxies on a file under load, again and again. With `is_flushed`, the file was
/// brought to disk while the load went on, and what was stored before that is served afterwards.
fn kill_under_load(is_flushed: bool) {
    let dir = TempDir::new().unwrap();
    // On a busy machine the victims load all their pages, 70 MB, before they are killed: half of the file has room.
    let cache = format!("file:{},size=256MiB", path_in(&dir, "pages"));
    let origin = Origin::start();
    let survivor = Proxy::start(&cache, &origin);
    let file = haypile::Cache::open(&cache).unwrap();
    for round in 0..8 {
        let mut victim = Proxy::start(&cache, &origin);
        if is_flushed {
            victim.get_all();
        }
        thread::scope(|scope| {
            for client in 0..2 {
                let victim = &victim;
                scope.spawn(move || {
                    for number in 0..PAGES {
                        let path = format!("/{round}/{client}/{number}");
                        // From its death on, it answers nobody; until then, rightly or not at all.
                        let Ok((head, body)) = victim.get(&path) else { return };
                        if body.len() == page(&path).len() {
                            assert!(body == page(&path), "{path}: {head}");
                        }
                    }
                });
            }
            let asked = origin.requests();
            while origin.requests() < asked + 5 * round {
                thread::yield_now();
            }
            if is_flushed {
                file.flush(haypile::Durability::Disk).unwrap();
            }
            victim.signal(Signal::KILL);
        });
        victim.child.wait().unwrap();
        if is_flushed {
            // All are hits. The origin's count says less: it may still get the victim's last requests.
            assert_eq!(survivor.get_all(), PAGES);
        }
        for number in 0..PAGES {
            let path = format!("/{round}/{}/{number}", number % 2);
            let (head, body) = survivor.get(&path).unwrap();
            assert!(body == page(&path), "{path}: {head}");
        }
    }
}

#[test]
fn it_ends_when_it_is_asked_to_and_saves_its_cache() {
    for signal in [Signal::INT, Signal::TERM] {
        let dir = TempDir::new().unwrap();
        let cache = format!("memory:size=64MiB,persist={}", path_in(&dir, "pages"));
        let origin = Origin::start();
        let mut proxy = Proxy::start(&cache, &origin);
        proxy.get_all();
        proxy.signal(signal);
        let mut said = String::new();
        proxy.stderr.read_to_string(&mut said).unwrap();
        assert!(said.ends_with("haypile: ending; once more ends it at once\n"), "{said}");
        assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
        assert_eq!(Proxy::start(&cache, &origin).get_all(), PAGES);
    }
}

#[test]
fn the_access_log_is_a_trace_and_is_opened_again_by_hup() {
    let dir = TempDir::new().unwrap();
    let (log, old) = (path_in(&dir, "log"), path_in(&dir, "old"));
    let origin = Origin::start();
    let proxy = Proxy::start_with("memory:size=64MiB", &origin, &["--access-log", &log]);
    proxy.get_all();
    proxy.get_all();
    let mut stream = TcpStream::connect(&proxy.address).unwrap();
    stream.write_all(b"OPTIONS / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    stream.read_to_string(&mut String::new()).unwrap();
    let lines = |path: &str| std::fs::read_to_string(path).unwrap().lines().count();
    // A response is logged once it is sent, which its reader may see first.
    while lines(&log) < 2 * PAGES + 1 {
        thread::yield_now();
    }
    std::fs::rename(&log, &old).unwrap();
    proxy.signal(Signal::HUP);
    while !std::path::Path::new(&log).exists() {
        thread::yield_now();
    }
    proxy.get("/1").unwrap();
    proxy.end();
    assert_eq!((lines(&old), lines(&log)), (2 * PAGES + 1, 1));
    // OPTIONS is left out, and told of.
    let print = |arguments: &[&str]| {
        let output = haypile(arguments).output().unwrap();
        let told = text(output.stderr);
        assert!(told.contains("left out lines: 1 with a method that no cache stores\n"), "{told}");
        text(output.stdout)
    };
    let found = print(&["simulate", &old, "--policy", "lru", "--objects", "1000", "--json"]);
    for (name, count) in [("requests", 2 * PAGES), ("hits", PAGES)] {
        assert!(found.contains(&format!("\"{name}\": {count},")), "{found}");
    }
    assert!(print(&["advise", &old]).contains(&format!("of {} reads", 2 * PAGES)));
}

#[test]
fn operators_have_a_socket_that_goes_with_the_proxy() {
    let dir = TempDir::new().unwrap();
    let socket = path_in(&dir, "admin");
    let origin = Origin::start();
    let admin = format!("unix:{socket}");
    let mut proxy = Proxy::start_with("memory:size=64MiB", &origin, &["--admin", &admin]);
    proxy.wait_for(&format!("metrics and purges at {admin}"));
    proxy.get("/1").unwrap();
    let ask = |request: &str| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let form = "prefix=http://a/";
    let length = form.len();
    let request =
        format!("POST /purge HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{form}");
    assert!(ask(&request).ends_with("http://a/: purged\n"));
    proxy.get("/1").unwrap();
    assert_eq!(origin.requests(), 2);
    let metrics = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(metrics.contains("haypile_http_responses_total{result=\"uri-miss\",code=\"2xx\"} 2"));
    proxy.end();
    assert!(!std::path::Path::new(&socket).exists());
}

#[test]
fn requests_that_its_end_leaves_without_a_response_are_not_those_of_clients_that_left() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = Origin {
        url: format!("http://{}", listener.local_addr().unwrap()),
        requests: Arc::default(),
    };
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let more = ["--grace", "10ms", "--access-log", log.to_str().unwrap()];
    let mut proxy = Proxy::start_with("memory:size=1MiB", &origin, &more);
    let mut stream = TcpStream::connect(&proxy.address).unwrap();
    stream.write_all(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let _waits = listener.accept().unwrap();
    proxy.signal(Signal::TERM);
    assert!(proxy.child.wait().unwrap().success());
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("\"GET http://a/a HTTP/1.1\" 503 0 "), "{log}");
    assert!(log.contains("the proxy has ended"), "{log}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    // An origin that accepts and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = Origin {
        url: format!("http://{}", listener.local_addr().unwrap()),
        requests: Arc::default(),
    };
    for signal in [Signal::INT, Signal::TERM] {
        let mut proxy = Proxy::start("memory:size=1MiB", &origin);
        let mut stream = TcpStream::connect(&proxy.address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let _waits = listener.accept().unwrap();
        proxy.signal(signal);
        proxy.wait_for("once more ends it at once");
        proxy.signal(signal);
        assert_eq!(proxy.child.wait().unwrap().code(), Some(128 + signal.as_raw()));
    }
}
