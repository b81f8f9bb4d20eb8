//! The signals by which a command is ready.

use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use haypile_measure::reach;
use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use url::Url;

/// The longest wait for one answer of a server that is asked whether it is ready.
const PROBE_PATIENCE: Duration = Duration::from_millis(250);

/// A signal of readiness: the event (such as its exit or an open port) that shows that a started command is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Ready {
    /// The command exits with status 0.
    #[default]
    Exit,
    /// A TCP port accepts connections.
    Port {
        /// The host's name or address.
        host: String,
        /// The port number.
        port: u16,
    },
    /// A GET of this URL is answered with a status from 200 to 399.
    Http(Url),
    /// A file exists at this path.
    File(PathBuf),
    /// A line of the command's output, of either stream, matches this regular expression.
    Line(String),
    /// A command of the shell succeeds.
    Command(String),
    /// A window is mapped that was not there at the start, on the X server of the command's `DISPLAY`. Its title or
    /// class matches this regular expression; any window if it is empty.
    Window(String),
}

/// The error of an unknown signal of readiness.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown signal of readiness '{text}'{reason} (known: exit, port:8080, port:HOST:8080, \
     http://HOST/PATH, file:PATH, line:REGEX, command:COMMAND, window, window:REGEX)"
)]
pub struct ReadyError {
    text: String,
    reason: String,
}

impl FromStr for Ready {
    type Err = ReadyError;

    fn from_str(text: &str) -> Result<Self, ReadyError> {
        let wrong = |reason: &str| ReadyError { text: text.into(), reason: reason.into() };
        if text == "exit" {
            return Ok(Self::Exit);
        }
        if text == "window" {
            return Ok(Self::Window(String::new()));
        }
        let Some((kind, rest)) = text.split_once(':').filter(|(_, rest)| !rest.is_empty()) else {
            return Err(wrong(""));
        };
        match kind {
            "port" => {
                let (host, port) = rest.rsplit_once(':').unwrap_or(("127.0.0.1", rest));
                let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                let port = port.parse().ok().filter(|port| *port != 0);
                let port = port.ok_or_else(|| wrong(": a port is a number from 1 to 65535"))?;
                Ok(Self::Port { host, port })
            }
            "http" => {
                // `http:URL` and the URL itself both work.
                let url = if rest.starts_with("//") { text } else { rest };
                if !url.starts_with("http://") {
                    return Err(wrong(": only http URLs can be asked"));
                }
                let url = Url::parse(url).map_err(|error| wrong(&format!(": {error}")))?;
                Ok(Self::Http(url))
            }
            "file" => Ok(Self::File(rest.into())),
            "line" | "window" => match Regex::new(rest) {
                Ok(_) if kind == "line" => Ok(Self::Line(rest.to_owned())),
                Ok(_) => Ok(Self::Window(rest.to_owned())),
                Err(error) => Err(wrong(&format!(": {error}"))),
            },
            "command" => Ok(Self::Command(rest.to_owned())),
            _ => Err(wrong("")),
        }
    }
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit => write!(f, "exit"),
            Self::Port { host, port } => write!(f, "port:{host}:{port}"),
            Self::Http(url) => write!(f, "{url}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Line(regex) => write!(f, "line:{regex}"),
            Self::Command(command) => write!(f, "command:{command}"),
            Self::Window(title) if title.is_empty() => write!(f, "window"),
            Self::Window(title) => write!(f, "window:{title}"),
        }
    }
}

impl TryFrom<String> for Ready {
    type Error = ReadyError;

    fn try_from(text: String) -> Result<Self, ReadyError> {
        text.parse()
    }
}

impl From<Ready> for String {
    fn from(ready: Ready) -> Self {
        ready.to_string()
    }
}

impl Ready {
    /// Whether an open port, a URL or a file shows that the command is ready; `None` for signals from the command's own
    /// process, output or windows, or from another command that has to be run.
    pub(super) fn is_seen(&self) -> Option<bool> {
        match self {
            Self::Exit | Self::Line(_) | Self::Command(_) | Self::Window(_) => None,
            Self::Port { host, port } => Some(connect(host, *port).is_some()),
            Self::Http(url) => Some(answers(url)),
            // A dangling link is there as well.
            Self::File(path) => Some(path.symlink_metadata().is_ok()),
        }
    }
}

fn connect(host: &str, port: u16) -> Option<TcpStream> {
    let mut addresses = (host, port).to_socket_addrs().ok()?;
    addresses.find_map(|address| reach::connect(&address, PROBE_PATIENCE).ok())
}

/// Whether a server answers a GET with a status of success.
fn answers(url: &Url) -> bool {
    let ask = || {
        let host = url.host_str()?;
        let port = url.port_or_known_default()?;
        let mut stream = connect(host.trim_start_matches('[').trim_end_matches(']'), port)?;
        stream.set_read_timeout(Some(PROBE_PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PROBE_PATIENCE)).ok()?;
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).ok()?;
        let status = std::str::from_utf8(&head).ok()?.strip_prefix("HTTP/1.")?.get(2..)?;
        status.parse::<u16>().ok()
    };
    ask().is_some_and(|status| (200..400).contains(&status))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::{Ipv4Addr, SocketAddr, TcpListener};
    use std::thread;

    use socket2::{Domain, Socket, Type};

    use super::*;

    #[test]
    fn signals_are_read_as_they_are_written() {
        for (text, written) in [
            ("exit", "exit"),
            ("port:8080", "port:127.0.0.1:8080"),
            ("port:[::1]:80", "port:::1:80"),
            ("http://127.0.0.1:8000/ready?x=1", "http://127.0.0.1:8000/ready?x=1"),
            ("http:http://localhost/", "http://localhost/"),
            ("file:/tmp/x:y", "file:/tmp/x:y"),
            ("line:^ready: [0-9]+$", "line:^ready: [0-9]+$"),
            ("command:test -e x", "command:test -e x"),
            ("window", "window"),
            ("window:^Mouse", "window:^Mouse"),
        ] {
            let ready: Ready = text.parse().unwrap();
            assert_eq!(ready.to_string(), written);
            assert_eq!(written.parse::<Ready>().unwrap(), ready);
        }
        for (text, part) in [
            ("", "known: exit"),
            ("exits", "known: exit"),
            ("port:", "known: exit"),
            ("port:0", "from 1 to 65535"),
            ("port:70000", "from 1 to 65535"),
            ("https://x/", "known: exit"),
            ("http:ftp", "only http URLs"),
            ("line:(", "line:("),
            ("window:(", "window:("),
            ("soon:1", "unknown signal of readiness 'soon:1'"),
        ] {
            let error = text.parse::<Ready>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn ports_and_servers_are_seen_when_they_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ready = |text: String| text.parse::<Ready>().unwrap().is_seen();
        assert_eq!(ready(format!("port:{port}")), Some(true));
        let server = thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let status = match lines.next().as_deref() {
                    Some("GET /good HTTP/1.1") => "200 OK",
                    Some("GET /bad HTTP/1.1") => "503 No",
                    Some("GET /end HTTP/1.1") => return,
                    _ => "garbage",
                };
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                // Who asks may have waited long enough, on a busy machine.
                let _ = write!(&stream, "HTTP/1.1 {status}\r\n\r\n");
            }
        });
        let asked = |path: &str| ready(format!("http://127.0.0.1:{port}/{path}"));
        assert!((0..100).any(|_| asked("good") == Some(true)));
        for path in ["bad", "garbage", "end"] {
            assert_eq!(asked(path), Some(false), "{path}");
        }
        server.join().unwrap();
    }

    #[test]
    fn a_port_where_nobody_listens_is_not_ready() {
        // Bound, so that no other test gets the port.
        let held = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        held.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        let port = held.local_addr().unwrap().as_socket().unwrap().port();
        let ready = Ready::Port { host: "127.0.0.1".to_owned(), port };
        assert_eq!(ready.is_seen(), Some(false));
        held.listen(1).unwrap();
        assert_eq!(ready.is_seen(), Some(true));
    }

    #[test]
    fn a_file_is_seen_even_as_a_link_to_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ready");
        let ready = Ready::File(path.clone());
        assert_eq!(ready.is_seen(), Some(false));
        std::os::unix::fs::symlink("/nowhere", &path).unwrap();
        assert_eq!(ready.is_seen(), Some(true));
    }
}
