//! Shows the progress of a simulation and listens to Ctrl-C.

use std::ops::ControlFlow;

use haypile_sim::simulate::Monitor;

use crate::interrupt;
use crate::output::progress::Progress;

/// Ends a simulation when the user asks for it.
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
