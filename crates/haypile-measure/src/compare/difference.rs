//! Values of two sides, by where they were measured.

use super::comparison::Pairing;
use crate::result::Values;
use crate::statistics::{Effect, EffectError};

/// Compares new with old: in pairs if any place has both, and else apart.
pub fn difference(old: &Values<'_>, new: &Values<'_>) -> Result<(Effect, Pairing), EffectError> {
    let pairs = old.paired(new);
    if pairs.is_empty() {
        return Ok((Effect::unpaired(&old.to_vec(), &new.to_vec())?, Pairing::Unpaired));
    }
    Ok((Effect::paired(&pairs)?, Pairing::Paired { blocks: pairs.len() }))
}
