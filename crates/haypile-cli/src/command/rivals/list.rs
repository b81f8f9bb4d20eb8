//! `haypile rivals list`

use haypile_measure::rival::{Rival, Rivals, State};
use serde_json::{Value, json};

use crate::args::rivals::List;
use crate::output;
use crate::output::table::table;

const NOTHING: &str = "-";

/// Executes `haypile rivals list`: lists the rivals (other caches to compare with) of a checkout.
pub(crate) fn run(arguments: &List) -> anyhow::Result<()> {
    let rivals = Rivals::find(arguments.place.checkout.as_deref())?;
    let states = super::states(&rivals.iter().collect::<Vec<_>>(), || false);
    if arguments.json {
        let rivals = states.iter().map(|(rival, state)| object(rival, state));
        return output::json(&rivals.collect::<Vec<_>>());
    }
    let rows: Vec<_> = states.iter().flat_map(|(rival, state)| rows(rival, state)).collect();
    let header = ["Rival", "Language", "Subject", "Version", "State", "How to install"];
    let header = header.map(str::to_owned);
    let mut text = table(&header, header.len(), 3, &rows);
    for (rival, state) in &states {
        if let Some(why) = state.why_not() {
            text = format!("{text}{}: {why}\n", rival.name());
        }
    }
    output::text(&text)?;
    Ok(())
}

/// Returns a row for each of the rival's subjects.
fn rows(rival: &Rival, state: &State) -> Vec<Vec<String>> {
    let get = state.why_not().map_or_else(|| NOTHING.to_owned(), |_| rival.how_to_get());
    let row = |subject: &String| {
        let version = version(state, subject).unwrap_or(NOTHING);
        let language = &rival.manifest().language;
        let row = [rival.name(), language, subject, version, word(state), &get];
        row.map(str::to_owned).to_vec()
    };
    rival.manifest().subjects.iter().map(row).collect()
}

fn object(rival: &Rival, state: &State) -> Value {
    let manifest = rival.manifest();
    let subject = |name: &String| json!({ "name": name, "version": version(state, name) });
    json!({
        "name": rival.name(),
        "about": manifest.about,
        "language": manifest.language,
        "program": rival.runner().program,
        "subjects": manifest.subjects.iter().map(subject).collect::<Vec<_>>(),
        "debian": manifest.debian,
        "make": manifest.make,
        "state": word(state),
        "why": state.why_not(),
        "how_to_get": rival.how_to_get(),
    })
}

fn word(state: &State) -> &'static str {
    match state {
        State::Runs(_) => "runs",
        State::Missing(_) => "missing",
        _ => "broken",
    }
}

/// Returns the version of the cache with this name, as the rival (the program that measures it)
/// lists it; `None` if the rival does not run on this machine.
pub(super) fn version<'a>(state: &'a State, subject: &str) -> Option<&'a str> {
    let State::Runs(listed) = state else { return None };
    let listed = listed.iter().find(|listed| listed.name == subject);
    listed.map(|listed| listed.version.as_str())
}
