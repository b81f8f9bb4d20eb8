//! Values of two sides, by where they were measured.

use std::collections::BTreeMap;

use super::comparison::Pairing;
use crate::statistics::{Effect, EffectError};

/// New over old: in pairs if any place has both, and else apart.
pub(crate) fn beside<P: Ord>(
    old: &BTreeMap<P, f64>,
    new: &BTreeMap<P, f64>,
) -> Result<(Effect, Pairing), EffectError> {
    let pairs: Vec<(f64, f64)> =
        old.iter().filter_map(|(place, &old)| Some((old, *new.get(place)?))).collect();
    if pairs.is_empty() {
        let values = |values: &BTreeMap<P, f64>| values.values().copied().collect::<Vec<f64>>();
        return Ok((Effect::unpaired(&values(old), &values(new))?, Pairing::Unpaired));
    }
    Ok((Effect::paired(&pairs)?, Pairing::Paired { blocks: pairs.len() }))
}
