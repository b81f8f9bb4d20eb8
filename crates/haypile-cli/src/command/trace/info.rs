//! `haypile trace info`

use std::fmt::Write;

use anyhow::bail;
use haypile_number::{Quantity, with_plain_spaces};
use haypile_sim::trace::SampledTrace;
use haypile_sim::trace::format::RecordingSummary;
use haypile_sim::trace::info::{SizeSummary, TraceInfo};

use crate::args::Info;
use crate::output::number::{bytes, grouped, percent};
use crate::output::table::table;
use crate::{input, interrupt, output};

/// Version of the JSON's form. Fields may be added within a version.
const VERSION: u32 = 1;

/// Executes `haypile trace info`: describes a trace.
pub(crate) fn run(arguments: &Info) -> anyhow::Result<()> {
    interrupt::watch()?;
    let (trace, known) =
        input::open_with_origin(&arguments.traces, &arguments.reading, input::Wanted::default())?;
    let recording = known.recording;
    let sample = trace.sampled().map(|part| SampleOf { part, of_requests: trace.whole_requests() });
    let windows = arguments.windows.get();
    let Some(info) = interrupt::unless_asked(move || TraceInfo::of(&trace, windows)) else {
        bail!("interrupted while the trace was analysed; nothing was printed");
    };
    if arguments.json {
        return output::json(&InfoDocument { version: VERSION, info: &info, recording, sample });
    }
    if let Some(recording) = &recording {
        output::text(&origin(recording))?;
    }
    if let Some(SampleOf { part, of_requests }) = &sample {
        output::text(&format!(
            "A sample of {} requests, described as it is: {part}\n",
            grouped(*of_requests)
        ))?;
    }
    output::text(&describe(&info)?)?;
    Ok(())
}

/// The part of a whole trace that is described.
#[derive(serde::Serialize)]
struct SampleOf {
    #[serde(flatten)]
    part: SampledTrace,
    of_requests: u64,
}

/// JSON of the command: the description of the trace, and of its recording.
#[derive(serde::Serialize)]
struct InfoDocument<'a> {
    version: u32,
    #[serde(flatten)]
    info: &'a TraceInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    recording: Option<RecordingSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<SampleOf>,
}

/// Returns a line about the recorded cache. It has more operations than the trace has requests,
/// because a write after a miss is not a request.
fn origin(recording: &RecordingSummary) -> String {
    let RecordingSummary { files, operations, hits, misses, full, unfinished, .. } = *recording;
    let mut text = format!(
        "Recorded            {} operations, {} of reads hit; {} {}",
        grouped(operations),
        percent(haypile_number::ratio(hits, hits + misses)),
        grouped(files),
        if files == 1 { "file" } else { "files" },
    );
    for (count, what) in [(full, "at record_max"), (unfinished, "without an end")] {
        if count > 0 {
            text = format!("{text}, {} {what}", grouped(count));
        }
    }
    if recording.hashed_keys {
        text.push_str("; keys hashed");
    }
    text.push('\n');
    text
}

fn describe(info: &TraceInfo) -> anyhow::Result<String> {
    let mut text = String::new();
    write!(text, "Requests            {}", grouped(info.requests))?;
    if info.writes + info.deletes > 0 {
        write!(
            text,
            " ({} reads, {} writes, {} deletions)",
            grouped(info.reads),
            grouped(info.writes),
            grouped(info.deletes)
        )?;
    }
    writeln!(text, "\nDistinct keys       {}", grouped(info.keys))?;
    writeln!(
        text,
        "One-hit wonders     {} ({} of keys, {} of requests)",
        grouped(info.one_hits.keys),
        percent(info.one_hits.share_of_keys),
        percent(info.one_hits.share_of_requests)
    )?;
    if let Some(sizes) = &info.sizes {
        writeln!(text, "Bytes requested     {}", bytes(sizes.requested_bytes))?;
        writeln!(text, "Bytes, keys once    {}", bytes(sizes.distinct_bytes))?;
        if let Some(summary) = &sizes.by_request {
            writeln!(text, "Sizes by request    {}", summarize(summary))?;
        }
        if let Some(summary) = &sizes.by_key {
            writeln!(text, "Sizes by key        {}", summarize(summary))?;
        }
        writeln!(text, "Keys changing size  {}", grouped(sizes.keys_that_change))?;
    }
    write!(
        text,
        "Skew                1 % of keys get {} of requests, 10 % get {}",
        percent(info.skew.top_1_percent),
        percent(info.skew.top_10_percent)
    )?;
    if let Some(zipf) = &info.skew.zipf {
        write!(text, "; Zipf {:.2} (R² {:.2})", zipf.exponent, zipf.r_squared)?;
    }
    writeln!(text)?;
    if let Some(time) = &info.time {
        let seconds = time.duration_us as f64 / 1e6;
        write!(text, "Duration            {seconds:.1} s")?;
        if let Some(rate) = time.requests_per_second {
            write!(text, ", {rate:.1} requests per second")?;
        }
        writeln!(text)?;
    }
    if let Some(costs) = &info.costs {
        let time = |ns| with_plain_spaces(&Quantity::Time.write(ns));
        writeln!(
            text,
            "Cost of misses      {} without a cache, mean {}, max {}; {} reads without one",
            time(costs.total_ns as f64),
            time(costs.mean_ns),
            time(costs.max_ns as f64),
            grouped(costs.free_reads)
        )?;
    }
    write!(text, "\n{}", reuse(info))?;
    write!(text, "\n{}", working_set(info))?;
    Ok(text)
}

fn summarize(summary: &SizeSummary) -> String {
    let size = |size: u32| bytes(u64::from(size));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a mean of sizes for people"
    )]
    let mean = bytes(summary.mean_bytes as u64);
    format!(
        "min {}, median {}, mean {mean}, p90 {}, p99 {}, max {}",
        size(summary.min_bytes),
        size(summary.median_bytes),
        size(summary.p90_bytes),
        size(summary.p99_bytes),
        size(summary.max_bytes)
    )
}

fn reuse(info: &TraceInfo) -> String {
    let reuse = &info.reuse;
    let mut before = 0;
    let rows = reuse.histogram.iter().map(|class| {
        before += class.requests;
        let share = before as f64 / info.requests as f64;
        vec![
            if class.from == class.to {
                grouped(class.from)
            } else {
                format!("{} to {}", grouped(class.from), grouped(class.to))
            },
            grouped(class.requests),
            percent(share),
        ]
    });
    let header = ["Other keys since", "Requests", "Up to here"].map(str::to_owned).to_vec();
    let median = reuse.median.map_or_else(String::new, |median| {
        format!("Median reuse distance {} keys; ", grouped(median))
    });
    format!(
        "{median}{} requests are the first for their key.\n{}",
        grouped(reuse.first_requests),
        table(&header, 1, 1, &rows.collect::<Vec<_>>())
    )
}

fn working_set(info: &TraceInfo) -> String {
    let rows = info.working_set.iter().map(|window| {
        vec![
            grouped(window.first_request),
            grouped(window.requests),
            grouped(window.keys),
            grouped(window.new_keys),
            window.bytes.map_or_else(String::new, bytes),
        ]
    });
    let header = ["Working set from request", "Requests", "Keys", "New keys", "Bytes"];
    table(&header.map(str::to_owned), 1, 1, &rows.collect::<Vec<_>>())
}
