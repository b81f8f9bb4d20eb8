//! The figures of the source: RelStorage's persistence tests, on its author's machine in 2016.

use haypile_number::Quantity;

use crate::report::table::Table;

/// Versions with seconds of writing and reading. The last one is a quarter of the totals that the source states.
const VERSIONS: [(&str, f64, f64); 4] = [
    ("file format 2, LRU", 2.3, 6.4),
    ("before segmented LRU", 1.7, 2.4),
    ("segmented LRU", 2.5, 2.3),
    ("segmented LRU, last version", 6.087_415_8 / 4.0, 6.509_062_9 / 4.0),
];

/// Returns the table of the times that RelStorage's author measured for writing and reading its
/// cache file.
pub(super) fn table() -> Table {
    let row = |(name, write, read): &(&str, f64, f64)| {
        let time = |seconds: f64| Quantity::Time.write(seconds * 1e9);
        vec![(*name).to_owned(), time(*write), time(*read)]
    };
    let caption = "The source, on its author’s machine in 2016: 525 MB of 650,987 entries; 655,000 of format 2";
    let names = ["RelStorage, Python 3.4", "Write", "Read"];
    Table::of_numbers(caption.to_owned(), &names, VERSIONS.iter().map(row).collect())
}
