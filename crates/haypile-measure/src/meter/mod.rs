//! Meters, which read the clocks and the memory of a runner's process.

mod load;
mod process;
mod residency;
mod status;

use std::fmt;
use std::sync::LazyLock;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

pub use load::LoadWatch;
pub(crate) use process::{group_clock_ns, process_cpu_ns, process_memory_bytes};
pub use process::{process_clock_ns, process_waited_ns};
pub use residency::{Residency, drop_from_memory};
pub use status::Memory;
pub(crate) use status::{ResidentMemory, forget_peak};

/// A meter of the clocks and the memory of this process. Meters other than the system's are for
/// tests.
pub trait Meter: fmt::Debug + Send + Sync {
    /// Nanoseconds that have passed since an origin that stays.
    fn wall_ns(&self) -> u64;

    /// Nanoseconds that the processors have spent on this process, all threads together, in user
    /// space and in the kernel.
    fn cpu_ns(&self) -> u64;

    /// The memory of the process; `None` where the system does not tell.
    fn memory(&self) -> Option<Memory>;
}

/// The meter that reads Linux's clocks and memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemMeter;

impl Meter for SystemMeter {
    fn wall_ns(&self) -> u64 {
        static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
        u64::try_from(ORIGIN.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn cpu_ns(&self) -> u64 {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let nanos = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
        u64::try_from(nanos).unwrap_or(0)
    }

    fn memory(&self) -> Option<Memory> {
        status::read()
    }
}
