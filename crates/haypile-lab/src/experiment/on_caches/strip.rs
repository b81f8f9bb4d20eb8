//! The distribution of samples in one line of text.

/// Cells of a strip; the one in the middle holds the centre.
const CELLS: usize = 13;
/// A cell holds samples that are this part apart.
const CELL: f64 = 1.1;
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns a line of characters that shows the distribution of samples around their centre: each
/// cell is 10 % wider than the one before, the first and the last include all samples beyond, and
/// the cell with the most samples is highest. Returns `None` for fewer than two samples.
pub(crate) fn strip(values: &[f64], centre: f64) -> Option<String> {
    if values.len() < 2 || centre <= 0.0 {
        return None;
    }
    let mut counts = [0_usize; CELLS];
    let middle = (CELLS / 2) as f64;
    for value in values {
        let at = ((value / centre).ln() / CELL.ln()).round() + middle;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let cell = at.clamp(0.0, (CELLS - 1) as f64) as usize;
        counts[cell] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let height = |count: &usize| match count {
        0 => '·',
        // However few there are, they are seen.
        count => HEIGHTS[(count * HEIGHTS.len()).div_ceil(most) - 1],
    };
    Some(counts.iter().map(height).collect())
}

#[cfg(test)]
mod tests {

    #[test]
    fn strips_show_where_samples_lie() {
        let strip = |values: &[f64], centre| super::strip(values, centre).unwrap_or_default();
        assert_eq!(strip(&[100.0; 20], 100.0), "······█······");
        let mut tail = vec![100.0; 17];
        tail.extend([500.0; 3]);
        assert_eq!(strip(&tail, 100.0), "······█·····▂");
        let two = [100.0, 100.0, 150.0, 150.0];
        assert_eq!(strip(&two, 122.5), "····█···█····");
        assert_eq!(strip(&[1.0, 100.0], 100.0), "█·····█······");
        assert_eq!(strip(&[100.0], 100.0), "");
    }
}
