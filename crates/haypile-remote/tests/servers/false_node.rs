//! Nodes of a Redis Cluster that answer as a test wants.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The last slot of a cluster.
const LAST_SLOT: u16 = 16_383;

/// A node's answer to a command.
pub(crate) enum Said {
    /// These bytes, as they are sent.
    Wire(String),
    /// Pieces that arrive one by one, until the closure, called with the piece's number, returns
    /// `None`.
    Pieces(Box<dyn FnMut(usize) -> Option<String> + Send>),
    /// No answer, ever.
    Nothing,
    /// No answer, and the connection ends.
    End,
}

type Answer = Box<dyn FnMut(&[&str]) -> Said + Send>;

struct State {
    answer: Answer,
    asked: Vec<String>,
    has_ended: bool,
}

/// A node that answers by a closure; it answers `PING` by itself.
pub(crate) struct FalseNode {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl FalseNode {
    /// Starts a node that has no answers yet.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer: Answer = Box::new(|_| Said::Wire("-ERR nothing is known\r\n".to_owned()));
        let state = State { answer, asked: Vec::new(), has_ended: false };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.lock().unwrap().has_ended {
                    return;
                }
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(&client.unwrap(), &shared));
            }
        });
        Self { address, state }
    }

    /// Replaces its answers.
    pub(crate) fn answers(&self, answer: impl FnMut(&[&str]) -> Said + Send + 'static) {
        self.state.lock().unwrap().answer = Box::new(answer);
    }

    /// Takes the commands that it has received since the last call, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().asked)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the URL of a store that names only this node.
    pub(crate) fn url(&self, options: &str) -> String {
        format!("redis+cluster://{}?{options}", self.address)
    }
}

impl Drop for FalseNode {
    fn drop(&mut self) {
        self.state.lock().unwrap().has_ended = true;
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(client: &TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(client);
    let mut writer = client;
    while let Some(words) = read(&mut reader) {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let said = if words == ["PING"] {
            Said::Wire("+PONG\r\n".to_owned())
        } else {
            let mut state = state.lock().unwrap();
            state.asked.push(words.join(" "));
            (state.answer)(&words)
        };
        match said {
            Said::Wire(text) if writer.write_all(text.as_bytes()).is_ok() => {}
            Said::Wire(_) | Said::End => return,
            Said::Pieces(mut piece) => {
                for number in 0.. {
                    let Some(text) = piece(number) else { break };
                    if writer.write_all(text.as_bytes()).is_err() {
                        return;
                    }
                }
            }
            Said::Nothing => {
                let _ = reader.read_to_end(&mut Vec::new());
                return;
            }
        }
    }
}

/// Reads the words of a command; `None` when the client has gone.
fn read(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let words = number(reader, '*')?;
    let mut all = Vec::new();
    for _ in 0..words {
        let mut word = vec![0; number(reader, '$')? + 2];
        reader.read_exact(&mut word).ok()?;
        word.truncate(word.len() - 2);
        all.push(String::from_utf8(word).ok()?);
    }
    Some(all)
}

fn number(reader: &mut impl BufRead, sign: char) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.trim_end().strip_prefix(sign)?.parse().ok()
}

/// Returns the answer to `CLUSTER SLOTS`, from each range's first slot and its node's port.
pub(crate) fn slots(shares: &[(u16, u16)]) -> Said {
    let mut text = format!("*{}\r\n", shares.len());
    for (at, (first, port)) in shares.iter().enumerate() {
        let last = shares.get(at + 1).map_or(LAST_SLOT, |(next, _)| next - 1);
        let place = "$9\r\n127.0.0.1";
        write!(text, "*3\r\n:{first}\r\n:{last}\r\n*2\r\n{place}\r\n:{port}\r\n").unwrap();
    }
    Said::Wire(text)
}

/// Returns a bulk string, or nil.
pub(crate) fn bulk(value: Option<&str>) -> Said {
    Said::Wire(match value {
        Some(value) => format!("${}\r\n{value}\r\n", value.len()),
        None => "$-1\r\n".to_owned(),
    })
}

/// Returns a line as it is.
pub(crate) fn line(text: impl AsRef<str>) -> Said {
    Said::Wire(format!("{}\r\n", text.as_ref()))
}
