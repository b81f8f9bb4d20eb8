//! Advice on the smallest disk cache that is about as good as the best.

use crate::experiment::on_pages::improvement::{ColumnName, LinkLoads, View};

/// By how much a smaller cache may take longer.
const MARGIN: f64 = 0.02;

/// The advised size of the disk cache on one storage medium: the smallest whose load time is within
/// 2 % of the shortest.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Advice {
    pub(super) medium: String,
    /// The smallest disk cache whose mean load time is at most 2 % above the shortest one.
    pub(super) smallest: ColumnName,
    /// The disk cache with the shortest mean load time on this storage medium.
    pub(super) best: ColumnName,
    /// The share by which page loads with the smallest advised cache take longer than with the
    /// fastest: 0.01 is 1 %.
    pub(super) slower: f64,
}

/// Returns, for each storage medium, the smallest disk cache whose mean page load time is at most 2
/// % above that of the fastest one.
pub(super) fn advice(link: &LinkLoads, counted: Option<&LinkLoads>) -> Vec<Advice> {
    let names = counted.unwrap_or(link).columns.iter().map(|(name, _)| name);
    let disks: Vec<&ColumnName> = names.filter(|name| name.kind == "disk").collect();
    let mut media: Vec<&str> = disks.iter().map(|name| name.medium.as_str()).collect();
    media.dedup();
    let time = |name: &ColumnName| {
        let (loads, _) = link.or_equal(name, counted)?;
        loads.mean_ns(View::All).filter(|_| loads.error.is_none())
    };
    let of_medium = |medium: &str| {
        let own = disks.iter().copied().filter(|name| name.medium == medium);
        let mut timed: Vec<(&ColumnName, f64)> =
            own.filter_map(|name| Some((name, time(name)?))).collect();
        timed.sort_by_key(|(name, _)| name.disk_bytes);
        // Of equally fast ones the smaller.
        let best = timed.iter().min_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let smallest = timed.iter().find(|(_, ms)| *ms <= best.1 * (1.0 + MARGIN))?;
        Some(Advice {
            medium: medium.to_owned(),
            smallest: smallest.0.clone(),
            best: best.0.clone(),
            slower: smallest.1 / best.1 - 1.0,
        })
    };
    media.into_iter().filter_map(of_medium).collect()
}
