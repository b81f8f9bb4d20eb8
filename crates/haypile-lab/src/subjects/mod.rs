//! The subjects of this program.

mod http;

use haypile_measure::subject::Subjects;

/// Returns the caches (subjects) that this program can measure: the engine's, HTTP caches based on
/// them, and hidden ones for tests.
pub fn subjects() -> Subjects {
    let mut subjects = Subjects::ours();
    subjects.register(http::KIND);
    subjects
}
