//! `haypile lab subjects`

use haypile_lab::experiment::on_caches::listings;
use haypile_measure::measure::OWN_LABEL;
use serde_json::json;

use crate::args::lab::Subjects;
use crate::output;
use crate::output::table::table;

/// Executes `haypile lab subjects`: lists the caches (subjects) that can be measured.
pub(crate) fn run(arguments: &Subjects) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for kind in haypile_lab::subjects().kinds().filter(|kind| !kind.hidden) {
        let row = [kind.usage, kind.language, kind.version, OWN_LABEL, kind.help];
        rows.push(row.map(str::to_owned).to_vec());
    }
    for rival in listings(&arguments.rivals)? {
        for listed in rival.subjects {
            let program = rival.runner.label.clone();
            rows.push(vec![listed.usage, listed.language, listed.version, program, listed.help]);
        }
    }
    if arguments.json {
        let fields = ["usage", "language", "version", "program", "help"];
        let object = |row: Vec<String>| {
            fields.into_iter().zip(row).map(|(name, text)| (name.to_owned(), json!(text)))
        };
        let objects = rows.into_iter().map(|row| object(row).collect::<serde_json::Map<_, _>>());
        return output::json(&objects.collect::<Vec<_>>());
    }
    let header = ["Subject", "Language", "Version", "Program", "Description"].map(str::to_owned);
    output::text(&table(&header, header.len(), 1, &rows))?;
    Ok(())
}
