//! The formats of traces, and their readers.
//!
//! [`read`] reads files, or standard input, into a [`Sink`](super::Sink). Each format has a file
//! of its own here, which says what its lines or records are.

mod address;
mod arc;
mod bad;
mod blocks;
mod csv;
mod dataset;
mod entries;
mod entry;
mod field;
mod integers;
mod lcs;
mod lirs;
mod memcached_watch;
mod merge;
mod operation;
mod options;
mod oracle_general;
mod read;
mod recognise;
mod recording;
mod redis_monitor;
mod spc;
mod vscsi;
mod web;

use std::fmt;
use std::str::FromStr;

use super::TraceError;

pub use bad::{BadPlace, BadRecord};
pub use blocks::BlockSize;
pub use dataset::DataSet;
pub use entry::MAX_RUN;
pub use options::{CsvColumn, CsvOptions, Delimiter, ReadOptions, SpcAs, TimeUnit};
pub use read::{ReadReport, TraceReader, read};
pub use recording::{RecordingSummary, group as group_recordings};
pub use web::Statuses;

/// A file format of traces that can be read, such as CSV, `.hpt` or a log of a web server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Storage Performance Council, as the `UMass` repository has it.
    Spc,
    /// The `.lis` files of the ARC paper.
    Arc,
    /// One key per line, as the LIRS papers have it.
    Lirs,
    /// Separated columns.
    Csv,
    /// Little-endian 32-bit integers.
    U32Le,
    /// Big-endian 32-bit integers.
    I32Be,
    /// Little-endian 64-bit integers.
    U64Le,
    /// libCacheSim's oracleGeneral.
    OracleGeneral,
    /// libCacheSim's `.lcs`.
    Lcs,
    /// `VMware` vSCSI, versions 1 and 2.
    Vscsi,
    /// Loads and stores of memory addresses.
    Address,
    /// Web server access logs, common and combined.
    AccessLog,
    /// Access logs with a JSON object in each line.
    JsonLog,
    /// Access logs whose `#Fields:` names their columns.
    W3c,
    /// Squid's access log.
    Squid,
    /// Logs of Amazon's load balancers.
    Elb,
    /// Access logs of Amazon S3.
    S3Log,
    /// `HAProxy`'s log of HTTP requests.
    Haproxy,
    /// Output of `redis-cli monitor`.
    RedisMonitor,
    /// Lines that memcached sends to watchers.
    MemcachedWatch,
    /// Haypile's own columnar form.
    Hpt,
    /// Recording of a cache with `record=`.
    Recording,
    /// A public data set.
    DataSet(DataSet),
}

const ALL: [Format; 31] = [
    Format::Spc,
    Format::Arc,
    Format::Lirs,
    Format::Csv,
    Format::U32Le,
    Format::I32Be,
    Format::U64Le,
    Format::OracleGeneral,
    Format::Lcs,
    Format::Vscsi,
    Format::Address,
    Format::AccessLog,
    Format::JsonLog,
    Format::W3c,
    Format::Squid,
    Format::Elb,
    Format::S3Log,
    Format::Haproxy,
    Format::RedisMonitor,
    Format::MemcachedWatch,
    Format::Hpt,
    Format::Recording,
    Format::DataSet(DataSet::Twitter),
    Format::DataSet(DataSet::MetaKv),
    Format::DataSet(DataSet::MetaCdn),
    Format::DataSet(DataSet::Wiki),
    Format::DataSet(DataSet::TencentPhoto),
    Format::DataSet(DataSet::IbmCos),
    Format::DataSet(DataSet::Msr),
    Format::DataSet(DataSet::Alibaba),
    Format::DataSet(DataSet::TencentBlock),
];

impl Format {
    /// Returns all formats of traces, in the order in which help texts list them.
    pub fn all() -> &'static [Self] {
        &ALL
    }

    /// Returns the format's name on the command line (`--format`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Spc => "spc",
            Self::Arc => "arc",
            Self::Lirs => "lirs",
            Self::Csv => "csv",
            Self::U32Le => "u32le",
            Self::I32Be => "i32be",
            Self::U64Le => "u64le",
            Self::OracleGeneral => "oracle-general",
            Self::Lcs => "lcs",
            Self::Vscsi => "vscsi",
            Self::Address => "address",
            Self::AccessLog => "access-log",
            Self::JsonLog => "json-log",
            Self::W3c => "w3c",
            Self::Squid => "squid",
            Self::Elb => "elb",
            Self::S3Log => "s3-log",
            Self::Haproxy => "haproxy",
            Self::RedisMonitor => "redis-monitor",
            Self::MemcachedWatch => "memcached-watch",
            Self::Hpt => "hpt",
            Self::Recording => "recording",
            Self::DataSet(set) => set.name(),
        }
    }

    /// Whether the format is a log of a web server, a proxy or a content delivery network, whose lines state the bytes
    /// sent.
    pub fn is_web_log(self) -> bool {
        web::FORMATS.contains(&self)
    }

    /// Returns a description of the format in one line, for help texts.
    pub fn description(self) -> &'static str {
        match self {
            Self::Spc => "SPC block traces: ASU,LBA,size,opcode,seconds (UMass Financial1.spc)",
            Self::Arc => "ARC .lis: start, count, ignored, request number",
            Self::Lirs => "LIRS text: one key per line, `*` lines are break points",
            Self::Csv => "columns with a header, or by number: key and, if known, size, op, time",
            Self::U32Le => "keys as little-endian 32-bit integers, no header",
            Self::I32Be => "keys as big-endian 32-bit integers, no header",
            Self::U64Le => "keys as little-endian 64-bit integers, no header",
            Self::OracleGeneral => {
                "libCacheSim oracleGeneral: u32 time, u64 key, u32 size, i64 next"
            }
            Self::Lcs => "libCacheSim's .lcs, versions 1 to 8",
            Self::Vscsi => "VMware vSCSI block traces, versions 1 and 2",
            Self::Address => "memory addresses: `l` or `s` (or `r`, `w`), then the address",
            Self::AccessLog => "web server access logs, common and combined: key = URL",
            Self::JsonLog => "JSON in each line: nginx, Caddy, Traefik, Cloudflare, or --columns",
            Self::W3c => "logs with a line `#Fields:`: W3C, IIS, CloudFront",
            Self::Squid => "Squid's own access log: key = URL",
            Self::Elb => "Amazon's load balancers, ELB and ALB: key = URL",
            Self::S3Log => "access logs of Amazon S3: key = bucket and key",
            Self::Haproxy => "HAProxy's log of HTTP requests: key = URL",
            Self::RedisMonitor => "output of redis-cli monitor: sizes are those of writes",
            Self::MemcachedWatch => "lines of memcached's `watch fetchers mutations`",
            Self::Hpt => "Haypile's prepared trace, made by `haypile trace convert`",
            Self::Recording => "what a cache with record=PATH wrote, one file per process",
            Self::DataSet(set) => set.description(),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = TraceError;

    fn from_str(name: &str) -> Result<Self, TraceError> {
        ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            options::unknown_name("trace format", name, ALL.into_iter().map(Self::name))
        })
    }
}
