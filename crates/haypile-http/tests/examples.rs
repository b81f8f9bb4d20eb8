//! The engine's examples that need an executor do what they say. `cargo test` builds them.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

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

#[test]
fn a_handler_makes_a_page_once() {
    let mut child =
        example::program("axum_handler").arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    let _server = Server(child);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("http://").unwrap().split('/').next().unwrap();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    for _ in 0..3 {
        assert!(get("/report/7").ends_with("\r\n\r\nreport 7\n"));
    }
    let metrics = get("/metrics");
    let hits =
        metrics.lines().find(|line| line.contains("operation=\"get\",result=\"hit\"")).unwrap();
    assert!(hits.ends_with(" 2"), "{hits}");
}
