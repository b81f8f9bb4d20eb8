//! Caches of others, each with a runner: a folder of `rivals/` in a checkout of the project.
//!
//! A manifest, `rivals/NAME/rival.toml`, says what a rival is, which program runs it, and how to get
//! that. `rivals/README.md` describes it, and how to write a runner for a new cache.

mod checkout;
mod error;
mod manifest;
mod state;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

pub use error::RivalError;
pub use manifest::Manifest;
pub use state::State;

use crate::measure::Runner;
use checkout::{MANIFEST, RIVALS};

/// The most rivals of a checkout.
const MAX_RIVALS: usize = 1000;

/// The rivals (other caches to compare with) of a checkout of this repository.
#[derive(Clone, Debug)]
pub struct Rivals {
    checkout: PathBuf,
    rivals: Vec<Rival>,
}

impl Rivals {
    /// Reads the manifests of all rivals (other caches) of a checkout: of the given one, of the one that the
    /// environment's `HAYPILE_CHECKOUT` names, or of the nearest one in or above the working directory or the folder of
    /// the running program.
    ///
    /// # Errors
    ///
    /// [`RivalError`]: there is no checkout, or one of its manifests is wrong.
    pub fn find(checkout: Option<&Path>) -> Result<Self, RivalError> {
        Self::read(checkout::find(checkout, &checkout::Hints::of_process())?)
    }

    fn read(checkout: PathBuf) -> Result<Self, RivalError> {
        let mut rivals = Vec::new();
        for folder in checkout::folders(&checkout)? {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let manifest = Manifest::read(&folder.join(MANIFEST))?;
            rivals.push(Rival { name, checkout: checkout.clone(), manifest });
            if rivals.len() > MAX_RIVALS {
                return Err(RivalError::TooMany { checkout, limit: MAX_RIVALS });
            }
        }
        // As the file system lists them is no order.
        rivals.sort_by(|one, other| one.name.cmp(&other.name));
        let mut owners = BTreeMap::new();
        for rival in &rivals {
            for subject in &rival.manifest.subjects {
                if let Some(first) = owners.insert(subject.as_str(), rival) {
                    return Err(RivalError::Twice {
                        subject: subject.clone(),
                        first: first.manifest_path(),
                        second: rival.manifest_path(),
                    });
                }
            }
        }
        Ok(Self { checkout, rivals })
    }

    /// Returns the path of the checkout that the rivals were read from, absolute or as the user wrote it.
    pub fn checkout(&self) -> &Path {
        &self.checkout
    }

    /// Returns all rivals (other caches) of the checkout, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Rival> {
        self.rivals.iter()
    }

    /// Returns the rival (another cache) that has a subject, by the part of the subject's name before a colon; `None`
    /// if no rival does.
    pub fn for_subject(&self, subject: &str) -> Option<&Rival> {
        let name = subject.split(':').next().unwrap_or(subject);
        self.iter().find(|rival| rival.manifest.subjects.iter().any(|known| known == name))
    }

    /// Returns the rivals with the given names, in alphabetical order; all rivals if no names are given.
    ///
    /// # Errors
    ///
    /// [`RivalError::Unknown`] for a name that none has.
    pub fn named(&self, names: &[String]) -> Result<Vec<&Rival>, RivalError> {
        let is_unknown = |name: &&String| self.iter().all(|rival| rival.name != **name);
        if let Some(name) = names.iter().find(is_unknown) {
            let allowed: Vec<_> = self.iter().map(Rival::name).collect();
            return Err(RivalError::Unknown { name: name.clone(), allowed: allowed.join(", ") });
        }
        let is_asked = |rival: &&Rival| names.is_empty() || names.contains(&rival.name);
        Ok(self.iter().filter(is_asked).collect())
    }
}

/// A rival: one or several caches of other projects, with the program that runs them.
#[derive(Clone, Debug)]
pub struct Rival {
    name: String,
    checkout: PathBuf,
    manifest: Manifest,
}

impl Rival {
    /// Returns the name of the rival (another cache), which is that of its folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the contents of the rival's manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the path of the rival's manifest file.
    pub fn manifest_path(&self) -> PathBuf {
        self.checkout.join(RIVALS).join(&self.name).join(MANIFEST)
    }

    /// Returns the program that runs the rival's caches, whether it is installed or not.
    pub fn runner(&self) -> Runner {
        let target = env::var_os("CARGO_TARGET_DIR").filter(|target| !target.is_empty());
        let program = self.manifest.program_in(&self.checkout, target.as_deref().map(Path::new));
        Runner { several_jobs: self.manifest.several_jobs, ..Runner::rival(program) }
    }

    /// Returns the shell command that installs the rival (another cache), for people.
    pub fn how_to_get(&self) -> String {
        let install = format!("haypile rivals install {}", self.name);
        match &*self.manifest.debian {
            [] => install,
            // Only root may install Debian's packages; `make` does it then.
            packages => format!("apt-get install {} && {install}", packages.join(" ")),
        }
    }
}

/// Whether there is a file.
fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

#[cfg(test)]
mod tests;
