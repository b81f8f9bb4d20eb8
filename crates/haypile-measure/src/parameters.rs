//! Parameters of cases, for people.

use serde_json::Value;

use crate::result::Parameters;

/// Returns the value of a case's parameter as text, strings without quotes.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Returns all parameters of a case as text: `keys=1000 threads=2`.
pub fn describe(parameters: &Parameters) -> String {
    let settings: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
    settings.join(" ")
}

/// Separates the parameters that have the same value in several cases of an experiment from the
/// names of those that differ.
pub fn part<'a>(all: impl IntoIterator<Item = &'a Parameters>) -> (Parameters, Vec<String>) {
    let mut all = all.into_iter();
    let mut same = all.next().cloned().unwrap_or_default();
    let mut varying: Vec<String> = Vec::new();
    for parameters in all {
        let names = same.keys().chain(parameters.keys());
        let differs = |name: &&String| same.get(*name) != parameters.get(*name);
        let differing: Vec<String> = names.filter(differs).cloned().collect();
        for name in differing {
            same.remove(&name);
            if !varying.contains(&name) {
                varying.push(name);
            }
        }
    }
    varying.sort();
    (same, varying)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parameters(value: &Value) -> Parameters {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn what_differs_or_lacks_somewhere_varies() {
        let all = [
            parameters(&json!({"keys": 10, "threads": 1, "distribution": "uniform"})),
            parameters(&json!({"keys": 10, "threads": 2, "distribution": "uniform"})),
            parameters(&json!({"keys": 10, "threads": 1, "distribution": "uniform", "extra": 1})),
        ];
        let (same, varying) = part(&all);
        assert_eq!(describe(&same), "distribution=uniform keys=10");
        assert_eq!(varying, ["extra", "threads"]);
        assert_eq!(part([]), (Parameters::new(), Vec::new()));
        assert_eq!(part(&all[..1]), (all[0].clone(), Vec::new()));
    }
}
