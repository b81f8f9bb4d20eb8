//! The page as HTML.
//!
//! It is written so that it is XML too: whoever tests it needs no more than a parser.

mod experiment;
mod parts;

use haypile_plot::PlotError;
use haypile_plot::drawing::text::printable;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Report;
use super::number::bounded;
use super::section::Section;

const STYLE: &str = include_str!("style.css");

/// Instructions for browsers, as XML has them. Nothing may be loaded, whatever is in the page.
const META: &str = "<meta charset=\"utf-8\"/>\n\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
    <meta name=\"color-scheme\" content=\"light dark\"/>\n\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n";

/// Returns a report as the text of an HTML page.
pub(crate) fn html(report: &Report) -> Result<String, PlotError> {
    let sections: Vec<Markup> =
        report.sections.iter().map(experiment::section).collect::<Result<_, _>>()?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (PreEscaped(META))
                title { "Haypile laboratory report" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#results" { "To the results" }
                (head(report))
                (summary(report))
                main #results {
                    @for section in &sections { (section) }
                }
                (machines(report))
                (foot(report))
            }
        }
    };
    Ok(page.into_string() + "\n")
}

fn head(report: &Report) -> Markup {
    html! {
        header {
            h1 { "Laboratory report" }
            p.lead {
                "What caches cost and what they find, measured by Haypile. Each section has a question, \
                 an answer that is computed from the raw results, and what it rests on."
            }
            p.sources { "Made from " (parts::codes(&report.sources)) "." }
        }
    }
}

/// Returns a table of the questions, each with the first parts of its answer and a link to what it rests on.
fn summary(report: &Report) -> Markup {
    html! {
        nav aria-labelledby="summary_title" {
            h2 #summary_title { "Summary" }
            table.summary {
                caption { "Each question with its answer" }
                thead { tr { th scope="col" { "Question" } th scope="col" { "Answer" } } }
                tbody {
                    @for section in &report.sections { tr {
                        th scope="row" {
                            p.topic {
                                a href={ "#" (section.anchor) } { (section.about.title) }
                                " " (parts::name(section))
                            }
                            p.asked { (bounded(&section.about.question, MAX_QUESTION_CHARS)) }
                        }
                        td.found { (found(section)) }
                    } }
                }
            }
        }
    }
}

/// Returns the first parts of an answer, and the number of the others.
fn found(section: &Section) -> Markup {
    let body = &section.body;
    let beyond = body.answers.len().saturating_sub(MAX_FOUND);
    html! {
        @if let Some(disturbed) = &section.disturbed { p.disturbed { "Disturbed: " (disturbed) "." } }
        p { (bounded(&body.answer, MAX_ANSWER_CHARS)) }
        @if !body.answers.is_empty() {
            ul {
                @for answer in body.answers.iter().take(MAX_FOUND) {
                    li { (parts::answer(&bounded(answer, MAX_ANSWER_CHARS))) }
                }
            }
        }
        @if beyond > 0 { p.beyond { "and " (beyond) " more" } }
    }
}

/// The name of a machine within the page. No section has one with this sign.
fn machine_id(number: usize) -> String {
    format!("machine_{number}")
}

fn machines(report: &Report) -> Markup {
    let machines = report.machines.all();
    html! {
        @if !machines.is_empty() {
            section #machine_list aria-labelledby="machine_list_title" {
                h2 #machine_list_title { "Machines" }
                @for (machine, number) in machines.iter().zip(1..) {
                    h3 id=(machine_id(number)) { "Machine " (number) }
                    dl.machine {
                        @for (name, value) in machine.facts() { div { dt { (name) } dd { (value) } } }
                    }
                    ul.programs { @for program in machine.programs() { li { (program) } } }
                }
            }
        }
    }
}

fn foot(report: &Report) -> Markup {
    html! {
        footer {
            h2 #reading { "How to read this" }
            p {
                "A difference between two subjects is called shown if chance alone would give one as clear in \
                 fewer than 1 of 100 comparisons, and it exceeds 1 per cent. “No difference shown” does not \
                 mean that there is none: there may be one that the samples are too few or too noisy for. \
                 Intervals hold the true mean in 95 of 100 cases, if blocks are independent."
            }
            p {
                "Costs are means of logarithms over blocks, after a fifth is trimmed from each end. Whiskers without a cap at an end go on beyond the picture. Of the \
                 first among many that are close, chance has a part in who it is."
            }
            @if !report.warnings.is_empty() {
                h2 #passed-over { "Passed over" }
                ul { @for warning in report.warnings.iter().take(MAX_WARNINGS) { li { (printable(warning)) } } }
                @if report.warnings.len() > MAX_WARNINGS {
                    p { (report.warnings.len() - MAX_WARNINGS) " more warnings are not shown." }
                }
            }
        }
    }
}

/// Most parts of an answer in the summary, and the longest text of one, in characters.
const MAX_FOUND: usize = 3;
const MAX_ANSWER_CHARS: usize = 1_000;

/// Longest question of the summary, in characters.
const MAX_QUESTION_CHARS: usize = 400;

/// Most warnings that are shown.
const MAX_WARNINGS: usize = 50;
