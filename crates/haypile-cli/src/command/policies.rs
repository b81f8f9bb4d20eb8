//! `haypile policies`

use std::fmt::Write;

use haypile::policy::PolicySpec;
use serde_json::json;

use crate::args::Policies;
use crate::output;

/// The optimum is no policy of the engine, so that the engine does not list it.
const BELADY: &str = "\
belady
  the offline optimum (simulator only); evicts what is asked for again last
  Belady, A study of replacement algorithms for a virtual-storage computer, 1966
    decline=0    1: a newcomer that would be evicted next may be left out (0 to 1)
";

/// Lists the policies.
pub(crate) fn run(arguments: &Policies) -> anyhow::Result<()> {
    if arguments.json {
        let kinds = PolicySpec::kinds().iter().map(|kind| {
            let params = kind.params.iter().map(|param| {
                json!({
                    "name": param.name,
                    "default": param.default,
                    "min": param.min,
                    "max": param.max,
                    "help": param.help,
                })
            });
            json!({
                "name": kind.name,
                "summary": kind.summary,
                "paper": kind.paper,
                "params": params.collect::<Vec<_>>(),
            })
        });
        return output::json(&kinds.collect::<Vec<_>>());
    }
    let mut text = String::new();
    for kind in PolicySpec::kinds() {
        writeln!(text, "{}\n  {}\n  {}", kind.name, kind.summary, kind.paper)?;
        for param in kind.params {
            let setting = format!("{}={}", param.name, param.default);
            writeln!(text, "    {setting:12} {} ({} to {})", param.help, param.min, param.max)?;
        }
        writeln!(text)?;
    }
    text.push_str(BELADY);
    output::text(&text)?;
    Ok(())
}
