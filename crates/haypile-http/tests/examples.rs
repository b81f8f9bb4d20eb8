//! The engine's examples that need an executor do what they say. `cargo test` builds them.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

#[path = "../../haypile/tests/example/mod.rs"]
mod example;

/// Ends a server with its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn of_a_hundred_tasks_one_computes() {
    assert_eq!(
        example::output(&mut example::program("async_single_flight")),
        "100 tasks, computed 1 time\n"
    );
}

/// Starts a server, and returns where it listens.
fn serve(program: &mut Command) -> (Server, String) {
    let mut child = program.stdout(Stdio::piped()).spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    let server = Server(child);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("http://").unwrap().split('/').next().unwrap();
    (server, address.to_owned())
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_handler_makes_a_page_once() {
    let (_server, address) = serve(example::program("axum_handler").arg("127.0.0.1:0"));
    for _ in 0..3 {
        assert!(get(&address, "/report/7").ends_with("\r\n\r\nreport 7\n"));
    }
    let metrics = get(&address, "/metrics");
    let hits =
        metrics.lines().find(|line| line.contains("operation=\"get\",result=\"hit\"")).unwrap();
    assert!(hits.ends_with(" 2"), "{hits}");
}

#[test]
fn a_server_s_pages_are_cached_as_they_say() {
    let (_server, address) = serve(example::program("http_server_cache").arg("127.0.0.1:0"));
    for (path, number, status) in [
        ("/news", 0, "fwd=uri-miss; fwd-status=200; stored"),
        ("/news", 0, "hit; ttl="),
        (
            "/account",
            1,
            "fwd=uri-miss; fwd-status=200; detail=\"not stored: the response is private",
        ),
        (
            "/account",
            2,
            "fwd=uri-miss; fwd-status=200; detail=\"not stored: the response is private",
        ),
    ] {
        let answer = get(&address, path);
        assert!(answer.ends_with(&format!("\r\n\r\npage {number}\n")), "{answer}");
        assert!(answer.contains(&format!("cache-status: haypile; {status}")), "{answer}");
    }
}

#[test]
fn a_proxy_of_one_s_own_caches_what_its_origin_has() {
    let (_origin, origin) = serve(example::program("http_server_cache").arg("127.0.0.1:0"));
    let mut program = example::program("http_proxy_cache");
    let (_proxy, proxy) = serve(program.args([&format!("http://{origin}"), "127.0.0.1:0"]));
    for expected in ["haypile; fwd=uri-miss", "haypile; hit"] {
        let answer = get(&proxy, "/news");
        let own = answer.lines().rfind(|line| line.starts_with("cache-status: "));
        assert!(own.unwrap().contains(expected), "{answer}");
    }
}

#[cfg(feature = "reqwest")]
#[test]
fn a_client_finds_what_it_stored_in_the_run_before() {
    let (_origin, origin) = serve(example::program("http_server_cache").arg("127.0.0.1:0"));
    let folder = tempfile::tempdir().unwrap();
    let cache = format!("file:{}/http.haypile,size=8MiB", folder.path().display());
    let run = || {
        let url = format!("http://{origin}/account");
        example::output(example::program("http_client_cache").args([&url, &cache]))
    };
    // Without a lifetime or a validator there is nothing to keep, however private the cache is.
    assert!(run().contains("neither a lifetime"));
    let url = format!("http://{origin}/news");
    let run = || example::output(example::program("http_client_cache").args([&url, &cache]));
    let first = run();
    assert!(first.starts_with("Default: 200 haypile; fwd=uri-miss;"), "{first}");
    let second = run();
    assert!(second.starts_with("Default: 200 haypile; hit;"), "{second}");
    assert!(second.contains("NoCache: 200 haypile; fwd=request;"), "{second}");
}
