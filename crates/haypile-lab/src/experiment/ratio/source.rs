//! Results that the Perl cache benchmark printed, to compare ours with.

use super::{Ratio, Size};

/// The caches of the Perl cache benchmark: our name for each, and the benchmark's own.
pub const SUBJECTS: [(&str, &str); 8] = [
    ("chi-memcached-ip", "CHI:Mc:lIP"),
    ("chi-memcached-socket", "CHI:Mc:l"),
    ("chi-l1", "CHI:L1"),
    ("chi-fastmmap", "CHI:FMmap"),
    ("chi-memory", "CHI:Mem"),
    ("libmemcached-ip", "C:Mc:lIP"),
    ("libmemcached-socket", "C:Mc:l"),
    ("fastmmap", "C:FMmap"),
];

/// Returns the name that the Perl cache benchmark has for one of our caches; `None` if it does not
/// have that cache.
pub fn abbreviation(subject: &str) -> Option<&'static str> {
    SUBJECTS.iter().find(|(name, _)| *name == subject).map(|(_, abbreviation)| *abbreviation)
}

/// A table of the Perl cache benchmark: operations per second of client processor time, for each of
/// its caches.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SourceTable {
    /// The case of the Perl cache benchmark that the table is about: gets for each set, and size of
    /// values.
    pub ratio: Ratio,
    /// Operations per second of the caches, in the order of [`SUBJECTS`].
    pub rates: [f64; 8],
}

/// Returns the six published tables of the Perl cache benchmark in its order: Dell D830, perl
/// 5.10.1, January 2010.
pub fn source_tables() -> [SourceTable; 6] {
    let table = |gets, size, rates| SourceTable { ratio: Ratio { gets, size }, rates };
    [
        table(
            10,
            Size::Small,
            [5_107.0, 5_219.0, 6_669.0, 6_920.0, 8_885.0, 8_986.0, 10_087.0, 11_498.0],
        ),
        table(
            10,
            Size::Medium,
            [4_628.0, 5_140.0, 6_639.0, 6_643.0, 8_661.0, 8_615.0, 10_188.0, 11_201.0],
        ),
        table(
            10,
            Size::Large,
            [4_139.0, 4_380.0, 5_777.0, 5_731.0, 7_501.0, 7_779.0, 9_484.0, 10_230.0],
        ),
        table(
            1,
            Size::Medium,
            [3_806.0, 4_155.0, 2_192.0, 4_781.0, 3_787.0, 8_043.0, 10_441.0, 5_368.0],
        ),
        table(
            10,
            Size::Medium,
            [4_630.0, 4_953.0, 6_408.0, 6_604.0, 8_493.0, 8_834.0, 10_218.0, 11_298.0],
        ),
        table(
            100,
            Size::Medium,
            [4_626.0, 5_141.0, 8_279.0, 7_004.0, 9_943.0, 8_799.0, 10_525.0, 12_849.0],
        ),
    ]
}
