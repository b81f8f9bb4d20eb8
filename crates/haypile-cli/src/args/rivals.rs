//! The arguments of `haypile rivals`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::lab::seconds;

#[derive(Debug, Subcommand)]
pub(crate) enum RivalsCommand {
    /// List the rivals, whether each runs here, and how to get it
    List(List),
    /// Install rivals or build their runners, by make in the checkout
    Install(Install),
    /// Have rivals do tiny jobs, and verify all that they say
    Check(Check),
}

/// Where rivals are.
#[derive(Debug, Args)]
pub(crate) struct Place {
    #[arg(long, value_name = "DIRECTORY")]
    #[arg(
        help = "The checkout of haypile with the folder rivals/ [default: HAYPILE_CHECKOUT of the \
                  environment, or else the nearest in or above the working directory, or above \
                  this program]"
    )]
    pub(crate) checkout: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
States: runs; missing (not installed, or not built); broken (its program is there and does not do
what a runner does). docs/job.md tells what that is, rivals/README.md how to add a rival.

Examples:
  haypile rivals list
  haypile rivals list --checkout ~/src/haypile --json")]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each target of make that the rivals name is made once, and shown before it is. Debian's packages are
installed where that is root; otherwise they are skipped, and a line says which they are.

Exit status: 0 all that was asked for runs now; 1 something of it does not; 2 wrong arguments, or
make failed.

Examples:
  haypile rivals install
  haypile rivals install rust diskcache")]
pub(crate) struct Install {
    /// Which rivals, as haypile rivals list names them [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each subject reads what it was given, and reads and writes in turn; every value is compared. What is
not installed is skipped, and a line says how to get it.

Exit status: 0 all that is installed does its jobs; 1 something does not; 2 wrong arguments, a
failure, or interrupted: what is finished is shown.

Examples:
  haypile rivals check
  haypile rivals check fastmmap rust")]
pub(crate) struct Check {
    /// Which rivals, as haypile rivals list names them [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) place: Place,
    /// Seconds after which a runner is given up, for its preparation and for the rest
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
