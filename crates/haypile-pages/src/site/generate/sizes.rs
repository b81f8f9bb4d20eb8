//! Distributions of sizes, by type.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use crate::site::resource::ResourceKind;

/// The numbers that a draw is made of are below this.
const ONE: u64 = 1 << 20;

/// The sizes at each tenth of a type, in bytes.
///
/// HTTP Archive has the 10th and the 90th percentile (script 1 and 165 KB, font 16 and 158, style
/// sheet 0 and 50, document 0 and 59) and more of images (0, 1, 8, 48 and 183 KB at the 10th, 25th,
/// 50th, 75th and 90th). Between them are steps of equal ratio; 0 KB is taken as some hundred bytes.
/// The ends, and the sizes of data, are assumptions.
fn tenths(kind: ResourceKind) -> [u64; 11] {
    match kind {
        ResourceKind::Script => {
            [300, 1_024, 1_939, 3_671, 6_950, 13_159, 24_914, 47_171, 89_310, 168_960, 400_000]
        }
        ResourceKind::Font => [
            8_000, 16_384, 21_816, 29_048, 38_678, 51_500, 68_573, 91_307, 121_577, 161_792,
            250_000,
        ],
        ResourceKind::Css => {
            [100, 307, 582, 1_104, 2_092, 3_966, 7_518, 14_250, 27_011, 51_200, 150_000]
        }
        ResourceKind::Html => {
            [200, 307, 594, 1_150, 2_226, 4_309, 8_340, 16_142, 31_243, 60_416, 200_000]
        }
        ResourceKind::Image => {
            [64, 200, 700, 1_700, 4_000, 8_192, 17_000, 36_000, 68_000, 187_392, 400_000]
        }
        ResourceKind::Other => [20, 100, 180, 320, 560, 1_000, 1_800, 3_200, 5_600, 10_240, 50_000],
    }
}

/// Draws `count` sizes of resources of a kind at random, in bytes: one from each of `count` equal parts of the
/// distribution, so that the mean depends little on `count`.
pub(super) fn draw(rng: &mut ChaCha8Rng, kind: ResourceKind, count: usize) -> Vec<u64> {
    let parts = count as u64;
    let mut sizes: Vec<_> =
        (0..parts).map(|part| at(kind, (part * ONE + below(rng, ONE)) / parts)).collect();
    shuffle(rng, &mut sizes);
    sizes
}

/// Draws the size of a page's document at random, in bytes, from the upper half of the distribution.
pub(super) fn draw_root(rng: &mut ChaCha8Rng) -> u64 {
    at(ResourceKind::Html, ONE / 2 + below(rng, ONE / 2))
}

/// The size at a part of a distribution, between two tenths in proportion.
fn at(kind: ResourceKind, part: u64) -> u64 {
    let tenths = tenths(kind);
    let scaled = part * 10;
    let (below, rest) = (usize::try_from(scaled / ONE).unwrap_or(9).min(9), scaled % ONE);
    let (low, high) = (tenths[below], tenths[below + 1]);
    low + (high - low) * rest / ONE
}

/// Draws a random number below a limit much smaller than 2^32.
pub(super) fn below(rng: &mut ChaCha8Rng, limit: u64) -> u64 {
    (u64::from(rng.next_u32()) * limit) >> 32
}

/// Shuffles elements into a random order.
pub(super) fn shuffle<T>(rng: &mut ChaCha8Rng, elements: &mut [T]) {
    for index in (1..elements.len()).rev() {
        let other = usize::try_from(below(rng, index as u64 + 1)).unwrap_or(index);
        elements.swap(index, other);
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn drawn_sizes_have_the_published_percentiles() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for (kind, low_kb, high_kb) in [
            (ResourceKind::Script, 1, 165),
            (ResourceKind::Font, 16, 158),
            (ResourceKind::Css, 0, 50),
            (ResourceKind::Html, 0, 59),
            (ResourceKind::Image, 0, 183),
        ] {
            let mut sizes = draw(&mut rng, kind, 1001);
            assert!(!sizes.is_sorted());
            sizes.sort_unstable();
            let (low, high) = (sizes[100] / 1024, sizes[900].div_ceil(1024));
            assert!(low <= low_kb && low + 1 >= low_kb, "{kind}: {low} KB");
            assert!(high.abs_diff(high_kb) <= 2, "{kind}: {high} KB");
        }
        let mut images = draw(&mut rng, ResourceKind::Image, 1001);
        images.sort_unstable();
        let middle = [250, 500, 750].map(|at| images[at] / 512);
        assert!(middle[0].abs_diff(2) <= 1 && middle[1].abs_diff(16) <= 1, "{middle:?}");
        assert!(middle[2].abs_diff(96) <= 10, "{middle:?}");
    }

    #[test]
    fn elements_are_kept_when_they_are_shuffled() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut elements: Vec<_> = (0..100).collect();
        shuffle(&mut rng, &mut elements);
        assert!(!elements.is_sorted());
        elements.sort_unstable();
        assert_eq!(elements, (0..100).collect::<Vec<_>>());
        assert!(draw(&mut rng, ResourceKind::Other, 0).is_empty());
    }
}
