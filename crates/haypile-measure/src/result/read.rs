//! Reads rows of results files.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;

use super::SCHEMA;
use super::error::ResultsError;
use super::row::{Row, Run, Sample};

/// The longest line that is read. A row has a few thousand bytes.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// The contents of a results file: runs of experiments and their samples.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Results {
    /// The runs of experiments, in the order of the file.
    pub runs: Vec<Run>,
    /// The samples (single measurements), in the order of the file, errors among them.
    pub samples: Vec<Sample>,
    /// Warnings about skipped lines of the file, which were incomplete.
    pub warnings: Vec<String>,
}

/// The fields that every row has. Rows of types that a later version added are passed over.
#[derive(Deserialize)]
struct RowHead {
    #[serde(rename = "type")]
    kind: String,
    schema: u64,
}

/// Reads a results file. Unknown fields are ignored; an incomplete line, as a crash or a full disk
/// leaves it, is skipped with a warning.
///
/// # Errors
///
/// [`ResultsError`].
pub fn read(path: &Path) -> Result<Results, ResultsError> {
    let file = File::open(path).map_err(|source| ResultsError::Io { path: path.into(), source })?;
    read_from(BufReader::new(file), path)
}

/// Reads benchmark results from any input; errors call the input `path`.
///
/// # Errors
///
/// [`ResultsError`].
pub fn read_from(mut input: impl BufRead, path: &Path) -> Result<Results, ResultsError> {
    let mut results = Results::default();
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let read = input.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut bytes);
        read.map_err(|source| ResultsError::Io { path: path.into(), source })?;
        if bytes.is_empty() {
            break;
        }
        let is_whole = bytes.last() == Some(&b'\n');
        if bytes.len() as u64 > MAX_LINE_BYTES {
            let limit_bytes = MAX_LINE_BYTES;
            return Err(ResultsError::LongLine { path: path.into(), line, limit_bytes });
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        // A line that was torn within a text ends there, and not with the line break that the next
        // writer has added.
        let text = bytes.trim_ascii_end();
        let parsed = serde_json::from_slice::<RowHead>(text).and_then(|head| {
            let is_known = matches!(head.kind.as_str(), "run" | "sample");
            let row = is_known && head.schema <= SCHEMA;
            let row = row.then(|| serde_json::from_slice::<Row>(text)).transpose()?;
            Ok((head.schema, row))
        });
        match parsed {
            Ok((schema, _)) if schema > SCHEMA => {
                return Err(ResultsError::Newer { path: path.into(), line, schema, known: SCHEMA });
            }
            Ok((_, Some(Row::Run(run)))) => results.runs.push(run),
            Ok((_, Some(Row::Sample(sample)))) => results.samples.push(sample),
            Ok((_, None)) => {}
            // Also within the file, where a later run was appended.
            Err(error) if error.is_eof() || !is_whole => results.warnings.push(format!(
                "{}: line {line} was not finished and is passed over",
                path.display()
            )),
            Err(source) => return Err(ResultsError::Line { path: path.into(), line, source }),
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::ResultsWriter;

    #[test]
    fn a_run_after_a_torn_line_has_lines_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.jsonl");
        let run = Run::begin("x", "x".to_owned(), 1);
        for torn in [r#"{"type":"sample","sch"#, r#"{"type":"sample","schema":1,"#, "{"] {
            std::fs::write(&path, torn).unwrap();
            let mut writer = ResultsWriter::append(&path).unwrap();
            writer.write(&Row::Run(run.clone())).unwrap();
            let results = read(&path).unwrap();
            assert_eq!((results.runs.len(), results.warnings.len()), (1, 1), "{torn}");
            assert!(results.warnings[0].contains("line 1 was not finished"), "{torn}");
        }
        std::fs::write(&path, "{\"type\":7}\n").unwrap();
        assert!(matches!(read(&path), Err(ResultsError::Line { line: 1, .. })));
    }
}
