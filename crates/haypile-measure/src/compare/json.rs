//! Comparisons for programs. `docs/results.md` describes the form.

use serde_json::{Map, Value, json};

use super::{Comparison, Outcome, Pairing, Row, Side};
use crate::statistics::Rule;

/// The version of the form.
const SCHEMA: u64 = 1;

impl Comparison {
    /// The comparison as JSON. What is infinite there is `null`, as JSON has no such number.
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
        Outcome::Judged { effect, pairing, .. } => json!({
            "pairing": pairing.to_string(),
            "pairs": match pairing {
                Pairing::Paired { blocks } => Some(*blocks),
                Pairing::Unpaired => None,
            },
            "effect": {
                "change": effect.change(),
                "low": effect.interval().map(|interval| interval.low),
                "high": effect.interval().map(|interval| interval.high),
                "p_value": effect.p_value(),
                "least_shown": rule.least_shown(effect),
            },
        }),
        Outcome::Failed | Outcome::NotMeasured => {
            json!({ "pairing": null, "pairs": null, "effect": null })
        }
    };
    let Value::Object(fields) = value else { unreachable!("an object is written above") };
    fields
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
        "first_error": side.first_error,
    })
}
