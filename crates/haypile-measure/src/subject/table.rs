//! The subjects of a runner.

use super::error::SubjectError;
use super::spec::SubjectSpec;
use super::{Room, Subject, again, copy, mock, noop, store};

/// A kind of subject (cache under test): its name, and the functions that check and open it.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The name of the kind of subject (cache): the part of a subject's name before the first
    /// colon, such as `memory`.
    pub name: &'static str,
    /// The syntax of the subject's name and options, such as `memory:OPTIONS`.
    pub usage: &'static str,
    /// A description of the kind of subject (cache) in a few words, for people.
    pub help: &'static str,
    /// The programming language that the cache is used from.
    pub language: &'static str,
    /// The version of the cache under test.
    pub version: &'static str,
    /// Whether lists of subjects leave this kind out.
    pub hidden: bool,
    /// Whether several processes can share one cache of this kind, whose files lie in the working
    /// directory.
    pub shared: bool,
    /// The function that opens a subject (cache) of this kind.
    pub open: Open,
    /// The function that finds mistakes in the name and options of a subject of this kind.
    pub check: Check,
}

/// A function that finds mistakes in the name and options of a subject (cache), without opening it.
pub type Check = fn(&SubjectSpec) -> Result<(), SubjectError>;

/// A check of subjects that accepts every name: mistakes are found when the subject is opened.
pub const UNCHECKED: Check = |_| Ok(());

/// A function that opens a subject (cache under test). The table of subjects is for those that wrap
/// others.
pub type Open = fn(&SubjectSpec, &Room, &Subjects) -> Result<Box<dyn Subject>, SubjectError>;

/// A table of the kinds of subjects (caches under test) that a runner can open, by name.
///
/// ```
/// use haypile_measure::subject::{Room, Subjects};
///
/// let room = Room::new(1 << 20, 1000);
/// let subject = Subjects::ours().open(&"memory:policy=lru".parse().unwrap(), &room).unwrap();
/// assert_eq!(subject.language(), "rust");
/// ```
#[derive(Clone, Debug)]
pub struct Subjects {
    kinds: Vec<Kind>,
}

impl Subjects {
    /// Creates a table of the subjects that every runner in Rust has: `noop`, `mock`, `again` and
    /// `copy`, which are hidden from lists.
    pub fn new() -> Self {
        Self { kinds: vec![noop::KIND, mock::KIND, again::KIND, copy::KIND] }
    }

    /// Creates a table of this engine's caches, named by their URLs, and the hidden subjects.
    pub fn ours() -> Self {
        let mut subjects = Self { kinds: store::kinds() };
        subjects.kinds.extend(Self::new().kinds);
        subjects
    }

    /// Adds a kind of subject (cache under test) to the table, or replaces the one with its name.
    pub fn register(&mut self, kind: Kind) {
        self.kinds.retain(|other| other.name != kind.name);
        self.kinds.push(kind);
    }

    /// Returns all kinds of subjects (caches under test) in the table.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.iter()
    }

    /// Opens a subject (cache under test) by its name and options.
    ///
    /// # Errors
    ///
    /// [`SubjectError::Unknown`], [`SubjectError::Processes`], and what the kind's own [`Open`]
    /// says.
    pub fn open(&self, spec: &SubjectSpec, room: &Room) -> Result<Box<dyn Subject>, SubjectError> {
        let kind = self.kind(spec).ok_or_else(|| SubjectError::Unknown {
            name: spec.name().to_owned(),
            allowed: self.names(),
        })?;
        if room.processes > 1 && !kind.shared {
            let (subject, processes) = (spec.redacted(), room.processes);
            return Err(SubjectError::Processes { subject, processes });
        }
        (kind.open)(spec, room, self)
    }

    /// Returns the kind of the subject's name.
    fn kind(&self, spec: &SubjectSpec) -> Option<&Kind> {
        self.kinds().find(|kind| kind.name == spec.name())
    }

    /// Whether the table has a kind for the subject's name.
    pub fn has(&self, spec: &SubjectSpec) -> bool {
        self.kind(spec).is_some()
    }

    /// Finds mistakes in the name and options of a subject before it is measured, by the [`Check`]
    /// of its kind.
    ///
    /// # Errors
    ///
    /// What is wrong with the name.
    pub fn check(&self, spec: &SubjectSpec) -> Result<(), SubjectError> {
        self.kind(spec).map_or(Ok(()), |kind| (kind.check)(spec))
    }

    /// Returns a text that names a program which a cache of this engine needs and which is not
    /// installed, with the command to install it; `None` if nothing is missing.
    pub fn missing(&self, spec: &SubjectSpec) -> Option<String> {
        if is_of_engine(spec) && self.has(spec) { store::missing(spec) } else { None }
    }

    /// Returns the forms of the names of all subjects that are not hidden (such as
    /// `memory:OPTIONS`), separated by commas.
    pub fn names(&self) -> String {
        let shown = self.kinds().filter(|kind| !kind.hidden).map(|kind| kind.usage);
        shown.collect::<Vec<_>>().join(", ")
    }
}

/// Whether a subject is a cache of this engine, in contrast to other projects' caches.
pub fn is_of_engine(spec: &SubjectSpec) -> bool {
    store::kinds().iter().any(|kind| kind.name == spec.name())
}

impl Default for Subjects {
    fn default() -> Self {
        Self::new()
    }
}
