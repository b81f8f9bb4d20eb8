//! The subjects of this program.

mod http;

use haypile_measure::subject::Subjects;

/// Returns the caches of the engine, the HTTP cache on them, and the hidden subjects.
pub fn subjects() -> Subjects {
    let mut subjects = Subjects::ours();
    subjects.register(http::KIND);
    subjects
}
