//! The parts of the experiment as cases.

use std::fmt;
use std::path::Path;
use std::rc::Rc;

use haypile_measure::job::{self, JobError, Ops, Population, Settings, Timing};
use haypile_measure::measure::{Case, Expected};
use haypile_measure::result::Parameters;

use super::entries::total_bytes;
use crate::experiment::lookups::ROOM_PER_ENTRY_BYTES;

/// One in this many entries is read often in the experiment `persist`.
pub const USED_EVERY: u32 = 10;

/// The reads of such an entry beyond the one that every entry gets.
const USES: u32 = 4;

/// The settings of the cases of the experiment `persist`: the sizes of entries, and how they age.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// The sizes of all values in bytes; the key of each is its position as text.
    pub sizes: Vec<u32>,
    /// Milliseconds of waiting before frequently read entries are set again, in cases that measure
    /// the effect of age.
    pub wait_milliseconds: u32,
    /// Whether the cases that measure the effect of entries' age are included.
    pub with_age: bool,
    /// Seed of the random generator that draws the contents of the values.
    pub seed: u64,
}

/// A part of the experiment `persist`, such as writing or opening a cache file, with the files that
/// have to exist when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersistPart {
    /// Sets everything: timed. No later part opens its file.
    Fill,
    /// Sets everything, reads each entry once and some often, and writes it to disk: the last of
    /// this is timed.
    Write,
    /// Opens the file of `Write` in a new process, and reads everything: timed until the first hit
    /// and to the end.
    Open,
    /// Opens the file of `Write` with half of the room, and reads the entries that were used often.
    OpenHalf,
    /// As `Write`, but after a time, the entries that are used often are set again: the others are
    /// old.
    WriteAged,
    /// Opens the file of `WriteAged`, and reads everything.
    OpenAged,
}

impl PersistPart {
    const ALL: [Self; 6] =
        [Self::Fill, Self::Write, Self::Open, Self::OpenHalf, Self::WriteAged, Self::OpenAged];

    /// Returns the name of the case that measures this part of the experiment `persist`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::Write => "write",
            Self::Open => "open",
            Self::OpenHalf => "open-half",
            Self::WriteAged => "write-aged",
            Self::OpenAged => "open-aged",
        }
    }

    /// Whether this part of the experiment `persist` begins with nothing on disk, and leaves the
    /// cache file that later parts open.
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::WriteAged)
    }

    /// Whether this part of the experiment `persist` begins with the cache file that an earlier
    /// part has left.
    pub fn opens(self) -> bool {
        matches!(self, Self::Open | Self::OpenHalf | Self::OpenAged)
    }

    /// Returns the part of the experiment `persist`, such as writing or opening, that this case
    /// measures.
    pub fn of_case(case: &Case) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == case.name)
    }

    fn is_about_age(self) -> bool {
        matches!(self, Self::WriteAged | Self::OpenAged)
    }
}

impl fmt::Display for PersistPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Returns the cases of the experiment `persist`, in the order in which they have to be measured.
///
/// # Errors
///
/// [`JobError::TooLarge`] for more entries than a job can have.
pub fn cases(options: Sizes) -> Result<Vec<Case>, JobError> {
    let mut population = Population::new();
    for (entry, &size) in options.sizes.iter().enumerate() {
        population.push(entry.to_string().as_bytes(), size)?;
    }
    let shared = Rc::new((options, population));
    let parts =
        PersistPart::ALL.into_iter().filter(|part| shared.0.with_age || !part.is_about_age());
    let case = |part: PersistPart| {
        let shared = Rc::clone(&shared);
        let (options, population) = &*shared;
        Case {
            experiment: super::NAME,
            name: part.name().to_owned(),
            parameters: parameters(part, options, population),
            processes: 1,
            skips: &[],
            write: Box::new({
                let shared = Rc::clone(&shared);
                move |directory| write(directory, part, &shared.0, &shared.1)
            }),
        }
    };
    Ok(parts.map(case).collect())
}

fn parameters(part: PersistPart, options: &Sizes, population: &Population) -> Parameters {
    let mut numbers = vec![
        ("entries", u64::from(population.len())),
        ("entry_bytes", total_bytes(&options.sizes)),
        ("capacity_bytes", capacity_bytes(part, population)),
        ("threads", 1),
        ("processes", 1),
    ];
    if part == PersistPart::WriteAged {
        numbers.push(("wait_ms", u64::from(options.wait_milliseconds)));
    }
    numbers.into_iter().map(|(name, number)| (name.to_owned(), number.into())).collect()
}

fn capacity_bytes(part: PersistPart, population: &Population) -> u64 {
    if part == PersistPart::OpenHalf {
        return population.bytes() / 2;
    }
    let needed = population.bytes() + u64::from(population.len()) * ROOM_PER_ENTRY_BYTES;
    needed + needed / 4
}

fn write(
    directory: &Path,
    part: PersistPart,
    options: &Sizes,
    population: &Population,
) -> Result<Expected, JobError> {
    let capacity_bytes = capacity_bytes(part, population);
    let mean_bytes = (population.bytes() / u64::from(population.len()).max(1)).max(1);
    let settings = Settings::new(options.seed, capacity_bytes, capacity_bytes / mean_bytes)
        // Verifying reads every key, which is a use of each: what was used often would not show in
        // what is written when the cache is closed. The other parts verify.
        .with_verification(false, !part.writes());
    let settings = if part.opens() { settings.with_timing(Timing::Open) } else { settings };
    let (prepare, timed) = (prepare(part, options, population), timed(part, population));
    job::write(directory, &settings, population, &prepare, std::slice::from_ref(&timed))?;
    Ok(Expected { operations: timed.operations(), reads: timed.reads(), ..Expected::default() })
}

fn used(population: &Population) -> impl Iterator<Item = u32> {
    (0..population.len()).step_by(USED_EVERY as usize)
}

/// Everything is set and read once; then some are read often, and where it is about age they are
/// set again before.
fn prepare(part: PersistPart, options: &Sizes, population: &Population) -> Ops {
    let mut ops = Ops::new();
    if !part.writes() {
        return ops;
    }
    for key in 0..population.len() {
        ops.set(key);
    }
    for key in 0..population.len() {
        ops.get(key);
    }
    if part == PersistPart::WriteAged {
        ops.wait(options.wait_milliseconds);
        for key in used(population) {
            ops.set(key);
        }
    }
    for _ in 0..USES {
        for key in used(population) {
            ops.get(key);
        }
    }
    ops
}

fn timed(part: PersistPart, population: &Population) -> Ops {
    let mut ops = Ops::new();
    match part {
        PersistPart::Fill => (0..population.len()).for_each(|key| ops.set(key)),
        PersistPart::Write | PersistPart::WriteAged => ops.flush(),
        PersistPart::OpenHalf => used(population).for_each(|key| ops.get(key)),
        PersistPart::Open | PersistPart::OpenAged => {
            (0..population.len()).for_each(|key| ops.get(key));
        }
    }
    ops
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Cursor;

    use haypile_measure::runner::{self, Assignment};

    use super::*;

    fn options() -> Sizes {
        Sizes {
            sizes: super::super::sizes_below(100_000),
            wait_milliseconds: 1,
            with_age: true,
            seed: 1,
        }
    }

    fn results(case: &Case) -> (Expected, BTreeMap<String, u64>) {
        let directory = tempfile::tempdir().unwrap();
        let expected = (case.write)(directory.path()).unwrap();
        let (mut input, mut output) = (Cursor::new(b"go\nverify\n"), Vec::new());
        let subject = "memory:policy=lru".parse().unwrap();
        let assignment = Assignment::new(directory.path(), &subject);
        runner::serve(&crate::subjects(), &assignment, &mut input, &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        let pair = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        (expected, text.lines().filter_map(pair).collect())
    }

    /// The command tests what is written, for it has a place for files.
    #[test]
    fn a_cache_that_finds_nothing_on_disk_misses() {
        let cases = cases(options()).unwrap();
        for case in cases.iter().filter(|case| PersistPart::of_case(case).unwrap().opens()) {
            let (expected, results) = results(case);
            assert_eq!(results["operations"], expected.operations, "{}", case.name);
            assert_eq!((results["errors"], results["wrong"]), (0, 0), "{}", case.name);
            assert_eq!(results["misses"], expected.reads, "{}", case.name);
            assert!(results["open_wall_ns"] <= results["wall_ns"], "{}", case.name);
            assert!(!results.contains_key("first_hit_wall_ns"), "{}", case.name);
        }
    }

    #[test]
    fn what_is_filled_is_all_there() {
        let (expected, results) = results(&cases(options()).unwrap()[0]);
        let entries = options().sizes.len() as u64;
        assert_eq!((expected.operations, expected.reads), (entries, 0));
        assert_eq!((results["operations"], results["verified_after"]), (entries, entries));
        assert!(!results.contains_key("open_wall_ns"));
    }

    #[test]
    fn what_is_used_often_is_every_tenth() {
        let options = options();
        let mut population = Population::new();
        for (entry, &size) in options.sizes.iter().enumerate() {
            population.push(entry.to_string().as_bytes(), size).unwrap();
        }
        let entries = u64::from(population.len());
        let used = entries.div_ceil(10);
        let reads = |part| prepare(part, &options, &population).reads();
        let sets = |part| prepare(part, &options, &population).operations() - reads(part);
        assert_eq!(reads(PersistPart::Write), entries + 4 * used);
        assert_eq!(
            (sets(PersistPart::Write), sets(PersistPart::WriteAged)),
            (entries, entries + used)
        );
        assert_eq!(timed(PersistPart::OpenHalf, &population).reads(), used);
    }

    #[test]
    fn age_is_looked_at_where_it_is_asked_for() {
        let names = |with_age| {
            let cases = cases(Sizes { with_age, ..options() }).unwrap();
            cases.into_iter().map(|case| case.name).collect::<Vec<_>>()
        };
        assert_eq!(names(false), ["fill", "write", "open", "open-half"]);
        assert_eq!(names(true)[4..], ["write-aged", "open-aged"]);
    }

    #[test]
    fn half_of_the_room_is_half_of_the_bytes() {
        let cases = cases(options()).unwrap();
        let number = |case: usize, name: &str| cases[case].parameters[name].as_u64().unwrap();
        assert_eq!(number(3, "capacity_bytes"), number(3, "entry_bytes") / 2);
        assert!(number(2, "capacity_bytes") > number(2, "entry_bytes"));
    }
}
