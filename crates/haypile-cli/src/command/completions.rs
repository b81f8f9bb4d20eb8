//! `haypile completions`

use std::io;

use clap_complete::Shell;

use crate::args;

/// Prints the completion script of a shell.
pub(crate) fn run(shell: Shell) -> anyhow::Result<()> {
    // Written to memory first, because the generator panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "haypile", &mut script);
    io::Write::write_all(&mut io::stdout().lock(), &script)?;
    Ok(())
}
