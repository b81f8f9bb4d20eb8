//! Working set over time.

use serde::Serialize;

use crate::trace::Trace;

/// A part of the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Window {
    /// The number of its first request, from 0.
    pub first_request: u64,
    /// Its requests.
    pub requests: u64,
    /// Distinct keys in it.
    pub keys: u64,
    /// Their bytes, each key with its first size in the window; `None` if the trace has no sizes.
    pub bytes: Option<u64>,
    /// Those of its keys that were not in an earlier window.
    pub new_keys: u64,
}

/// Divides the trace into windows whose lengths differ by one request at most.
pub(super) fn windows(trace: &Trace, windows: usize) -> Vec<Window> {
    let requests = trace.requests();
    let windows = windows.min(requests);
    // By id, the number of requests at the end of the last window the key was in: no two windows
    // end alike, and none ends at 0.
    let mut seen = vec![0_u32; trace.keys() as usize];
    let mut first = 0;
    let mut result = Vec::with_capacity(windows);
    for left in (1..=windows).rev() {
        let end = first + (requests - first).div_ceil(left);
        result.push(window(trace, first..end, &mut seen));
        first = end;
    }
    result
}

fn window(trace: &Trace, range: std::ops::Range<usize>, seen: &mut [u32]) -> Window {
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
