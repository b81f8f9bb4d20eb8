//! What each experiment asks, and how. The one place of these texts.

/// What is said about an experiment whoever did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct About {
    /// What it is about, as a heading.
    pub(super) title: &'static str,
    /// What it asks, in a sentence.
    pub(super) question: &'static str,
    /// How it answers, in two sentences.
    pub(super) method: &'static str,
    /// Where the definition comes from.
    pub(super) source: Option<&'static str>,
}

/// In this order experiments stand in the report; others follow by name.
pub(super) const ORDER: [&str; 12] = [
    "simulate",
    "replay",
    "micro",
    "ratio",
    "workload",
    "persist",
    "loop",
    "sequence",
    "search",
    "crossover",
    "stampede",
    "torture",
];

const TURNS: &str = "Within each block all subjects take turns in random order, each in a process of its \
    own, and every key's value is compared before and after the timed part. A difference is the trimmed \
    mean of the ratios within blocks; it counts if p < 0.01 and it exceeds 1 %.";

/// What is known about an experiment; of one that is not known, just how anything is measured.
pub(super) fn about(experiment: &str) -> About {
    let about = |title, question, method, source| About { title, question, method, source };
    match experiment {
        "simulate" => about(
            "Which policy, at which size?",
            "What part of a trace's reads would miss, by eviction policy and size of the cache?",
            "The simulator replays each trace through the policies of the engine and counts every hit \
             and miss. The counts are exact; only a curve from a sample of the keys has an error.",
            Some("document 004, simulations"),
        ),
        "replay" => about(
            "Hit ratios of real caches",
            "How much of what real and made-up traces ask for do caches find?",
            "Each cache gets the requests of a trace one after the other, and stores what it missed. The \
             capacity is a part of the bytes of all different keys of the trace.",
            None,
        ),
        "micro" => {
            about("Single operations", "What does a hit, a miss or a write cost?", TURNS, None)
        }
        "ratio" => about(
            "Sets and reads in proportion",
            "How many operations does a second of the client's processor buy, by the ratio of sets to \
             reads and by the size of the values?",
            "One iteration is one set and then N reads over 2,000 keys of 36 characters, as in the \
             source, whose rates count the client's processor time alone. The time of a server comes on \
             top and stands beside it.",
            Some("document 002, Perl cache modules"),
        ),
        "workload" => about(
            "A database client's cache",
            "What do filling, refilling, mixing and reading 145,480 entries cost, and does the policy \
             keep what is used?",
            "Values of 1,024 bytes under a limit of 100,000,000 bytes, set and read as the source does \
             it; times are divided by its operations. After the others, `proof` sets every key and then \
             reads the first group: the policy decides whether it is still there.",
            Some("document 004, local client tests"),
        ),
        "persist" => about(
            "Writing to disk and opening again",
            "How long does it take to write 650,987 entries to disk, and from opening them in a new process \
             until the first hit and the last?",
            "Each cache is filled and used, writes what it has, and is opened by a new process that reads \
             everything. `copy` writes and reads the same bytes and does nothing else: it is the floor.",
            Some("document 004, persistence tests"),
        ),
        "loop" => about(
            "The cost of a call",
            "What does a cached call cost beside the call alone, by the size of its value?",
            "A call that computes nothing is repeated without a cache, with one that is cleared each time, \
             with one that stores nothing, and with one that hits. Values have 50 to 524,288 bytes.",
            Some("document 000"),
        ),
        "sequence" => about(
            "A sequence of calls",
            "What do calls with 101 different keys cost, by the size of their values?",
            "The calls go round the keys: without storing, storing for the first time, and hitting. Values \
             have 50 to 524,288 bytes.",
            Some("document 000"),
        ),
        "search" => about(
            "Looking for what is not there",
            "What does a lookup cost that finds nothing, by the number of entries and by how full the cache \
             is?",
            TURNS,
            Some("document 000, tests that it wanted"),
        ),
        "crossover" => about(
            "From which size on does it matter?",
            "From which size of an entry on is one store clearly slower than another?",
            "Hits are timed at more and more sizes around the place where the verdict changes. A size \
             counts as slower if p < 0.01 and the difference exceeds 1 %.",
            Some("document 000, tests that it wanted"),
        ),
        "stampede" => about(
            "One expired key, many processes",
            "When several processes ask for one expired key at once, how often is it computed?",
            "In each round all processes are let go at the same moment and ask for the same key, which has \
             expired. Computations are counted; one for each round is the best there can be.",
            None,
        ),
        "torture" => about(
            "Killed and stopped processes",
            "Is anything lost or wrong when processes that share a cache are killed or stopped?",
            "Writers are killed at random instants while readers compare every value with what was \
             acknowledged. A control run kills nobody: what it loses as well is not the kills' doing.",
            None,
        ),
        _ => about(
            "Another experiment",
            "This report knows no question for this experiment; the table has what was measured.",
            TURNS,
            None,
        ),
    }
}
