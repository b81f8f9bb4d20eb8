//! Comparisons for programs. `docs/results.md` describes the form.

use serde_json::{Map, Value, json};

use super::{Comparison, Outcome, Pairing, Row, Side};
use crate::statistics::{Effect, Rule};

/// The version of the form.
const SCHEMA: u64 = 2;

impl Comparison {
    /// Returns the comparison as JSON. An infinite number is `null`, because JSON cannot express
    /// it.
    pub fn to_json(&self) -> Value {
        json!({
            "schema": SCHEMA,
            "metric": self.metric.name(),
            "unit": self.metric.unit(),
            "noise_floor": self.rule.noise_floor(),
            "significance": Rule::SIGNIFICANCE,
            "rows": self.rows.iter().map(|it| row(it, self.rule)).collect::<Vec<_>>(),
            "missing": self.missing,
            "warnings": self.warnings,
        })
    }
}

fn row(row: &Row, rule: Rule) -> Value {
    let mut value = json!({
        "experiment": row.experiment,
        "case": row.case,
        "parameters": row.parameters,
        "old": side(&row.old),
        "new": side(&row.new),
        "verdict": row.outcome.name(),
    });
    let fields = value.as_object_mut().expect("an object is written above");
    fields.append(&mut judgement(&row.outcome, rule));
    value
}

fn judgement(outcome: &Outcome, rule: Rule) -> Map<String, Value> {
    let value = match outcome {
        Outcome::Judged { difference, .. } => json!({
            "pairing": difference.pairing.to_string(),
            "pairs": match difference.pairing {
                Pairing::Paired { blocks } => Some(blocks),
                Pairing::Unpaired => None,
            },
            "effect": effect(&difference.centre),
            "mean_effect": effect(&difference.mean),
            "least_shown": difference.least_shown(rule),
        }),
        Outcome::Failed | Outcome::NotMeasured => {
            json!({
                "pairing": null, "pairs": null, "effect": null, "mean_effect": null, "least_shown": null,
            })
        }
    };
    let Value::Object(fields) = value else { unreachable!("an object is written above") };
    fields
}

/// Returns an effect as JSON, with the interval that decides.
fn effect(effect: &Effect) -> Value {
    let interval = effect.deciding_interval();
    json!({
        "change": effect.change(),
        "low": interval.map(|interval| interval.low),
        "high": interval.map(|interval| interval.high),
        "p_value": effect.p_value(),
    })
}

fn side(side: &Side) -> Value {
    let summary = side.summary;
    json!({
        "subject": side.subject,
        "program": side.program,
        "samples": summary.map_or(0, |summary| summary.count),
        "value": side.estimate.map(|estimate| estimate.value),
        "median": summary.map(|summary| summary.median),
        "mad": summary.map(|summary| summary.mad),
        "min": summary.map(|summary| summary.min),
        "max": summary.map(|summary| summary.max),
        "errors": side.errors,
        "mean": side.estimate.and_then(|estimate| estimate.mean),
        "first_error": side.first_error,
        "notes": side.notes,
    })
}
