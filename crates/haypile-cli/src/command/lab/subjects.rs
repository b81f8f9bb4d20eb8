//! `haypile lab subjects`

use haypile_lab::subject::Subjects as Table;

use crate::args::lab::Subjects;
use crate::output;

/// Lists what can be measured.
pub(crate) fn run(_arguments: &Subjects) -> anyhow::Result<()> {
    output::text(&haypile_lab::runner::list(&Table::ours()))?;
    Ok(())
}
