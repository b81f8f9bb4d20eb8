//! Output for people and programs.

pub(crate) mod capacity;
pub(crate) mod number;
pub(crate) mod plot;
pub(crate) mod progress;
pub(crate) mod table;
pub(crate) mod target;

use std::io::{self, Write};

use serde::Serialize;

/// Prints a line on standard error. If nobody reads there any more, it is lost, and not the command's result with it:
/// `eprintln!` would panic.
macro_rules! note {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}
pub(crate) use note;

/// Prints a value as indented JSON on standard output.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    // Written to memory first, because an error of the serializer hides that the pipe is closed.
    let mut line = serde_json::to_string_pretty(value)?;
    line.push('\n');
    text(&line)?;
    Ok(())
}

/// Prints a text on standard output as it is.
pub(crate) fn text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
