//! `haypile check`

use std::process::ExitCode;

use haypile::file;
use serde_json::json;

use crate::args::file::Check;
use crate::output::progress::Progress;
use crate::{NEGATIVE, output};

/// Executes `haypile check`: verifies every entry of a cache file.
pub(crate) fn run(arguments: &Check) -> anyhow::Result<ExitCode> {
    let progress = Progress::towards(1000, "checking".to_owned());
    let mut shown = 0;
    let check = file::FileCheck::of(&arguments.file.path, |done| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "up to 1000")]
        let steps = (done * 1000.0) as u64;
        progress.advance(steps.saturating_sub(shown));
        shown = steps;
    });
    progress.finish();
    let check = check?;
    if arguments.json {
        let found = json!({
            "entries": check.entries,
            "damaged": check.damaged,
            "damages": check.damages,
            "exposed_to_uid": check.exposed_to,
        });
        output::json(&found)?;
    } else {
        let exposed = check.exposed_to.map(super::stat::exposed).unwrap_or_default();
        let (whole, damaged) = (check.entries, check.damaged);
        let mut text = format!("{exposed}{whole} entries are intact, {damaged} are damaged\n");
        for damage in &check.damages {
            text = text + "  " + damage + "\n";
        }
        output::text(&text)?;
    }
    Ok(if check.damaged == 0 { ExitCode::SUCCESS } else { ExitCode::from(NEGATIVE) })
}
