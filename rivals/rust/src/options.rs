//! Options of a rival: the settings after its name, and its size.

use haypile_measure::subject::{Room, SubjectError, SubjectSpec};

/// Options that may follow a rival's name, `foyer:policy=lru,shards=1`, with their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pairs: Vec<(String, String)>,
    /// The bound: bytes of keys and values.
    pub(crate) capacity_bytes: u64,
    /// Number of entries of mean size that fill that bound; at least 1.
    pub(crate) entries: usize,
}

impl Options {
    /// Reads the settings after the name. `allowed` has the names of options and the values of
    /// each; no values mean any number from 1.
    pub(crate) fn parse(
        spec: &SubjectSpec,
        room: &Room,
        allowed: &[(&str, &[&str])],
    ) -> Result<Self, SubjectError> {
        let pairs = spec.rest().split(',').filter(|pair| !pair.is_empty());
        let pairs: Vec<_> = pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                let known = allowed.iter().find(|(other, _)| *other == name);
                let fits = known.is_some_and(|(_, values)| match values {
                    [] => value.parse().is_ok_and(|number: usize| number > 0),
                    values => values.contains(&value),
                });
                let wrong = || SubjectError::Spec {
                    subject: spec.redacted(),
                    wrong: format!("unknown option '{pair}'; {}", describe(allowed)),
                };
                fits.then(|| (name.to_owned(), value.to_owned())).ok_or_else(wrong)
            })
            .collect::<Result<_, _>>()?;
        let entries = usize::try_from(room.capacity_entries).unwrap_or(usize::MAX).max(1);
        Ok(Self { pairs, capacity_bytes: room.capacity_bytes, entries })
    }

    /// Returns the value of an option, if it was given.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let mut pairs = self.pairs.iter().filter(|(other, _)| other == name);
        pairs.next().map(|(_, value)| value.as_str())
    }

    /// Returns the number of shards, if it was given.
    pub(crate) fn shards(&self) -> Option<usize> {
        self.number("shards")
    }

    /// Returns the factor of the capacity; 1 unless it was given.
    pub(crate) fn room(&self) -> u64 {
        self.number("room").map_or(1, |times| times as u64)
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.value(name).map(|number| number.parse().expect("parse allows numbers alone"))
    }
}

fn describe(allowed: &[(&str, &[&str])]) -> String {
    let option = |(name, values): &(&str, &[&str])| match values {
        [] => format!("{name}=N"),
        values => format!("{name}={}", values.join("|")),
    };
    match allowed {
        [] => "there are no options".to_owned(),
        allowed => {
            format!("there are {}", allowed.iter().map(option).collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: [(&str, &[&str]); 3] =
        [("policy", &["lru", "fifo"]), ("shards", &[]), ("room", &[])];

    fn parse(text: &str) -> Result<Options, SubjectError> {
        let room = Room::new(1_000, 0);
        Options::parse(&text.parse().expect("a name"), &room, &ALLOWED)
    }

    #[test]
    fn options_are_read() {
        let options = parse("x:shards=2,policy=lru,room=3").expect("right options");
        assert_eq!((options.shards(), options.value("policy")), (Some(2), Some("lru")));
        assert_eq!(options.room(), 3);
        assert_eq!((options.capacity_bytes, options.entries), (1_000, 1));
        let plain = parse("x").expect("no options");
        assert_eq!((plain.shards(), plain.value("policy"), plain.room()), (None, None, 1));
    }

    #[test]
    fn what_is_not_taken_is_an_error_that_says_what_is() {
        for wrong in ["x:shards=0", "x:shards=x", "x:policy=md5", "x:shards", "x:size=1"] {
            let error = parse(wrong).expect_err(wrong).to_string();
            assert!(
                error.contains("there are policy=lru|fifo, shards=N, room=N"),
                "{wrong}: {error}"
            );
        }
    }
}
