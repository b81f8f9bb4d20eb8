//! Writes the tables of documents from raw results, so that no figure is typed by hand.
//!
//! A table stands between two comments on lines of their own. The first says where the results are
//! and what of them is shown; `docs/results.md` lists the settings:
//!
//! ```text
//! <!-- table: record/2026-11-21-host/micro.jsonl case=get-hit columns=subject,cpu,memory -->
//! <!-- end of table -->
//! ```
//!
//! Everything outside stays as it is, byte for byte. Comments in blocks of code are text.

mod cell;
mod document;
mod error;
mod marker;
mod select;
mod table;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use document::Piece;
use marker::Marker;

pub use error::{MarkerProblem, SpliceError};

use haypile_measure::compare;
use haypile_measure::result::Sample;

/// A Markdown document whose tables were made again from results.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Spliced {
    /// The whole text of the document with its new tables.
    pub text: String,
    /// The line numbers, from 1, of the document's tables that were out of date.
    pub stale: Vec<usize>,
    /// The number of tables in the document that are made from results.
    pub tables: usize,
}

/// Reads a Markdown document and makes its tables again from results, without writing the file.
/// Paths of result files are relative to the document's folder.
///
/// # Errors
///
/// [`SpliceError`]: the document or results cannot be read, or a table cannot be made.
pub fn splice(document: &Path) -> Result<Spliced, SpliceError> {
    let io = |source| SpliceError::Io { path: document.into(), source };
    let text = fs::read_to_string(document).map_err(io)?;
    let folder = document.parent().unwrap_or(Path::new(""));
    let mut files: HashMap<PathBuf, Vec<Sample>> = HashMap::new();
    let mut spliced = Spliced { text: String::new(), stale: Vec::new(), tables: 0 };
    let at = |line| move |problem| SpliceError::Marker { document: document.into(), line, problem };
    for piece in document::pieces(&text) {
        match piece.map_err(|(line, problem)| at(line)(problem))? {
            Piece::Text(text) => spliced.text.push_str(text),
            Piece::Table { line, begin, marker, content, end } => {
                let table = make(marker, folder, &mut files).map_err(at(line))?;
                if table != content {
                    spliced.stale.push(line);
                }
                spliced.tables += 1;
                spliced.text.extend([begin, &table, end]);
            }
        }
    }
    Ok(spliced)
}

/// The text between the comments.
fn make(
    marker: &str,
    folder: &Path,
    files: &mut HashMap<PathBuf, Vec<Sample>>,
) -> Result<String, MarkerProblem> {
    let marker = Marker::parse(marker)?;
    let path = folder.join(&marker.results);
    if !files.contains_key(&path) {
        files.insert(path.clone(), compare::read(&path)?.samples);
    }
    let samples = select::select(&files[&path], &marker)?;
    Ok(format!("\n{}\n", table::table(&samples, &marker)?))
}
