//! The best file for a name, a size and a scale.

use super::file::FolderKind;

/// The longest name of an icon, in bytes.
pub const MAX_NAME_BYTES: usize = 200;

/// The name of an icon, from which less specific names follow: after `input-mouse-usb` comes
/// `input-mouse`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IconName<'a>(&'a str);

impl<'a> IconName<'a> {
    /// Returns an icon name; `None` for text that cannot be a file name.
    pub fn new(name: &'a str) -> Option<Self> {
        let is_name = (1..=MAX_NAME_BYTES).contains(&name.len())
            && !name.contains(['/', '\0'])
            && name != "."
            && name != "..";
        is_name.then_some(Self(name))
    }

    /// Returns the icon's name as it was requested.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// Returns the icon's name, then less specific ones, each of which ends before a dash.
    pub fn from_specific(self) -> impl Iterator<Item = &'a str> {
        let shorter = |name: &&'a str| {
            let (before, _) = name.rsplit_once('-')?;
            (!before.is_empty()).then_some(before)
        };
        std::iter::successors(Some(self.0), shorter)
    }
}

/// Returns how far the icons of a theme's folder are from a wanted size and scale, in pixels: 0 if
/// the folder serves them (the specification's `DirectoryMatchesSize`), else
/// `DirectorySizeDistance`.
pub fn distance(
    (size, scale): (u32, u32),
    (own_size, own_scale, kind): (u32, u32, FolderKind),
) -> u32 {
    let product = |size: u32, scale: u32| size.saturating_mul(scale);
    let wanted = product(size, scale);
    let outside = |min: u32, max: u32| {
        let (min, max) = (product(min, own_scale), product(max, own_scale));
        if wanted < min { min - wanted } else { wanted.saturating_sub(max) }
    };
    let distance = match kind {
        FolderKind::Fixed => product(own_size, own_scale).abs_diff(wanted),
        FolderKind::Scalable { min, max } => outside(min, max.max(min)),
        FolderKind::Threshold(threshold) => {
            outside(own_size.saturating_sub(threshold), own_size.saturating_add(threshold))
        }
    };
    // Another scale never serves, however large its icons are.
    if scale == own_scale { distance } else { distance.max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_less_specific_up_to_their_first_dash() {
        let all = |name| IconName::new(name).unwrap().from_specific().collect::<Vec<_>>();
        assert_eq!(all("a-b-c"), ["a-b-c", "a-b", "a"]);
        assert_eq!(all("-a-"), ["-a-", "-a"]);
        assert_eq!(all("a"), ["a"]);
        for wrong in ["", ".", "..", "a/b", "a\0b", &"x".repeat(201)] {
            assert_eq!(IconName::new(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn folders_serve_sizes_as_the_specification_has_it() {
        let fixed = |size, scale| (size, scale, FolderKind::Fixed);
        assert_eq!(distance((16, 1), fixed(16, 1)), 0);
        assert_eq!(distance((16, 1), fixed(22, 1)), 6);
        // 16 at scale 2 has the pixels of 32, and is still another icon.
        assert_eq!(distance((32, 1), fixed(16, 2)), 1);
        assert_eq!(distance((16, 2), fixed(16, 2)), 0);
        let scalable = (48, 1, FolderKind::Scalable { min: 8, max: 512 });
        assert_eq!([8, 512, 7, 600].map(|size| distance((size, 1), scalable)), [0, 0, 1, 88]);
        let threshold = (32, 1, FolderKind::Threshold(2));
        assert_eq!([30, 34, 29, 36].map(|size| distance((size, 1), threshold)), [0, 0, 1, 2]);
        assert_eq!(distance((u32::MAX, u32::MAX), threshold), u32::MAX - 34);
    }
}
