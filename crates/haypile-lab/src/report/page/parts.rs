//! Figures and tables, as HTML.

use haypile_plot::PlotError;
use haypile_plot::drawing::text::printable;
use maud::{Markup, PreEscaped, html};

use super::super::chart::{Form, Picture, themed};
use super::super::section::Section;
use super::super::table::{Table, Tone};

/// Tables with more columns are set smaller on paper.
const MANY: usize = 12;

/// Returns a chart as HTML, as wide as the text; with another layout for narrow screens.
pub(crate) fn figure(figure: &Picture) -> Result<Markup, PlotError> {
    let wide = drawing(figure, Form::Wide)?;
    let narrow = drawing(figure, Form::Narrow)?;
    Ok(html! {
        figure {
            p.title { (figure.title) }
            div.wide { (wide) }
            div.narrow { (narrow) }
            figcaption { (figure.caption) }
        }
    })
}

/// Returns several small charts as HTML, in a row; empty without charts.
pub(crate) fn multiples(figures: &[Picture]) -> Result<Markup, PlotError> {
    let figures: Vec<Markup> = figures.iter().map(multiple).collect::<Result<_, _>>()?;
    Ok(html! {
        @if !figures.is_empty() {
            div.multiples { @for figure in &figures { (figure) } }
        }
    })
}

/// A small chart, one of several.
fn multiple(figure: &Picture) -> Result<Markup, PlotError> {
    let drawing = drawing(figure, Form::Narrow)?;
    Ok(html! {
        figure {
            p.title { (figure.title) }
            div { (drawing) }
            figcaption { (figure.caption) }
        }
    })
}

/// The drawing has been made of escaped text.
fn drawing(figure: &Picture, form: Form) -> Result<Markup, PlotError> {
    Ok(PreEscaped(themed(&figure.svg(form)?)))
}

/// Returns a table as HTML, or several if its columns do not fit next to each other.
pub(crate) fn table(table: &Table, id: &str) -> Markup {
    let parts = table.parts();
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @if at == 0 { (one_table(part, id)) }
            @else { (one_table(part, &format!("{id}-part-{}", at + 1))) }
        }
    }
}

/// A table in a container that scrolls where the screen is narrow.
fn one_table(table: &Table, id: &str) -> Markup {
    let number = |at: usize| table.columns.get(at).is_some_and(|column| column.is_number);
    html! {
        div.scroll role="region" tabindex="0" aria-labelledby=(id) {
            table.many[table.columns.len() > MANY] {
                caption id=(id) { span { (table.caption) "." } }
                thead { tr {
                    @for column in &table.columns {
                        th.number[column.is_number] scope="col" { (breakable(&column.name)) }
                    }
                } }
                tbody {
                    @for (row, number_of_row) in table.rows.iter().zip(0..) { tr {
                        @for (at, cell) in row.iter().enumerate() {
                            @if at == 0 { th scope="row" { (breakable(cell)) } }
                            @else if let Some(tone) = tone(table, number_of_row, at) {
                                td class=(tone) { (cell) }
                            }
                            @else if number(at) { td.number { (cell) } }
                            @else { td { (breakable(cell)) } }
                        }
                    } }
                }
            }
        }
    }
}

/// Returns the class of a verdict; `None` of other cells.
fn tone(table: &Table, row: usize, at: usize) -> Option<&'static str> {
    let (column, tones) = table.verdicts.as_ref()?;
    (at == *column).then(|| match tones.get(row) {
        Some(Tone::Better) => "verdict better",
        Some(Tone::Worse) => "verdict worse",
        Some(Tone::Level) => "verdict level",
        Some(Tone::Open) | None => "verdict open",
    })
}

/// Characters of names behind which a line may end.
const BREAKS: [char; 5] = [':', '=', '+', '/', '_'];

/// Returns text whose names have places where a line may end: a browser breaks others in a word.
fn breakable(text: &str) -> Markup {
    html! {
        @for part in text.split_inclusive(BREAKS) { (part) @if part.ends_with(BREAKS) { (PreEscaped("<wbr/>")) } }
    }
}

/// Longest case of a part of an answer that is set off from the rest, in characters.
const MAX_HEAD_CHARS: usize = 120;

/// Returns a part of an experiment's answer as HTML, with the name of its case highlighted.
pub(crate) fn answer(text: &str) -> Markup {
    // A command in quotes may have a colon of its own.
    let is_whole =
        |case: &str| ['\'', '"'].iter().all(|quote| case.matches(*quote).count() % 2 == 0);
    let mut ends = text.match_indices(": ").map(|(at, _)| at);
    match ends.find(|at| is_whole(&text[..*at])) {
        Some(at) if text[..at].chars().count() <= MAX_HEAD_CHARS => {
            html! { strong { (text[..at]) ":" } " " (text[at + 2..]) }
        }
        _ => html! { (text) },
    }
}

/// Returns a list of names in a sentence as HTML, each name marked as code.
pub(crate) fn codes(names: &[String]) -> Markup {
    html! {
        @for (at, name) in names.iter().enumerate() {
            @if at > 0 { ", " }
            code { (printable(name)) }
        }
    }
}

/// Returns an experiment's name as HTML, with its result file if several files have it, and the
/// experiment files that ask its question.
pub(crate) fn name(section: &Section) -> Markup {
    let file = section.file.as_ref().filter(|file| **file != section.experiment);
    html! {
        code { (section.experiment) }
        @if let Some(file) = file { " " span.file { "in " code { (file) } } }
        @if !section.experiment_files.is_empty() {
            " " span.file { "asked by " (codes(&section.experiment_files)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_set_off_behind_the_colons_of_commands_in_quotes() {
        let set_off = |text: &str| answer(text).into_string();
        assert_eq!(set_off("a (b): c: d"), "<strong>a (b):</strong> c: d");
        assert_eq!(
            set_off("curl -H 'X: y' (A), true (B): B takes"),
            "<strong>curl -H 'X: y' (A), true (B):</strong> B takes"
        );
        assert_eq!(set_off("no case"), "no case");
        assert_eq!(set_off("don't: x"), "don't: x");
    }
}
