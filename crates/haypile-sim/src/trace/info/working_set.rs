//! Working set over time.

use std::ops::Range;

use serde::Serialize;

use crate::trace::Trace;

/// A part (window) of the trace with its working set: the distinct keys that it requests, and the bytes of their
/// values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Window {
    /// The number in the trace of the first request in this part, from 0.
    pub first_request: u64,
    /// The number of requests in this part of the trace.
    pub requests: u64,
    /// The number of distinct keys in this part of the trace.
    pub keys: u64,
    /// The total size in bytes of the values of the distinct keys in this part of the trace, each with its first size
    /// there; `None` if the trace has no sizes.
    pub bytes: Option<u64>,
    /// The number of distinct keys in this part of the trace that were not in an earlier part.
    pub new_keys: u64,
}

/// Divides a trace into `windows` parts whose lengths differ by one request at most, and returns the distinct keys and
/// their bytes in each.
pub(super) fn windows(trace: &Trace, windows: usize) -> Vec<Window> {
    let requests = trace.requests();
    let mut first = 0;
    let ends = (1..=windows.min(requests)).rev().map(move |left| {
        first += (requests - first).div_ceil(left);
        first
    });
    windows_to(trace, ends)
}

/// Divides a trace into parts that end before the requests with the ascending numbers `ends`, and returns the distinct
/// keys and their bytes in each.
pub(crate) fn windows_to(trace: &Trace, ends: impl IntoIterator<Item = usize>) -> Vec<Window> {
    // By id, the number of requests at the end of the last window the key was in: no two windows
    // with requests end alike, and none ends at 0.
    let mut seen = vec![0_u32; trace.keys() as usize];
    let mut first = 0;
    let mut to = |end| window(trace, std::mem::replace(&mut first, end)..end, &mut seen);
    ends.into_iter().map(&mut to).collect()
}

fn window(trace: &Trace, range: Range<usize>, seen: &mut [u32]) -> Window {
    let mut window = Window {
        first_request: range.start as u64,
        requests: range.len() as u64,
        keys: 0,
        bytes: trace.sizes().map(|_| 0),
        new_keys: 0,
    };
    let end = u32::try_from(range.end).expect("a trace has fewer than 2^32 requests");
    for n in range {
        let before = std::mem::replace(&mut seen[trace.ids()[n].get() as usize], end);
        if before == end {
            continue;
        }
        window.keys += 1;
        window.new_keys += u64::from(before == 0);
        if let (Some(bytes), Some(sizes)) = (&mut window.bytes, trace.sizes()) {
            *bytes += u64::from(sizes[n].get());
        }
    }
    window
}
