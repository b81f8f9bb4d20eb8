//! Samples, grouped by case and by subject.

use haypile_measure::compare::Difference;
use haypile_measure::parameters;
use haypile_measure::result::{Identity, Parameters, Sample, Samples};
use haypile_measure::statistics::{Rule, Verdict};
use haypile_number::{Quantity, grouped};
use haypile_plot::drawing::text::printable;

use haypile_measure::figure::{CaseNotes, Estimate, Figure};

/// A case (such as reads that hit, with its parameters) with the samples of all caches that were
/// measured in it.
pub(crate) struct Case<'a> {
    pub(crate) name: String,
    pub(crate) parameters: &'a Parameters,
    /// The caches measured in the case, with their samples, in the order of the samples.
    pub(crate) entrants: Vec<Entrant<'a>>,
}

/// A cache measured in a case, with its samples.
pub(crate) struct Entrant<'a> {
    /// The name of the measured cache, with the program that ran it if several did.
    pub(crate) label: String,
    pub(crate) samples: Samples<'a>,
}

/// The cheapest cache of a case by one cost (such as processor time), and how the other caches
/// compare with it.
pub(crate) struct Lead<'a> {
    pub(crate) first: &'a Entrant<'a>,
    pub(crate) estimate: Estimate,
    /// The cache with the second-lowest cost, compared with the cheapest one; `None` if there is no
    /// second.
    pub(crate) next: Option<Next<'a>>,
    /// The names of the caches whose cost is not shown to differ from that of the cheapest cache.
    pub(crate) level: Vec<String>,
}

/// A cache whose cost is compared with that of the cheapest cache of its case: the difference, and
/// the verdict on it.
pub(crate) struct Next<'a> {
    pub(crate) entrant: &'a Entrant<'a>,
    pub(crate) difference: Difference,
    pub(crate) verdict: Verdict,
}

/// Groups samples by case (a measurement with its parameters), in the order of the samples.
pub(crate) fn cases<'a>(samples: &Samples<'a>) -> Vec<Case<'a>> {
    samples.cases().iter().map(Case::new).collect()
}

impl<'a> Case<'a> {
    fn new(samples: &Samples<'a>) -> Self {
        let subjects = samples.by_subject();
        let label = |subject: Identity<'_>| subject.label(subjects.iter().map(|(it, _)| *it));
        let entrant = |(subject, samples): &(Identity<'_>, Samples<'a>)| Entrant {
            label: printable(&label(*subject)),
            samples: samples.clone(),
        };
        let entrants = subjects.iter().map(entrant).collect();
        Self { name: printable(&samples[0].case), parameters: &samples[0].parameters, entrants }
    }

    /// Returns the name of the case, with the values of those parameters that distinguish it from
    /// other cases.
    pub(crate) fn title(&self, varying: &[String]) -> String {
        let words = in_words(self.parameters, varying);
        if words.is_empty() { self.name.clone() } else { format!("{}, {words}", self.name) }
    }

    /// Returns the value of the case's parameter with this name, if it is a whole number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.parameters.get(name)?.as_u64()
    }

    /// Returns notes on facts that medians do not show, such as a slow first sample, each with the
    /// name of the cache that it is about.
    pub(crate) fn notes(&self) -> Vec<(&str, String)> {
        let all = self.entrants.iter().flat_map(|one| one.samples.iter().copied()).collect();
        let notes = CaseNotes::of(&all);
        let of = |one: &'_ Entrant<'a>| {
            notes.on(&one.samples).into_iter().map(|note| printable(&note)).collect::<Vec<_>>()
        };
        let labelled = |one| of(one).into_iter().map(move |note| (one.label.as_str(), note));
        self.entrants.iter().flat_map(labelled).collect()
    }

    pub(crate) fn entrant(&self, label: &str) -> Option<&Entrant<'a>> {
        self.entrants.iter().find(|entrant| entrant.label == label)
    }

    /// Returns the caches of the case for which this cost (such as processor time) was measured,
    /// the cheapest first.
    pub(crate) fn ranking(&self, cost: &Figure) -> Vec<(&Entrant<'a>, Estimate)> {
        let with = |entrant| Some((entrant, Entrant::estimate(entrant, cost)?));
        let mut ranking: Vec<_> = self.entrants.iter().filter_map(with).collect();
        ranking.sort_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
        ranking
    }

    /// Returns the cheapest cache of the case, by this cost (such as processor time), among those
    /// that `takes_part` selects; `None` if the cost was measured for none of them.
    pub(crate) fn lead(
        &self,
        cost: &Figure,
        takes_part: impl Fn(&Entrant<'_>) -> bool,
    ) -> Option<Lead<'_>> {
        let mut ranking = self.ranking(cost);
        ranking.retain(|(entrant, _)| takes_part(entrant));
        let (&(first, estimate), rest) = ranking.split_first()?;
        let others: Vec<Next<'_>> =
            rest.iter().filter_map(|(other, _)| other.over(first, cost)).collect();
        let is_level = |next: &&Next<'_>| next.verdict == Verdict::NoDifference;
        let level = others.iter().filter(is_level).map(|next| next.entrant.label.clone()).collect();
        Some(Lead { first, estimate, next: others.into_iter().next(), level })
    }
}

impl<'a> Entrant<'a> {
    pub(crate) fn estimate(&self, figure: &Figure) -> Option<Estimate> {
        figure.of(&self.samples)
    }

    /// Compares a cost (such as processor time) of this cache with that of another one; returns the
    /// difference and the verdict on it, or `None` if they cannot be compared.
    pub(crate) fn over(&'a self, other: &Entrant<'_>, cost: &Figure) -> Option<Next<'a>> {
        let (old, new) = (cost.values(&other.samples), cost.values(&self.samples));
        let difference = Difference::of(&old, &new).ok()?;
        let timing = self.samples.timing().and(other.samples.timing());
        let verdict = difference.verdict(Rule::default(), timing);
        Some(Next { entrant: self, difference, verdict })
    }

    /// Returns the samples of this cache that are not errors.
    pub(crate) fn good(&self) -> impl Iterator<Item = &'a Sample> {
        self.samples.iter().copied().filter(|sample| sample.error.is_none())
    }

    /// Returns the number of this cache's samples that are errors.
    pub(crate) fn errors(&self) -> usize {
        self.samples.len() - self.good().count()
    }
}

/// Returns the names of the caches measured in all cases, in order of first appearance.
pub(crate) fn labels<'c>(cases: impl Iterator<Item = &'c Case<'c>>) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for entrant in cases.flat_map(|case| &case.entrants) {
        if !labels.contains(&entrant.label) {
            labels.push(entrant.label.clone());
        }
    }
    labels
}

/// Returns the values of these parameters in words, as in `keys of 8 B, 1 thread`.
pub(crate) fn in_words(parameters: &Parameters, names: &[String]) -> String {
    let of = |name: &String| {
        let value = parameters.get(name)?;
        Some(printable(&parameter(name, &parameters::text(value))))
    };
    names.iter().filter_map(of).collect::<Vec<_>>().join(", ")
}

/// A parameter as words: `value_bytes` of 160 is `values of 160 B`.
fn parameter(name: &str, value: &str) -> String {
    let digits = || value.parse().map_or_else(|_| value.to_owned(), grouped);
    // A size is round in one of two ways: 1,600 B, and not 1.56 KiB.
    let bytes = || match value.parse::<u64>() {
        Ok(bytes) if bytes % 1024 == 0 && bytes > 0 => Quantity::Bytes.write(bytes as f64),
        _ => format!("{} B", digits()),
    };
    let things = |one: &str, many: &str| {
        if value == "1" { format!("1 {one}") } else { format!("{value} {many}") }
    };
    match name {
        "value_bytes" => format!("values of {}", bytes()),
        "key_bytes" => format!("keys of {}", bytes()),
        "capacity_bytes" => format!("room for {}", bytes()),
        "threads" => things("thread", "threads"),
        "processes" => things("process", "processes"),
        "icons" => things("icon", "icons"),
        "size_px" => format!("{value} px"),
        // Their values say what they are.
        "page_cache" | "theme" => value.to_owned(),
        "entries" | "keys" | "kills" | "stops" | "massacres" | "takeovers" | "readers"
        | "writers" => {
            format!("{} {name}", digits())
        }
        "stop_ms" => format!("stopped for {} ms", digits()),
        name => format!("{} {value}", name.replace('_', " ")),
    }
}

/// Returns the names of the parameters of cases (such as `value_bytes`) that differ between these
/// cases and are not determined by other parameters.
///
/// A `capacity_bytes` that follows from the sizes of keys and values, as it does in `micro`, says
/// nothing of its own.
pub(crate) fn varying(cases: &[Case<'_>]) -> Vec<String> {
    let (_, varying) = parameters::part(cases.iter().map(|case| case.parameters));
    let derived = ["capacity_bytes", "operations", "source_operations", "executions"];
    let (derived, own): (Vec<String>, Vec<String>) =
        varying.into_iter().partition(|name| derived.contains(&name.as_str()));
    let titles = |names: &[String]| {
        let mut titles: Vec<String> = cases.iter().map(|case| case.title(names)).collect();
        titles.sort();
        titles.dedup();
        titles.len()
    };
    if titles(&own) == cases.len() { own } else { [own, derived].concat() }
}
