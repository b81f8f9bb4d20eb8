//! The section of `simulate`: miss-ratio curves.

use haypile_measure::figure::Estimate;
use haypile_measure::statistics::Interval;
use haypile_number::Quantity;
use haypile_number::grouped;
use haypile_plot::Unit;
use haypile_plot::axis::capacity;
use haypile_plot::drawing::text::printable;

use super::super::about::about_simulations;
use super::super::chart::Series;
use super::super::number::{count, list};
use super::super::section::{Body, Section, anchor};
use super::super::simulation::{Simulations, Trace};
use super::super::table::{NOTHING, Table};
use super::curves::{Over, picture};
use super::figures::{MAX_TABLES, beyond};

const NAME: &str = "simulate";
/// The policy that knows the future. It is the optimum only where all entries weigh the same.
const BELADY: &str = "belady";
/// Ratios this close to the best are as good: a tenth of a point.
const LEVEL: f64 = 0.001;

/// Returns the report's section on all simulations of eviction policies.
pub(crate) fn section(simulations: &[Simulations]) -> Section {
    let traces: Vec<&Trace> = simulations.iter().flat_map(|one| &one.traces).collect();
    let (answer, answers) = answer(&traces);
    let mut body = Body { answer, answers, ..Body::default() };
    for trace in traces.iter().take(MAX_TABLES) {
        add(&mut body, trace);
    }
    if let Some(beyond) = beyond(traces.len(), MAX_TABLES) {
        body.left_out.push(format!("{} are not shown.", count(beyond, "further trace")));
    }
    if traces.iter().any(|trace| has_belady(trace) && !is_by_objects(trace)) {
        body.notes.push(
            "By bytes, Belady’s choice is not a bound: it evicts the entry whose next request is last, \
             whatever its size, so that other policies may miss less."
                .to_owned(),
        );
    }
    let simulated: usize = traces.iter().map(|trace| trace.simulations.len()).sum();
    Section {
        experiment: NAME.to_owned(),
        file: None,
        experiment_files: Vec::new(),
        anchor: anchor(NAME, None, None),
        about: about_simulations(),
        disturbed: None,
        body,
        latencies: None,
        extent: format!("{} of {}.", count(simulated, "simulation"), count(traces.len(), "trace")),
        failures: Vec::new(),
        hosts: Vec::new(),
    }
}

fn unit(trace: &Trace) -> Unit {
    if is_by_objects(trace) { Unit::Objects } else { Unit::Bytes }
}

/// Whether all entries weigh the same.
fn is_by_objects(trace: &Trace) -> bool {
    trace.accounting == "objects"
}

fn knows_future(policy: &str) -> bool {
    policy == BELADY || policy.starts_with("belady:")
}

fn has_belady(trace: &Trace) -> bool {
    trace.simulations.iter().any(|outcome| knows_future(&outcome.policy))
}

/// The name of a policy, which for Belady's includes whether nobody can do better.
fn policy_name(policy: &str, trace: &Trace) -> String {
    let name = printable(policy);
    match (knows_future(policy), is_by_objects(trace)) {
        (false, _) => name,
        (true, true) => format!("{name}, the optimum"),
        (true, false) => format!("{name}, not a bound"),
    }
}

fn policies(trace: &Trace) -> Vec<String> {
    let mut policies: Vec<String> = Vec::new();
    for outcome in &trace.simulations {
        if !policies.contains(&outcome.policy) {
            policies.push(outcome.policy.clone());
        }
    }
    policies
}

fn sizes(trace: &Trace) -> Vec<u64> {
    let mut sizes: Vec<u64> = trace.simulations.iter().map(|outcome| outcome.capacity).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// For each trace, the policies that nobody beats by more than a tenth of a point, by the mean over
/// the sizes.
fn answer(traces: &[&Trace]) -> (String, Vec<String>) {
    let found: Vec<String> = traces.iter().filter_map(|trace| best(trace)).collect();
    match found.as_slice() {
        [] => ("Nothing was simulated.".to_owned(), found),
        [one] => {
            let with_belady: Vec<&&Trace> =
                traces.iter().filter(|trace| has_belady(trace)).collect();
            let aside = match with_belady.as_slice() {
                [] => "",
                all if all.iter().all(|trace| is_by_objects(trace)) => {
                    ", apart from the optimum, which knows the future"
                }
                _ => ", apart from belady, which knows the future and is not a bound by bytes",
            };
            (format!("{one}{aside}."), Vec::new())
        }
        _ => (
            "The policy that misses least, of those that do not know the future:".to_owned(),
            found,
        ),
    }
}

fn best(trace: &Trace) -> Option<String> {
    let sizes = sizes(trace);
    let mean = |policy: &String| {
        let of_size = |size: &u64| {
            let mut all = trace.simulations.iter();
            all.find(|one| one.policy == *policy && one.capacity == *size).map(|one| one.hit_ratio)
        };
        let ratios: Option<Vec<f64>> = sizes.iter().map(of_size).collect();
        let ratios = ratios.filter(|ratios| !ratios.is_empty())?;
        Some(1.0 - ratios.iter().sum::<f64>() / ratios.len() as f64)
    };
    let policies = policies(trace).into_iter().filter(|policy| !knows_future(policy));
    let mut means: Vec<(String, f64)> =
        policies.filter_map(|policy| mean(&policy).map(|mean| (policy, mean))).collect();
    means.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let least = means.first()?.1;
    let level: Vec<String> = means
        .iter()
        .take_while(|(_, mean)| mean - least <= LEVEL)
        .map(|(policy, _)| printable(policy))
        .collect();
    let verb = if level.len() == 1 { "misses" } else { "miss" };
    Some(format!(
        "On {}, {} {verb} least ({} in the mean over {})",
        printable(&trace.name),
        list(&level),
        Quantity::Share.write(least),
        count(sizes.len(), "size")
    ))
}

fn add(body: &mut Body, trace: &Trace) {
    let name = printable(&trace.name);
    let unit = unit(trace);
    let over = Over { parameter: "capacity", label: "size of the cache", unit };
    let mut all: Vec<Series> = Vec::new();
    let curve = trace.lru_curve.iter().filter(|point| point.capacity > 0).map(|point| {
        let (miss_ratio, error) = (point.miss_ratio, point.error);
        let exact = Estimate::exact(miss_ratio);
        let (low, high) = ((miss_ratio - error).max(0.0), (miss_ratio + error).min(1.0));
        (point.capacity, if error > 0.0 { exact.within(Interval { low, high }) } else { exact })
    });
    all.push(Series {
        name: "lru, its curve".to_owned(),
        points: curve.collect(),
        knows_future: false,
        place: 0,
    });
    for policy in policies(trace) {
        let of_policy =
            trace.simulations.iter().filter(|one| one.policy == policy && one.capacity > 0);
        let points = of_policy.map(|one| (one.capacity, Estimate::exact(1.0 - one.hit_ratio)));
        let knows_future = knows_future(&policy);
        let name = policy_name(&policy, trace);
        all.push(Series { name, points: points.collect(), knows_future, place: 0 });
    }
    for series in &mut all {
        series.points.sort_by_key(|(capacity, _)| *capacity);
    }
    all.retain(|series| !series.points.is_empty());
    // Belady's has a mark of its own.
    let drawn = all.iter_mut().filter(|series| !series.knows_future);
    drawn.enumerate().for_each(|(place, series)| series.place = place);
    let (figure, left_out) = picture(
        format!("Miss ratio: {name}"),
        over,
        ("miss ratio", Quantity::Share),
        all,
        Vec::new(),
    );
    body.figures.extend(figure);
    body.left_out.extend(left_out);
    body.tables.push(table(trace, &name, unit));
    if !trace.complete {
        body.notes
            .push(format!("The simulation of {name} was interrupted: some sizes are missing."));
    }
}

fn table(trace: &Trace, name: &str, unit: Unit) -> Table {
    let sizes = sizes(trace);
    let row = |policy: &String| {
        let cell = |size: &u64| {
            let mut all = trace.simulations.iter();
            let one = all.find(|one| one.policy == *policy && one.capacity == *size);
            one.map_or_else(
                || NOTHING.to_owned(),
                |one| match one.byte_hit_ratio {
                    Some(bytes) => format!("{:.3} ({bytes:.3})", one.hit_ratio),
                    None => format!("{:.3}", one.hit_ratio),
                },
            )
        };
        let mut row = vec![policy_name(policy, trace)];
        row.extend(sizes.iter().map(cell));
        row
    };
    let has_bytes = trace.simulations.iter().any(|one| one.byte_hit_ratio.is_some());
    let caption = format!(
        "{name}: hit ratio{} by policy and size; {} requests of {} keys",
        if has_bytes { " (and byte hit ratio)" } else { "" },
        grouped(trace.requests),
        grouped(trace.keys)
    );
    let names: Vec<String> = sizes.iter().map(|size| capacity(*size, unit)).collect();
    let mut columns = vec!["Policy"];
    columns.extend(names.iter().map(String::as_str));
    Table::of_numbers(caption, &columns, policies(trace).iter().map(row).collect())
}
