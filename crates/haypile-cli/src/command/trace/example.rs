//! `haypile trace example`

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, bail};

use crate::args::Example;
use crate::output;

/// The trace of the help texts' examples, so that a user without a checkout can run them.
const TRACE: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/redis-build.csv.zst"));

/// Its path in these examples.
const PATH: &str = "traces/redis-build.csv.zst";

/// Executes `haypile trace example`: writes the example trace. A file that exists already is not
/// replaced.
pub(crate) fn run(arguments: &Example) -> anyhow::Result<()> {
    let path = arguments.output.as_deref().unwrap_or(Path::new(PATH));
    if path == Path::new("-") {
        io::stdout().lock().write_all(TRACE)?;
        return Ok(());
    }
    let name = path.display();
    match fs::read(path) {
        Ok(there) if there == TRACE => {}
        Ok(_) => {
            bail!("{name} exists and is not the example trace; name another file with --output")
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if let (None, Some(folder)) = (&arguments.output, path.parent()) {
                fs::create_dir_all(folder)
                    .with_context(|| format!("cannot make {}", folder.display()))?;
            }
            output::target::check(path)?;
            output::target::replace(path, TRACE)?;
        }
        Err(error) => return Err(error).with_context(|| name.to_string()),
    }
    output::text(&format!(
        "{name}: every file that a build of Redis opened, 40,053 requests. Next:\n  haypile \
         advise {name} --budget 2MiB\n"
    ))?;
    Ok(())
}
