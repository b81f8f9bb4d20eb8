//! Arguments of `haypile rivals`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use haypile_lab::experiment::value::seconds;

#[derive(Debug, Subcommand)]
pub(crate) enum RivalsCommand {
    /// List the rivals, whether each runs here, and how to install it
    List(List),
    /// Install rivals or build their runners with make in the checkout
    Install(Install),
    /// Run tiny jobs on rivals and verify their results
    Check(Check),
}

/// The checkout of this repository that contains the rivals (other caches to measure).
#[derive(Debug, Args)]
pub(crate) struct RivalsPlace {
    #[arg(long, value_name = "DIRECTORY")]
    #[arg(
        help = "Checkout of haypile with the folder rivals/ [default: the environment variable \
                  HAYPILE_CHECKOUT, or else the nearest checkout in or above the working directory, \
                  or above this program]"
    )]
    pub(crate) checkout: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
States: runs; missing (not installed, or not built); broken (its program exists and does not work as
a runner). docs/job.md describes runners, rivals/README.md how to add a rival.

Examples:
  haypile rivals list
  haypile rivals list --checkout ~/src/haypile --json")]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) place: RivalsPlace,
    /// Print the list of rivals as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The command runs each make target that the rivals name once, and prints it first. As root it
installs Debian's packages; as another user it prints their names and skips them.

Exit status: 0 all these rivals run now; 1 some of them do not; 2 wrong arguments, or make failed.

Examples:
  haypile rivals install
  haypile rivals install rust diskcache")]
pub(crate) struct Install {
    /// Names of rivals, as haypile rivals list prints them [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) place: RivalsPlace,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each subject reads the entries that it has been given, then reads and writes in turn; the runner
verifies every value. The command skips rivals that are not installed and prints how to install
them.

Exit status: 0 all installed rivals do their jobs; 1 some do not; 2 wrong arguments, or a failure;
130 interrupted by Ctrl-C (128 + the number of the signal): the command prints the results so far.

Examples:
  haypile rivals check
  haypile rivals check fastmmap rust")]
pub(crate) struct Check {
    /// Names of rivals, as haypile rivals list prints them [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) place: RivalsPlace,
    /// Seconds after which a rival's runner is stopped, for its preparation and again for the rest
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// Print the results of the checks of all rivals as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
