//! Monitor of a simulation, with progress and Ctrl-C.

use std::ops::ControlFlow;

use haypile_sim::simulate::Monitor;

use crate::interrupt;
use crate::output::progress::Progress;

/// A monitor of a running simulation, which shows its progress and stops it after Ctrl-C.
pub(crate) struct Watch<'a>(pub(crate) &'a Progress);

impl Monitor for Watch<'_> {
    fn advance(&self, requests: u64) -> ControlFlow<()> {
        if interrupt::asked() {
            return ControlFlow::Break(());
        }
        self.0.advance(requests);
        ControlFlow::Continue(())
    }
}
