//! The inputs of a trace, which a sample with a fixed number of keys reads twice.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use haypile_sim::trace::TraceError;
use haypile_sim::trace::format::{ReadOptions, TraceReader};

use super::STANDARD_INPUT;

/// The inputs of a trace.
pub(super) enum Source<'a> {
    /// Files, which can be read as often as one likes; or anything that is read once.
    Paths(&'a [PathBuf]),
    /// A copy of an input that can be read only once, such as standard input, under its name.
    Copy { name: PathBuf, file: File },
}

impl<'a> Source<'a> {
    /// Creates a source that reads the inputs where they are, and may be opened once.
    pub(super) fn once(paths: &'a [PathBuf]) -> Self {
        Self::Paths(paths)
    }

    /// Creates a source that may be opened several times: it copies standard input and pipes to a temporary file.
    pub(super) fn again_and_again(paths: &'a [PathBuf]) -> anyhow::Result<Self> {
        let is_standard_input = |path: &PathBuf| path == Path::new(STANDARD_INPUT);
        let is_read_once = |path: &&PathBuf| {
            is_standard_input(path) || fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
        };
        let Some(path) = paths.iter().find(is_read_once) else { return Ok(Self::Paths(paths)) };
        let name = if is_standard_input(path) { Path::new("standard input") } else { path };
        if paths.len() > 1 {
            bail!(
                "a sample with a number of keys reads the trace twice, and {} can be read only once: name it alone, or sample a share of \
                 the keys, as in --sample 0.01",
                name.display()
            );
        }
        let copied = (|| {
            let mut file = tempfile::tempfile()?;
            if is_standard_input(path) {
                io::copy(&mut io::stdin().lock(), &mut file)?;
            } else {
                io::copy(&mut File::open(path)?, &mut file)?;
            }
            Ok::<_, io::Error>(file)
        })();
        let file = copied.with_context(|| {
            format!(
                "{} cannot be copied to a temporary file in {}, to be read twice",
                name.display(),
                std::env::temp_dir().display()
            )
        })?;
        Ok(Self::Copy { name: name.to_path_buf(), file })
    }

    /// Opens the inputs from their beginning.
    pub(super) fn open(&self, options: &ReadOptions) -> Result<TraceReader<'_>, TraceError> {
        match self {
            Self::Paths(paths) => TraceReader::open(paths, options),
            Self::Copy { name, file } => {
                let mut file = file;
                file.seek(SeekFrom::Start(0))
                    .map_err(|source| TraceError::Io { path: name.clone(), source })?;
                TraceReader::from_reader(name.clone(), file, options)
            }
        }
    }

    /// Returns the only path of the inputs; `None` if there are several, or one that can be read only once.
    pub(super) fn only_path(&self) -> Option<&Path> {
        match self {
            Self::Paths([path]) if path != Path::new(STANDARD_INPUT) => Some(path),
            _ => None,
        }
    }
}
