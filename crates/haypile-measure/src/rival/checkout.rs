//! The search for the checkout.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{RivalError, is_file};

/// The name of the folder of all rivals (other caches) in a checkout of this repository.
pub(super) const RIVALS: &str = "rivals";

/// The name of the manifest file in the folder of a rival (another cache).
pub(super) const MANIFEST: &str = "rival.toml";

/// The variable that names a checkout, where nothing on the command line does.
const VARIABLE: &str = "HAYPILE_CHECKOUT";

/// The facts about a process (a variable, its working directory, its program) from which it finds
/// the checkout of this repository.
#[derive(Clone, Debug, Default)]
pub(super) struct Hints {
    pub(super) variable: Option<OsString>,
    pub(super) working_directory: Option<PathBuf>,
    pub(super) program: Option<PathBuf>,
}

impl Hints {
    /// Returns the facts about this process from which it can find the checkout of this repository.
    pub(super) fn of_process() -> Self {
        Self {
            variable: env::var_os(VARIABLE).filter(|value| !value.is_empty()),
            working_directory: env::current_dir().ok(),
            program: env::current_exe().ok(),
        }
    }
}

/// Finds a checkout of this repository: the folder `named`, or else the nearest one in or above the
/// working directory or the program's folder.
pub(super) fn find(named: Option<&Path>, hints: &Hints) -> Result<PathBuf, RivalError> {
    let variable = hints.variable.as_deref().map(Path::new);
    let named = named.map(|path| (path, "--checkout"));
    if let Some((path, named_by)) = named.or(variable.map(|path| (path, VARIABLE))) {
        if has_rivals(path) {
            return Ok(std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()));
        }
        return Err(RivalError::NotACheckout { path: path.to_path_buf(), named_by });
    }
    let starts = hints.working_directory.iter().chain(&hints.program);
    let found = starts.flat_map(|start| start.ancestors()).find(|path| has_rivals(path));
    found.map(Path::to_path_buf).ok_or(RivalError::NoCheckout)
}

fn has_rivals(path: &Path) -> bool {
    folders(path).is_ok_and(|folders| !folders.is_empty())
}

/// Returns the folders of those rivals (other caches to compare with) in a checkout that have a
/// manifest, in no particular order.
pub(super) fn folders(checkout: &Path) -> Result<Vec<PathBuf>, RivalError> {
    let rivals = checkout.join(RIVALS);
    let list = || -> io::Result<Vec<PathBuf>> {
        let folders = fs::read_dir(&rivals)?.map(|entry| Ok(entry?.path()));
        let has_manifest = |folder: &io::Result<PathBuf>| match folder {
            Ok(folder) => is_file(&folder.join(MANIFEST)),
            Err(_) => true,
        };
        folders.filter(has_manifest).collect()
    };
    list().map_err(|source| RivalError::Read { path: rivals.clone(), source })
}
