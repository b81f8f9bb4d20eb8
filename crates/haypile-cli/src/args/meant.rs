//! Commands that have another name in other programs.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Names, and what this program calls them.
const NAMES: [(&[&str], &str); 10] = [
    (&["ls", "list"], "haypile keys CACHE lists the keys of a cache"),
    (&["put", "write", "store"], "haypile set CACHE KEY VALUE writes a value"),
    (&["read", "cat", "fetch"], "haypile get CACHE KEY prints a value"),
    (&["rm", "remove", "del", "unset"], "haypile delete CACHE KEY deletes an entry"),
    (&["flush", "purge"], "haypile clear CACHE deletes all entries"),
    (
        &["top", "info", "status", "stats"],
        "haypile stat FILE shows a cache in a file and the processes that use it",
    ),
    (&["export", "backup"], "haypile dump CACHE writes the entries of a cache as JSON"),
    (&["import", "restore"], "haypile load CACHE reads what haypile dump wrote"),
    (&["serve", "server"], "haypile proxy answers HTTP requests from a cache"),
    (&["version"], "haypile --version prints the version"),
];

/// Adds to the error of an unknown command the command of this program that does the same, if other
/// programs have a command of that name.
pub(crate) fn with_tip(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(written)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    // Below a command the same word means something else.
    let is_first = std::env::args().nth(1).is_some_and(|first| first == *written);
    let named = NAMES.iter().find(|(names, _)| is_first && names.contains(&written.as_str()));
    if let Some((_, tip)) = named {
        // The nearest name by its letters is another command.
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*tip).into()]));
    }
    error
}
