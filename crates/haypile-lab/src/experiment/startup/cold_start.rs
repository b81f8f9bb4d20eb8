//! The verdict on cold starts: the part of the files in use that was in memory, and the folders that cannot be dropped.

use haypile_measure::statistics::MedianInterval;
use haypile_number::{NBSP, Quantity};

use super::condition::Condition;
use super::difference::StartCase;
use super::explain;
use super::figures::{CPU, READY};
use super::tables::range;
use crate::report::table::{NOTHING, Table};

/// Reading is called cold if less than this part was in memory.
const COLD: f64 = 0.05;
/// Folders decide from this difference between conditions on, in calls that ask for names and status.
const FOLDER_CALLS: u64 = 200;

/// The parameter of cases of which only files were dropped.
const FILES_ONLY: &str = "cold";

/// A verdict on whether measured starts of a program were really cold (its files not in memory).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ColdVerdict {
    /// The largest part of the files that the program uses that was in memory before a cold start,
    /// from 0 to 1.
    pub(super) resident: f64,
    /// Whether directories, names and inodes were dropped from memory too before each cold start,
    /// as only root can.
    pub(super) drops_folders: bool,
    /// Numbers of system calls that list folders or read the status of files, without the cache and
    /// with it; `None` if they are too few to matter for the verdict.
    pub(super) folder_calls: Option<[u64; 2]>,
}

impl ColdVerdict {
    /// Returns the verdict on whether the cold starts of a program were really cold; `None` if the
    /// case has warm starts.
    pub(super) fn of(case: &StartCase<'_>) -> Option<Self> {
        let resident = case.resident_share()?;
        let folder_calls = explain::sum_of(case, &["getdents", "stat"])
            .filter(|[other, with]| other.abs_diff(*with) >= FOLDER_CALLS);
        let drops_folders = case.page_cache != FILES_ONLY;
        Some(Self { resident, drops_folders, folder_calls })
    }

    /// Returns the verdict on whether cold starts were really cold, as JSON results have it: `cold`, `partly resident` or
    /// `folders are warm`.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self { drops_folders: false, folder_calls: Some(_), .. } => "folders are warm",
            Self { resident, .. } if *resident >= COLD => "partly resident",
            _ => "cold",
        }
    }

    /// Returns the verdict on cold starts as a sentence for users.
    pub(super) fn sentence(&self) -> String {
        let percent = format!("{:.1}{NBSP}%", self.resident * 100.0);
        let mapped = "as other processes have them mapped or the file system keeps them";
        let files = if self.resident < COLD {
            format!("At most {percent} of the files that starts use was in memory before a start")
        } else {
            format!(
                "Up to {percent} of the files that starts use was in memory before a start, {mapped}"
            )
        };
        match self.folder_calls.filter(|_| !self.drops_folders) {
            Some([other, with]) => {
                let [other, with] = [other, with].map(|it| Quantity::Number.write(it as f64));
                format!(
                    "Not cold: folders decide here ({other} calls of getdents and stat without the cache, {with} \
                     with it), and their names and inodes stay in memory; --cold=drop, as root, drops them too. {files}."
                )
            }
            None if self.drops_folders => {
                format!("Cold, with folders and inodes dropped as well. {files}.")
            }
            None if self.resident < COLD => {
                format!("Cold files. {files}; folders and inodes stay in memory (--cold=drop).")
            }
            None => {
                format!("Partly cold. {files}; folders and inodes stay in memory (--cold=drop).")
            }
        }
    }
}

/// Returns a table of how much later cold starts of a program are ready than warm ones of the same
/// block, for each condition; `None` unless the case has both.
pub(super) fn table(cold: &StartCase<'_>, warm: &StartCase<'_>) -> Option<Table> {
    let mut rows = Vec::new();
    for condition in [Condition::With, Condition::Fill, Condition::Off] {
        for figure in [&READY, &CPU] {
            let value = |sample: &_| figure.in_sample(sample);
            let pairs = warm.samples(condition).paired(cold.samples(condition), value);
            let later: Vec<f64> = pairs.iter().map(|(warm, cold)| cold - warm).collect();
            let Some(later) = MedianInterval::of(&later) else { continue };
            rows.push(vec![
                format!("{condition}: cold - warm"),
                figure.title.to_owned(),
                figure.quantity.write_signed(later.median),
                later
                    .ends()
                    .map_or_else(|| NOTHING.to_owned(), |ends| range(figure.quantity, ends)),
            ]);
        }
    }
    let interval = format!("95{NBSP}% interval");
    let names = ["Difference", "of", "Median", &interval];
    let caption = format!("{}: what a cold start costs, within blocks", super::tables::title(cold));
    (!rows.is_empty()).then(|| Table::of_numbers(caption, &names, rows).with_text_in(&[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_says_what_stays_in_memory_and_what_drops_it() {
        let of = |resident, drops_folders, folder_calls| ColdVerdict {
            resident,
            drops_folders,
            folder_calls,
        };
        let files = of(0.01, false, None);
        assert_eq!(files.name(), "cold");
        assert!(files.sentence().starts_with("Cold files. At most 1.0"), "{}", files.sentence());
        let mapped = of(0.2, false, None);
        assert_eq!(mapped.name(), "partly resident");
        // Walks over folders are what the cache saves, and they are warm.
        let folders = of(0.0, false, Some([6_000, 500]));
        assert_eq!(folders.name(), "folders are warm");
        let text = folders.sentence();
        assert!(text.starts_with("Not cold") && text.contains("--cold=drop"), "{text}");
        let all = of(0.0, true, Some([6_000, 500]));
        assert_eq!(all.name(), "cold");
        assert!(all.sentence().starts_with("Cold, with folders"), "{}", all.sentence());
    }
}
