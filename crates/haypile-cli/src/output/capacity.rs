//! Capacities in people's notation.

use haypile::ByteSize;
use haypile_sim::simulate::Accounting;

use crate::output::number::grouped;

/// Most digits, without trailing zeros, of a size that counts as round in decimal.
const ROUND_DIGITS: usize = 3;

/// Units of sizes that are round in decimal.
const DECIMAL: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB")];

/// Returns a cache size in the unit that the user probably wrote: 22400KB, though it is 21875KiB as
/// well.
pub(crate) fn capacity(accounting: Accounting, of: u64) -> String {
    if accounting == Accounting::Objects {
        return grouped(of);
    }
    let is_round = of.to_string().trim_end_matches('0').len() <= ROUND_DIGITS;
    let unit = DECIMAL.iter().find(|(unit, _)| of.is_multiple_of(*unit));
    match unit {
        Some((unit, name)) if is_round => format!("{}{name}", of / unit),
        _ if of.is_multiple_of(1000) || of.is_multiple_of(1024) => ByteSize(of).to_string(),
        _ => grouped(of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_as_they_were_written() {
        for text in ["100MB", "1GB", "22400KB", "64MiB", "3KiB", "1000KiB", "1MiB", "512KB"] {
            let ByteSize(bytes) = text.parse().unwrap();
            assert_eq!(capacity(Accounting::Bytes, bytes), text);
        }
    }

    #[test]
    fn other_numbers_are_in_groups() {
        assert_eq!(capacity(Accounting::Bytes, 1_234_567), "1,234,567");
        assert_eq!(capacity(Accounting::Bytes, 10), "10");
        assert_eq!(capacity(Accounting::Objects, 1_000_000), "1,000,000");
        assert_eq!(capacity(Accounting::Engine, u64::MAX), "18,446,744,073,709,551,615");
    }
}
