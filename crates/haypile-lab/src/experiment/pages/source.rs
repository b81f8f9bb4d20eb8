//! Improvements that Tp4m printed, in per cent of load time.

/// The devices in the first table of the Tp4m page-load measurements; the last one had a disk cache
/// of 1 GB, the others of 100 MB.
pub(super) const DEVICES: [&str; 5] =
    ["Galaxy Tab", "Galaxy S", "Sensation", "Desktop", "Desktop (1G)"];

/// The load time that a disk cache saves compared with no cache in the Tp4m page-load measurements,
/// by device. The source takes the first number for an error of its own.
pub(super) const DISK_ONLY: [&str; 5] = ["94 %*", "8 %", "16 %", "39 %", "45 %"];

/// The load time that memory and disk cache save compared with the memory cache alone in the Tp4m
/// page-load measurements, by device.
pub(super) const BOTH: [&str; 5] = ["14 %", "15 %", "13 %", "11 %", "-6 %"];

/// Devices in the second round of the Tp4m page-load measurements, in which the memory cache was
/// off.
pub(super) const ROUND_2_DEVICES: [&str; 3] = ["Galaxy Tab", "Galaxy S", "Sensation"];

/// The disk cache sizes of the second round of the Tp4m page-load measurements, in bytes, each with the
/// share of load time that it saved on each of the three devices.
pub(super) const ROUND_2: [(u64, [&str; 3]); 2] =
    [(6_000_000, ["32 %", "63 %", "40 %"]), (10_000_000, ["34 %", "57 %", "45 %"])];
