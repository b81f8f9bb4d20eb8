//! `haypile policies`

use std::fmt::Write;

use haypile_policy::{Param, PolicyKind, PolicySpec};
use serde_json::{Value, json};

use crate::args::Policies;
use crate::output;

/// The optimum, which the engine does not list, because it is not a policy of the engine.
const BELADY: PolicyKind = PolicyKind {
    name: "belady",
    summary: "the offline optimum (simulator only); evicts the key whose next request is last",
    paper: "Belady, A study of replacement algorithms for a virtual-storage computer, 1966",
    params: &[Param {
        name: "decline",
        default: 0.0,
        min: 0.0,
        max: 1.0,
        whole: true,
        help: "1: a new key that would be the next victim is not stored",
    }],
};

/// Executes `haypile policies`: lists the eviction policies and their parameters.
pub(crate) fn run(arguments: &Policies) -> anyhow::Result<()> {
    let kinds = || PolicySpec::kinds().iter().copied().chain([&BELADY]);
    if arguments.json {
        return output::json(&kinds().map(value).collect::<Vec<_>>());
    }
    let mut texts = Vec::new();
    for kind in kinds() {
        texts.push(text(kind)?);
    }
    output::text(&texts.join("\n"))?;
    Ok(())
}

fn value(kind: &PolicyKind) -> Value {
    let params = kind.params.iter().map(|param| {
        json!({
            "name": param.name,
            "default": param.default,
            "min": param.min,
            "max": param.max,
            "whole": param.whole,
            "help": param.help,
        })
    });
    json!({
        "name": kind.name,
        "summary": kind.summary,
        "paper": kind.paper,
        "simulator_only": is_only_simulated(kind),
        "params": params.collect::<Vec<_>>(),
    })
}

fn is_only_simulated(kind: &PolicyKind) -> bool {
    kind.name.parse().map_or(true, |spec: PolicySpec| spec.is_of_file_store())
}

fn text(kind: &PolicyKind) -> anyhow::Result<String> {
    let mut text = format!("{}\n  {}\n  {}\n", kind.name, kind.summary, kind.paper);
    for param in kind.params {
        let setting = format!("{}={}", param.name, param.default);
        writeln!(text, "    {setting:12} {} ({} to {})", param.help, param.min, param.max)?;
    }
    Ok(text)
}
