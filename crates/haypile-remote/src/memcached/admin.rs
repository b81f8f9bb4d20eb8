//! Requests that concern a whole server, in the text protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::deadline::{Deadline, Lost};

/// More than the settings of any server take.
const MAX_ANSWER_BYTES: u64 = 256 << 10;

/// Asks a memcached server for its numeric statistics (`stats`) or settings (`stats settings`), and returns them with
/// their names.
pub(super) fn numbers(
    stream: TcpStream,
    command: &str,
    deadline: Deadline,
) -> Result<Vec<(String, u64)>, Lost> {
    let number = |line: String| {
        let (name, value) = line.strip_prefix("STAT ")?.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    Ok(answer(stream, command, deadline)?.into_iter().filter_map(number).collect())
}

/// Deletes all entries of a memcached server.
pub(super) fn flush_all(stream: TcpStream, deadline: Deadline) -> Result<(), Lost> {
    answer(stream, "flush_all", deadline).map(drop)
}

/// Returns the lines of the answer without the last.
fn answer(mut stream: TcpStream, command: &str, deadline: Deadline) -> Result<Vec<String>, Lost> {
    let lost = |error: std::io::Error| deadline.lost(&error);
    stream.set_write_timeout(Some(deadline.left()?)).map_err(lost)?;
    stream.write_all(format!("{command}\r\n").as_bytes()).map_err(lost)?;
    let socket = stream.try_clone().map_err(lost)?;
    let mut reader = BufReader::new(stream.take(MAX_ANSWER_BYTES));
    let mut lines = Vec::new();
    loop {
        socket.set_read_timeout(Some(deadline.left()?)).map_err(lost)?;
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).map_err(lost)?;
        let Some(text) = line.strip_suffix(b"\r\n") else {
            return Err(Lost::because(format!("its answer to '{command}' is not memcached's")));
        };
        let text = String::from_utf8_lossy(text).into_owned();
        match text.split(' ').next() {
            Some("END" | "OK") => return Ok(lines),
            Some("STAT") => lines.push(text),
            _ => return Err(Lost::because(format!("it answered '{command}' with: {text:.200}"))),
        }
    }
}
