//! `haypile stat`

use std::time::{SystemTime, UNIX_EPOCH};

use haypile::compress::Compression;
use haypile::file::{self, FileStat};
use haypile::{ByteSize, Event};
use serde_json::json;

use crate::args::file::Stat;
use crate::output;
use crate::output::number::bytes;

/// The events whose counts are shown.
const EVENTS: [Event; 8] = [
    Event::Hit,
    Event::Miss,
    Event::Set,
    Event::Delete,
    Event::Eviction,
    Event::Expired,
    Event::Corrupt,
    Event::Revoked,
];

const VERIFIED: &str = "each value on every read, until the sweep after a reboot ends";

/// Executes `haypile stat`: prints what a cache file holds and which processes use it.
pub(crate) fn run(arguments: &Stat) -> anyhow::Result<()> {
    let stat = file::FileStat::of(&arguments.file.path)?;
    if arguments.json {
        return output::json(&as_json(&stat));
    }
    output::text(&as_text(&stat, SystemTime::now()))?;
    Ok(())
}

fn as_text(stat: &FileStat, now: SystemTime) -> String {
    let counts = &stat.stats;
    let percent = |part: u64, whole: u64| match whole {
        0 => "-".to_owned(),
        whole => format!("{:.1} %", 100.0 * part as f64 / whole as f64),
    };
    let age = |time: SystemTime| {
        let seconds = now.duration_since(time).unwrap_or_default().as_secs();
        humantime::format_duration(std::time::Duration::from_secs(seconds)).to_string()
    };
    let compression = match stat.compression {
        None => "none".to_owned(),
        Some(Compression::Lz4) => "lz4".to_owned(),
        Some(_) => "zstd".to_owned(),
    };
    let lines = [
        ("size", ByteSize(stat.size_bytes).to_string()),
        ("created", format!("{} ago", age(stat.created))),
        ("entries", stat.entries.to_string()),
        (
            "filled",
            format!(
                "{} of {} ({}); {} of {} segments of {} free",
                bytes(stat.live_bytes),
                bytes(stat.capacity_bytes),
                percent(stat.live_bytes, stat.capacity_bytes),
                stat.free_segments,
                stat.segments,
                ByteSize(stat.segment_bytes)
            ),
        ),
        (
            "index",
            format!(
                "{} of {} slots; {} entries evicted for lack of one",
                percent(stat.entries, stat.slots),
                stat.slots,
                stat.crowded
            ),
        ),
        ("compress", compression),
        ("verified", if stat.is_swept { "no" } else { VERIFIED }.to_owned()),
        ("oldest", stat.oldest.map_or_else(|| "-".to_owned(), |time| format!("{} old", age(time)))),
        (
            "reads",
            match counts.hits + counts.misses {
                0 => "none counted; what reads with mode=ro, as haypile get does, counts nothing"
                    .to_owned(),
                reads => format!(
                    "{} hits, {} misses, hit ratio {}",
                    counts.hits,
                    counts.misses,
                    percent(counts.hits, reads)
                ),
            },
        ),
        (
            "writes",
            format!(
                "{} sets, {} deletes; {} evicted, {} expired, {} kept by the recycler",
                counts.sets, counts.deletes, counts.evictions, counts.expired, stat.reinserted
            ),
        ),
        (
            "deaths",
            format!("{} processes; {} locks taken over from them", stat.deaths, stat.recoveries),
        ),
        ("damaged", format!("{} values found", counts.corrupt)),
        ("processes", format!("{} of at most {}", stat.processes.len(), stat.most_processes)),
    ];
    let mut text = stat.exposed_to.map(exposed).unwrap_or_default();
    text += &lines.map(|(name, value)| format!("{name:10} {value}\n")).concat();
    if counts.revoked > 0 {
        text = format!(
            "{text}revoked    {} values, whose keys may have changed since; of {} that is not known\n",
            counts.revoked, stat.unsure
        );
    }
    for (process, since) in &stat.processes {
        text = format!("{text}{:10} {process}, for {}\n", "", age(*since));
    }
    text
}

/// Returns the warning about a cache file that users other than this one and root can write.
pub(super) fn exposed(owner: u32) -> String {
    format!(
        "exposed    its owner, uid {owner}, or others can write it; do not trust these numbers\n"
    )
}

fn as_json(stat: &FileStat) -> serde_json::Value {
    let ms = |time: SystemTime| {
        u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis())
            .unwrap_or(u64::MAX)
    };
    let process =
        |(process, since): &(u64, SystemTime)| json!({"id": process, "since_ms": ms(*since)});
    let mut json = json!({
        "size_bytes": stat.size_bytes,
        "capacity_bytes": stat.capacity_bytes,
        "live_bytes": stat.live_bytes,
        "entries": stat.entries,
        "slots": stat.slots,
        "segments": stat.segments,
        "segment_bytes": stat.segment_bytes,
        "free_segments": stat.free_segments,
        "created_ms": ms(stat.created),
        "oldest_ms": stat.oldest.map(ms),
        "processes": stat.processes.iter().map(process).collect::<Vec<_>>(),
        "most_processes": stat.most_processes,
        "hit_ratio": stat.stats.hit_ratio(),
        "crowded": stat.crowded,
        "unsure": stat.unsure,
        "reinserted": stat.reinserted,
        "is_swept": stat.is_swept,
        "compression": stat.compression.map(|compression| compression.to_string()),
        "exposed_to_uid": stat.exposed_to,
        "deaths": stat.deaths,
        "recoveries": stat.recoveries,
    });
    for event in EVENTS {
        json[event.name()] = stat.stats[event].into();
    }
    json
}
