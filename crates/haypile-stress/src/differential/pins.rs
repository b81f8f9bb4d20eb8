//! Steps that keep values in place while later steps run.

use std::rc::Rc;

use haypile::OwnedPinned;

use super::key::Key;
use super::mismatch::{Checked, wrong};
use super::operation::PinForm;
use super::reads::kind_of;
use super::run::{At, Run};
use super::value::describe;

/// A value that a run holds pinned (read in place) in the cache, with its bytes at the time of the
/// read.
pub(super) struct Pin {
    pub(super) key: Key,
    pub(super) value: Rc<[u8]>,
    kept: OwnedPinned,
}

impl Run {
    /// Reads a value in place in the cache and keeps it pinned; releases the value that is pinned
    /// longest if there are too many.
    pub(super) fn pin(&mut self, at: At, key: Key, form: PinForm) -> Checked<String> {
        let (cache, bytes) = (self.cache(at), key.bytes());
        let (kept, now) = self.time.of(|| match form {
            PinForm::Pinned => cache.get_pinned_owned(&bytes),
            PinForm::InPlace => cache.get_in_place_owned(&bytes),
        });
        let kept = match kept {
            Ok(kept) => kept,
            Err(error) => {
                self.judge_refusal(at, key, None, None, &error)?;
                return Ok(format!("refused: {}", kind_of(&error)));
            }
        };
        self.counts(at).add_read(kept.is_some());
        let found = kept.as_ref().map(|kept| (kept.to_vec(), kept.hit()));
        let outcome = self.judge_found(at, key, found.as_ref(), true, false, now)?;
        if let Some(kept) = kept {
            let value = Rc::clone(&self.model(at).get(key).expect("it was found").value);
            self.pins.push_back(Pin { key, value, kept });
            if self.pins.len() > self.most_pins {
                self.unpin()?;
            }
            if !self.fits() {
                self.was_full = true;
                self.tenants.iter_mut().for_each(|tenant| tenant.model.doubt_all());
            }
        }
        Ok(outcome)
    }

    /// Releases the value that has been kept pinned (read in place) in the cache longest.
    pub(super) fn unpin(&mut self) -> Checked<String> {
        let Some(pin) = self.pins.pop_front() else { return Ok("none is kept".to_owned()) };
        self.tally.pins_compared += 1;
        pin.check()?;
        Ok(format!("{} released", pin.key))
    }

    /// Compares one of the values kept pinned in the cache with the bytes that it had when it was
    /// read.
    pub(super) fn check_a_pin(&mut self, number: u64) -> Checked {
        if self.pins.is_empty() {
            return Ok(());
        }
        self.tally.pins_compared += 1;
        let which = usize::try_from(number).unwrap_or(0) % self.pins.len();
        self.pins[which].check()
    }

    /// Compares all values kept pinned in the cache with the bytes that they had when they were
    /// read.
    pub(super) fn check_all_pins(&mut self) -> Checked {
        self.tally.pins_compared += self.pins.len() as u64;
        self.pins.iter().try_for_each(Pin::check)
    }
}

impl Pin {
    fn check(&self) -> Checked {
        if *self.kept == *self.value {
            return Ok(());
        }
        wrong!(
            self.key,
            "a value that is kept in place has changed to {} from {}",
            describe(&self.kept),
            describe(&self.value)
        )
    }
}
