//! The name of the policy that the file store has.
//!
//! It is not a [`Policy`](super::Policy), which names one entry at a time: a file evicts a segment as a
//! whole, by [`rules::file`](crate::rules::file). The simulator has a driver of its own for them.

use super::{Param, PolicyKind};

/// The description of the policy `segment`, the file store's own: its name, papers and parameters.
pub const KIND: PolicyKind = PolicyKind {
    name: "segment",
    summary: "the file store's (simulator only): S3-FIFO on segments that are recycled as a whole",
    paper: "after Yang et al., SOSP 2023, and Yang, Yue and Rashmi, Segcache: a memory-efficient \
            and scalable in-memory key-value cache for small objects, NSDI 2021",
    params: &[
        Param {
            name: "segments",
            default: 256.0,
            min: 4.0,
            max: 8192.0,
            whole: true,
            help: "segments of the file, at least",
        },
        Param {
            name: "small",
            default: 10.0,
            min: 0.0,
            max: 100.0,
            whole: false,
            help: "share of the segments up to which the small queue is spared, in per cent",
        },
        Param {
            name: "threshold",
            default: 1.0,
            min: 1.0,
            max: 3.0,
            whole: true,
            help: "hits in the small queue that earn a place in the main queue",
        },
        Param {
            name: "keep",
            default: 75.0,
            min: 0.0,
            max: 100.0,
            whole: false,
            help: "share of a segment that is kept at most when it is recycled, in per cent",
        },
        Param {
            name: "ghost",
            default: 90.0,
            min: 0.0,
            max: 1000.0,
            whole: false,
            help: "weight of the entries remembered after they left the small queue, in per cent \
                   of the capacity",
        },
    ],
};
