//! `haypile icons lookup`

use std::fs;
use std::process::ExitCode;

use anyhow::Context;
use haypile_icons::IconRequest;
use serde_json::json;

use crate::args::icons::Lookup;
use crate::output::target;
use crate::{NEGATIVE, output};

/// Executes `haypile icons lookup`: prints the file of an icon, and writes the icon.
pub(crate) fn run(arguments: &Lookup) -> anyhow::Result<ExitCode> {
    if let Some(path) = &arguments.output {
        target::check(path)?;
    }
    let (icons, _) = super::open(&arguments.place, super::CacheNeed::Useful)?;
    let request = IconRequest {
        name: &arguments.name,
        size: arguments.size,
        scale: arguments.scale,
        is_generic: !arguments.exact,
    };
    let Some(icon) = icons.lookup(&request)? else {
        if arguments.json {
            output::json(&json!(null))?;
        }
        return Ok(ExitCode::from(NEGATIVE));
    };
    if let Some(path) = &arguments.output {
        fs::write(path, icon.pixmap().to_png()?).with_context(|| path.display().to_string())?;
    }
    if arguments.json {
        output::json(&json!({
            "path": icon.path(),
            "width_px": icon.width(),
            "height_px": icon.height(),
            "cached": icons.counts().cached > 0,
        }))?;
    } else {
        output::text(&format!("{}\n", icon.path().display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
