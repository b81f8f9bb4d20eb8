//! The file `index.theme`: the description of a theme.

/// The most folders of a theme that are read.
const MAX_FOLDERS: usize = 4_000;
/// The most themes that one inherits.
const MAX_PARENTS: usize = 32;

/// An icon theme, as its `index.theme` file describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThemeFile {
    /// Names of the themes from which this theme inherits icons.
    pub inherits: Vec<String>,
    /// The folders with the theme's icons, in their order.
    pub folders: Vec<ThemeFolder>,
}

/// A folder of a theme, with icons of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThemeFolder {
    /// The path of the folder, relative to the theme.
    pub path: String,
    /// The nominal size of the folder's icons in pixels.
    pub size: u32,
    /// The screen scale for which the folder's icons are drawn.
    pub scale: u32,
    /// The rule for which wanted icon sizes the folder serves: its own, a range, or nearly its own.
    pub kind: FolderKind,
}

/// The rule for which wanted icon sizes a theme's folder serves: only its nominal size, a range of sizes, or sizes near
/// the nominal one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderKind {
    /// The nominal size of the folder alone.
    Fixed,
    /// All sizes from a smallest to a largest one.
    Scalable {
        /// The smallest size.
        min: u32,
        /// The largest size.
        max: u32,
    },
    /// The sizes that differ from the nominal size by no more than this.
    Threshold(u32),
}

impl ThemeFile {
    /// Parses the text of an `index.theme` file. Whatever cannot be used is skipped: a folder
    /// without a size, a path outside of the theme, a malformed line.
    pub fn parse(text: &str) -> Self {
        let groups = groups(text);
        let theme = groups.iter().find(|group| group.name == "Icon Theme");
        let list = |name: &str| {
            let value = theme.and_then(|theme| theme.value(name)).unwrap_or_default();
            let items = value.split(',').map(str::trim).filter(|item| !item.is_empty());
            items.map(str::to_owned).collect::<Vec<_>>()
        };
        let mut inherits = list("Inherits");
        inherits.retain(|name| is_name(name));
        inherits.truncate(MAX_PARENTS);
        let mut folders: Vec<ThemeFolder> = Vec::new();
        for path in list("Directories").into_iter().chain(list("ScaledDirectories")) {
            let group = groups.iter().find(|group| group.name == path);
            let is_known = folders.iter().any(|folder| folder.path == path);
            let folder = group.filter(|_| !is_known && is_below(&path));
            folders.extend(folder.and_then(|group| group.folder(path)));
            if folders.len() >= MAX_FOLDERS {
                break;
            }
        }
        Self { inherits, folders }
    }
}

/// Whether a text can be a theme's name, which is the name of a folder.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 255 && !name.starts_with('.') && !name.contains(['/', '\0'])
}

fn is_below(path: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part != ".." && !part.contains('\0');
    path.len() <= 1024 && path.split('/').all(is_part)
}

/// The lines below a heading.
struct Group<'a> {
    name: &'a str,
    lines: Vec<(&'a str, &'a str)>,
}

impl Group<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        self.lines.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }

    fn number(&self, name: &str) -> Option<u32> {
        self.value(name)?.parse().ok().filter(|number| (1..=65_535).contains(number))
    }

    fn folder(&self, path: String) -> Option<ThemeFolder> {
        let size = self.number("Size")?;
        let kind = match self.value("Type") {
            Some("Fixed") => FolderKind::Fixed,
            Some("Scalable") => FolderKind::Scalable {
                min: self.number("MinSize").unwrap_or(size),
                max: self.number("MaxSize").unwrap_or(size),
            },
            // The specification's default, whatever else is written there.
            _ => {
                let threshold = self.value("Threshold").and_then(|number| number.parse().ok());
                FolderKind::Threshold(threshold.unwrap_or(2).min(65_535))
            }
        };
        Some(ThemeFolder { path, size, scale: self.number("Scale").unwrap_or(1), kind })
    }
}

fn groups(text: &str) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            groups.push(Group { name, lines: Vec::new() });
        } else if let (Some(group), Some((name, value))) = (groups.last_mut(), line.split_once('='))
            && !line.starts_with('#')
        {
            group.lines.push((name.trim(), value.trim()));
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn folders_have_the_sizes_of_their_groups() {
        let text = "# comment\n[Icon Theme]\nName=x\nInherits = breeze , ../evil,hicolor,\n\
                    Directories=16x16/apps,scalable/apps,none,16x16/apps,a/../../b,32\n\
                    ScaledDirectories=16x16@2/apps\n\
                    [16x16/apps]\nSize=16\nType=Fixed\nContext=Applications\n\
                    [scalable/apps]\nSize=48\nMinSize=8\nMaxSize=512\nType=Scalable\n\
                    [16x16@2/apps]\nSize=16\nScale=2\nThreshold=x\n[32]\nSize=0\n[a/../../b]\nSize=1\n";
        let file = ThemeFile::parse(text);
        assert_eq!(file.inherits, ["breeze", "hicolor"]);
        let found: Vec<_> =
            file.folders.iter().map(|it| (it.path.as_str(), it.size, it.scale, it.kind)).collect();
        let expected = [
            ("16x16/apps", 16, 1, FolderKind::Fixed),
            ("scalable/apps", 48, 1, FolderKind::Scalable { min: 8, max: 512 }),
            ("16x16@2/apps", 16, 2, FolderKind::Threshold(2)),
        ];
        assert_eq!(found, expected);
        assert_eq!(ThemeFile::parse("Directories=a\n[a]\nSize=1"), ThemeFile::default());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\\[|\\]|=|,|Directories|Size|Icon Theme|[a-z/.]|[0-9]|\n){0,200}") {
            for folder in ThemeFile::parse(&text).folders {
                prop_assert!(folder.size > 0 && is_below(&folder.path));
            }
        }
    }
}
