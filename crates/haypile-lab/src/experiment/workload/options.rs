//! Options of `haypile lab workload`.

use std::str::FromStr;

use clap::Args;

use super::Workload;

/// Command-line options of the experiment `workload`.
#[derive(Clone, Debug, Args)]
#[command(
    about = "Run the workloads of RelStorage's local client: populate, mix, read, proof of policy"
)]
#[command(after_help = "\
400 groups of 400 keys, 145,480 keys in all, each with its own 1,024 bytes; a cache of 100 MB.
  pop    set every key in hash order, on one client
  epop   the same, on a new client
  mix    the sets of pop, and one read of group 0 after each 400 of them
  read   read the 400 keys of each group at once
  proof  set every key, then read group 0: LRU has evicted it, segmented LRU has kept it
A sample runs the workload three times, and the proof once. The default subjects are memory with
policy=lru, policy=slru and policy=s3fifo.

Examples:
  haypile lab workload proof --blocks 1
  haypile lab workload --rivals rivals/relstorage/relstorage --subject relstorage,memory:policy=slru")]
pub struct WorkloadOptions {
    /// Workloads, separated by blanks or commas [default: all]
    #[arg(value_name = "WORKLOAD", value_delimiter = ',', value_parser = Workload::from_str)]
    pub workloads: Vec<Workload>,
}
