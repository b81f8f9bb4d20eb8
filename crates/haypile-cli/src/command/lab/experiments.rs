//! `haypile lab experiments`

use anyhow::bail;
use haypile_lab::experiment::Known;
use serde_json::json;

use crate::args::lab::Experiments;
use crate::output;
use crate::output::table::table;

/// Executes `haypile lab experiments`: lists the laboratory's experiments, or prints the experiment
/// file of one.
pub(crate) fn run(arguments: &Experiments) -> anyhow::Result<()> {
    if let Some(name) = &arguments.name {
        output::text(named(name)?.file())?;
        return Ok(());
    }
    if arguments.json {
        let object = |known: Known| {
            let file = known.definition();
            json!({
                "name": known.name(),
                "question": file.question,
                "source": file.source,
                "method": file.method,
            })
        };
        return output::json(&Known::all().map(object).collect::<Vec<_>>());
    }
    let row = |known: Known| {
        let file = known.definition();
        vec![known.name().to_owned(), file.question.clone(), file.source.clone()]
    };
    let header = ["Experiment", "Question", "Source"].map(str::to_owned);
    output::text(&table(&header, header.len(), 1, &Known::all().map(row).collect::<Vec<_>>()))?;
    Ok(())
}

/// Returns the laboratory's experiment of this name, or an error that names the known ones.
pub(crate) fn named(name: &str) -> anyhow::Result<Known> {
    let Some(known) = Known::named(name) else {
        let allowed: Vec<_> = Known::all().map(Known::name).collect();
        bail!("unknown experiment '{name}' (known: {})", allowed.join(", "));
    };
    Ok(known)
}
