//! The section of an experiment, as HTML.

use haypile_plot::PlotError;
use maud::{Markup, html};

use super::super::body::latency;
use super::super::host::Host;
use super::super::section::{FailedSamples, Latencies, Section};
use super::machine_id;
use super::parts;

pub(crate) fn section(section: &Section) -> Result<Markup, PlotError> {
    let Section { anchor: id, about, body, .. } = section;
    let title = format!("{id}-title");
    let figures: Vec<Markup> = body.figures.iter().map(parts::figure).collect::<Result<_, _>>()?;
    let multiples = parts::multiples(&body.multiples)?;
    let (folded, open): (Vec<_>, Vec<_>) = body.tables.iter().partition(|table| table.is_detail);
    let tables: Vec<Markup> = open
        .iter()
        .zip(1..)
        .map(|(table, n)| parts::table(table, &format!("{id}-table-{n}")))
        .collect();
    let details: Vec<Markup> = folded
        .iter()
        .zip(1..)
        .map(|(table, n)| parts::table(table, &format!("{id}-detail-{n}")))
        .collect();
    let latencies = section.latencies.as_ref();
    let latencies = latencies.map(|latencies| self::latencies(latencies, id)).transpose()?;
    Ok(html! {
        section id=(id) aria-labelledby=(title) {
            h2 id=(title) { (about.title) " " (parts::name(section)) }
            p.question { (about.question) }
            div.evidence.tall[figures.len() > 1] {
                div {
                    (answer(section))
                    @for note in &body.notes { p.note { (note) } }
                }
                @for figure in &figures { (figure) }
            }
            (multiples)
            div.tables { @for table in &tables { (table) } }
            @if !details.is_empty() {
                details {
                    summary { "Every subject, case by case (" (folded.len()) ")" }
                    div.tables { @for table in &details { (table) } }
                }
            }
            @if let Some(latencies) = latencies { (latencies) }
            @if !section.failures.is_empty() { (failures(&section.failures, id)) }
            div.sides {
            div {
            h3 { "Method" }
            p {
                (about.method) " "
                @if section.latencies.is_some() { (latency::METHOD) " " }
                (section.extent)
                @if let Some(source) = &about.source {
                    " Defined by " (source)
                    @if !section.experiment_files.is_empty() {
                        ", in the experiment file " (parts::codes(&section.experiment_files))
                    }
                    "."
                }
            }
            @for left_out in &body.left_out { p.note { (left_out) } }
            }
            @if !section.hosts.is_empty() {
                div {
                    h3 { "Machine" }
                    @for host in &section.hosts { (measured_on(host)) }
                }
            }
            }
        }
    })
}

/// Most parts of an answer that are open at once.
const OPEN_ANSWERS: usize = 6;

fn answer(section: &Section) -> Markup {
    let Section { body, disturbed, .. } = section;
    let (open, folded) = body.answers.split_at(body.answers.len().min(OPEN_ANSWERS));
    html! {
        div.answer {
            @if let Some(disturbed) = disturbed { p.disturbed { "Disturbed: " (disturbed) "." } }
            p { (body.answer) }
            @if !open.is_empty() { ul { @for answer in open { li { (parts::answer(answer)) } } } }
            @if !folded.is_empty() {
                details {
                    summary { (folded.len()) " more" }
                    ul { @for answer in folded { li { (parts::answer(answer)) } } }
                }
            }
        }
    }
}

/// One chart is as wide as the text, several stand in a row.
fn latencies(latencies: &Latencies, id: &str) -> Result<Markup, PlotError> {
    let figures = match latencies.figures.as_slice() {
        [figure] => parts::figure(figure)?,
        figures => parts::multiples(figures)?,
    };
    Ok(html! {
        h3 { "Latency" }
        (figures)
        (parts::table(&latencies.table, &format!("{id}-latencies")))
    })
}

/// Most errors that are open at once.
const OPEN_FAILURES: usize = 6;

fn failures(failures: &[FailedSamples], id: &str) -> Markup {
    let heading = format!("{id}-errors");
    let table = html! {
        div.scroll role="region" tabindex="0" aria-labelledby=(heading) {
            table.errors {
                caption { span { "Samples that failed; their times are in no figure." } }
                thead { tr {
                    th scope="col" { "Case" } th scope="col" { "Subject" }
                    th.number scope="col" { "Times" } th scope="col" { "What it said" }
                } }
                tbody { @for failure in failures { tr {
                    th scope="row" { (failure.case) }
                    td { (failure.subject) }
                    td.number { (failure.times) }
                    td.said { (failure.text) }
                } } }
            }
        }
    };
    html! {
        h3 id=(heading) { "Errors" }
        @if failures.len() <= OPEN_FAILURES { (table) }
        @else { details { summary { (failures.len()) " kinds of errors" } (table) } }
    }
}

fn measured_on(host: &Host) -> Markup {
    html! {
        p {
            "Measured on " a href={ "#" (machine_id(host.machine)) } { "machine " (host.machine) }
            " (" (host.processor) ") with Haypile " (host.program) ", started " (host.started)
            "; load before the start " (host.load) "."
        }
        @for warning in &host.warnings { p.warning { strong { "Beware: " } (warning) "." } }
        details.commands {
            summary { "Command lines (" (host.commands.len()) ")" }
            ul { @for command in &host.commands { li { code { (command) } } } }
        }
    }
}
