//! Finds the tables of a document.

use super::error::MarkerProblem;

const BEGIN: &str = "<!-- table:";
const END: &str = "<!-- end of table -->";
const CLOSE: &str = "-->";
/// The fences of blocks of code.
const FENCES: [&str; 2] = ["```", "~~~"];

/// A part of a Markdown document: text that stays, or a table that is made from results.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'a> {
    /// A text that stays as it is.
    Text(&'a str),
    /// A table, with the comments around it.
    Table {
        /// Number of the line with the beginning comment, from 1.
        line: usize,
        /// The line with the beginning comment.
        begin: &'a str,
        /// The text of the beginning comment.
        marker: &'a str,
        /// The content between the comments.
        content: &'a str,
        /// The line with the ending comment.
        end: &'a str,
    },
}

/// Splits a Markdown document into texts and tables, in their order: concatenated they are the
/// document. An error names the line.
pub(super) fn pieces(text: &str) -> Vec<Result<Piece<'_>, (usize, MarkerProblem)>> {
    let mut pieces = Vec::new();
    let mut fence: Option<&str> = None;
    // Where the text begins that is not yet part of a piece, and the line that begins a table.
    let mut from = 0;
    let mut open: Option<(usize, &str)> = None;
    let mut at = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let (start, end) = (at, at + line.len());
        at = end;
        let word = line.trim();
        if let Some(mark) = FENCES.into_iter().find(|mark| word.starts_with(mark)) {
            fence = match fence {
                None => Some(mark),
                Some(opened) if opened == mark => None,
                other => other,
            };
        }
        if fence.is_some() {
            continue;
        }
        match (word.starts_with(BEGIN), word == END, open) {
            (true, _, Some((first, _))) => pieces.push(Err((first, MarkerProblem::NoEnd))),
            (true, _, None) if !word.ends_with(CLOSE) => {
                pieces.push(Err((number, MarkerProblem::OpenComment)));
            }
            (true, _, None) => {
                pieces.push(Ok(Piece::Text(&text[from..start])));
                open = Some((number, line));
                from = end;
            }
            (_, true, Some((first, begin))) => {
                let marker = begin.trim().trim_start_matches(BEGIN).trim_end_matches(CLOSE);
                let content = &text[from..start];
                pieces.push(Ok(Piece::Table { line: first, begin, marker, content, end: line }));
                open = None;
                from = end;
            }
            (_, true, None) => pieces.push(Err((number, MarkerProblem::NoBeginning))),
            _ => {}
        }
    }
    if let Some((first, _)) = open {
        pieces.push(Err((first, MarkerProblem::NoEnd)));
    }
    pieces.push(Ok(Piece::Text(&text[from..])));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<(usize, String)> {
        let problems = pieces(text).into_iter().filter_map(Result::err);
        problems.map(|(line, problem)| (line, problem.to_string())).collect()
    }

    #[test]
    fn tables_stand_between_comments() {
        let text = "a\n<!-- table: x y=1 -->\nold\n  <!-- end of table -->\nb";
        let pieces: Vec<_> = pieces(text).into_iter().map(Result::unwrap).collect();
        let table = Piece::Table {
            line: 2,
            begin: "<!-- table: x y=1 -->\n",
            marker: " x y=1 ",
            content: "old\n",
            end: "  <!-- end of table -->\n",
        };
        assert_eq!(pieces, [Piece::Text("a\n"), table, Piece::Text("b")]);
    }

    #[test]
    fn comments_in_code_are_text() {
        let text = "```md\n<!-- table: x -->\n~~~\n<!-- end of table -->\n```\n";
        assert!(matches!(pieces(text).as_slice(), [Ok(Piece::Text(all))] if *all == text));
    }

    #[test]
    fn what_is_open_or_closed_twice_is_an_error() {
        assert_eq!(problems("<!-- table: x -->\n")[0].0, 1);
        assert_eq!(
            problems("\n<!-- table: x -->\n<!-- table: x -->\n<!-- end of table -->")[0].0,
            2
        );
        assert!(problems("\n<!-- end of table -->")[0].1.contains("has no beginning"));
        assert!(problems("<!-- table: x\n-->")[0].1.contains("same line"));
    }
}
