//! `haypile lab splice`

use std::process::ExitCode;

use haypile_lab::splice::splice;

use crate::args::lab::Splice;
use crate::output::target;
use crate::{NEGATIVE, output};

/// Executes `haypile lab splice`: updates the tables of documents, or prints which are out of date.
/// It reads all documents and renders all tables before it writes the first.
pub(crate) fn run(arguments: &Splice) -> anyhow::Result<ExitCode> {
    let mut is_stale = false;
    let mut spliced = Vec::new();
    for document in &arguments.documents {
        spliced.push((document, splice(document)?));
    }
    for (document, spliced) in spliced {
        let name = document.display();
        if spliced.stale.is_empty() {
            output::text(&format!("{name}: up to date, tables: {}\n", spliced.tables))?;
            continue;
        }
        is_stale = true;
        if !arguments.check {
            target::replace(document, spliced.text.as_bytes())?;
        }
        let what = if arguments.check { "out of date" } else { "updated" };
        let lines: Vec<String> = spliced.stale.iter().map(usize::to_string).collect();
        output::text(&format!("{name}: {what}, tables at line: {}\n", lines.join(", ")))?;
    }
    let is_negative = arguments.check && is_stale;
    Ok(if is_negative { ExitCode::from(NEGATIVE) } else { ExitCode::SUCCESS })
}
