//! Names of the subjects of samples.

use std::fmt;

use super::row::SubjectId;

/// The name of a subject (cache under test) and of the program that ran it, written `name@program`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Identity<'a> {
    /// The name of the subject (cache under test).
    pub name: &'a str,
    /// The name of the program that ran the subject (cache under test).
    pub program: &'a str,
}

impl Identity<'_> {
    /// The character between the name of a subject and that of its program, as in `memory@main`.
    pub const AT: char = '@';

    /// Returns the name of the subject (cache under test), followed by its program if several
    /// subjects in `all` have this name.
    pub fn label<'b>(self, all: impl IntoIterator<Item = Identity<'b>>) -> String {
        let same = all.into_iter().filter(|other| other.name == self.name);
        if same.count() > 1 { self.to_string() } else { self.name.to_owned() }
    }
}

impl SubjectId {
    /// Returns the names of the subject (cache under test) and of the program that ran it.
    pub fn identity(&self) -> Identity<'_> {
        Identity { name: &self.name, program: &self.program }
    }
}

impl fmt::Display for Identity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.name, Self::AT, self.program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_named_where_the_name_is_not_enough() {
        let [old, new] = ["old", "new"].map(|program| Identity { name: "lru", program });
        let other = Identity { name: "fifo", program: "new" };
        assert_eq!(new.label([old, new, other]), "lru@new");
        assert_eq!(other.label([old, new, other]), "fifo");
    }
}
