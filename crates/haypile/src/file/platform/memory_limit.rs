//! The memory that control groups leave to this process, by either version of control groups.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The tightest memory limit of the control groups that this process is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::file) struct MemoryLimit {
    /// The file that sets the limit.
    set_by: PathBuf,
    limit_bytes: u64,
    /// The number of bytes below the control group's memory limit, including its swap, that are
    /// free or that the kernel could free.
    pub(in crate::file) left_bytes: u64,
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { set_by, limit_bytes, left_bytes } = self;
        write!(
            formatter,
            "{} allows {limit_bytes} bytes, of which {left_bytes} are left",
            set_by.display()
        )
    }
}

/// Returns the tightest memory limit among the control groups of this process and their parents;
/// `None` if they have no limit, or if it cannot be read.
pub(in crate::file) fn tightest() -> Option<MemoryLimit> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let mounts = read("/proc/self/mountinfo")?;
    let groups = read("/proc/self/cgroup")?;
    let swap_bytes = value(&read("/proc/meminfo")?, "SwapFree:").unwrap_or(0).saturating_mul(1024);
    tightest_of(&mounts, &groups, swap_bytes)
}

/// A hierarchy of control groups that limits memory.
struct Hierarchy {
    version: Version,
    /// The group that is visible as `mounted_at`.
    root: String,
    mounted_at: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Hierarchy {
    /// Reads a line of `mountinfo`.
    fn parse(line: &str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, mounted_at) = (mount.next()?, mount.next()?);
        let mut file_system = file_system.split(' ');
        let version = match file_system.next()? {
            "cgroup" if file_system.nth(1)?.split(',').any(|option| option == "memory") => {
                Version::One
            }
            "cgroup2" => Version::Two,
            _ => return None,
        };
        Some(Self { version, root: unescaped(root), mounted_at: unescaped(mounted_at).into() })
    }

    /// Returns the folder of the group of this process.
    fn folder(&self, groups: &str) -> Option<PathBuf> {
        let group = groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, group) = (parts.next()?, parts.next()?);
            let is_of_this = match self.version {
                Version::One => controllers.split(',').any(|controller| controller == "memory"),
                Version::Two => controllers.is_empty(),
            };
            is_of_this.then_some(group)
        })?;
        // Another namespace may be mounted: then all that is known is what can be seen.
        let below = Path::new(group).strip_prefix(&self.root).unwrap_or(Path::new(""));
        Some(self.mounted_at.join(below))
    }

    /// Returns the limit of the group in a folder.
    fn limit_of(&self, folder: &Path, swap_bytes: u64) -> Option<MemoryLimit> {
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
        let stat = read("memory.stat").unwrap_or_default();
        let sum = |names: [&str; 2]| -> u64 {
            names.iter().filter_map(|name| value(&stat, name)).fold(0, u64::saturating_add)
        };
        let (name, limit_bytes, taken_bytes, swap_bytes) = match self.version {
            Version::One => {
                let own = number("memory.limit_in_bytes")?;
                // Also of groups above that cannot be seen.
                let all = value(&stat, "hierarchical_memory_limit").unwrap_or(u64::MAX);
                let swap = number("memory.memsw.limit_in_bytes").map_or(u64::MAX, |both| {
                    both.saturating_sub(own).saturating_sub(value(&stat, "total_swap").unwrap_or(0))
                });
                let taken = sum(["total_rss", "total_shmem"]);
                ("memory.limit_in_bytes", own.min(all), taken, swap_bytes.min(swap))
            }
            Version::Two => {
                let swap = number("memory.swap.max").map_or(u64::MAX, |most| {
                    most.saturating_sub(number("memory.swap.current").unwrap_or(0))
                });
                ("memory.max", number("memory.max")?, sum(["anon", "shmem"]), swap_bytes.min(swap))
            }
        };
        let left_bytes = limit_bytes.saturating_sub(taken_bytes).saturating_add(swap_bytes);
        Some(MemoryLimit { set_by: folder.join(name), limit_bytes, left_bytes })
    }
}

fn tightest_of(mounts: &str, groups: &str, swap_bytes: u64) -> Option<MemoryLimit> {
    let hierarchies = mounts.lines().filter_map(Hierarchy::parse);
    let limits = hierarchies.filter_map(|hierarchy| {
        let folder = hierarchy.folder(groups)?;
        let visible =
            folder.ancestors().take_while(|folder| folder.starts_with(&hierarchy.mounted_at));
        visible
            .filter_map(|folder| hierarchy.limit_of(folder, swap_bytes))
            .min_by_key(|limit| limit.left_bytes)
    });
    limits.min_by_key(|limit| limit.left_bytes)
}

/// Returns the number that follows a name at the start of a line.
fn value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        if words.next()? == name { words.next()?.parse().ok() } else { None }
    })
}

/// Returns a path of `mountinfo`, which has spaces and the like as octal numbers.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut path = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        path.push(code.map_or('\\', char::from));
        path.push_str(if code.is_some() { &part[3..] } else { part });
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn write(folder: &Path, files: &[(&str, String)]) {
        fs::create_dir_all(folder).expect("a folder");
        for (name, text) in files {
            fs::write(folder.join(name), text).expect("written");
        }
    }

    #[test]
    fn the_tightest_of_nested_groups_of_version_two_counts() {
        let mounted = tempfile::tempdir().expect("a folder");
        let mounts = format!(
            "21 1 0:20 / /proc rw - proc proc rw\n\
             30 1 0:26 / {} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
            mounted.path().display()
        );
        let limit = |swap| tightest_of(&mounts, "0::/outer/inner\n", swap);
        assert_eq!(limit(0), None, "nothing can be read");
        let (outer, inner) = (mounted.path().join("outer"), mounted.path().join("outer/inner"));
        let stat = |anon: u64, shmem: u64| format!("anon {anon}\nfile 7\nshmem {shmem}\n");
        write(
            &outer,
            &[("memory.max", format!("{}\n", 100 * MIB)), ("memory.stat", stat(30 * MIB, 9 * MIB))],
        );
        write(&inner, &[("memory.max", "max\n".to_owned()), ("memory.stat", stat(MIB, 0))]);
        let found = limit(0).expect("the outer group has one");
        assert_eq!((found.limit_bytes, found.left_bytes), (100 * MIB, 61 * MIB));
        assert_eq!(found.set_by, outer.join("memory.max"));
        write(&inner, &[("memory.max", format!("{}\n", 50 * MIB))]);
        let found = limit(0).expect("both have one");
        assert_eq!((found.limit_bytes, found.left_bytes), (50 * MIB, 49 * MIB));
        // Memory that may be swapped out is not lost.
        assert_eq!(limit(20 * MIB).expect("a limit").left_bytes, 69 * MIB);
        write(&inner, &[("memory.swap.max", "0\n".to_owned())]);
        assert_eq!(limit(20 * MIB).expect("a limit").left_bytes, 49 * MIB);
    }

    #[test]
    fn a_limit_of_version_one_counts_also_where_its_group_cannot_be_seen() {
        let mounted = tempfile::tempdir().expect("a folder");
        let place = mounted.path().join("with space");
        let mounts = format!(
            "33 30 0:28 /box/one {} rw - cgroup cgroup rw,memory\n\
             34 30 0:29 / /nowhere rw - cgroup cgroup rw,cpu\n",
            place.display().to_string().replace(' ', "\\040")
        );
        let groups = "5:cpu:/other\n4:memory:/box/one/two\n0::/\n";
        let none = i64::MAX.cast_unsigned() & !4095;
        let stat = format!("total_rss {}\nhierarchical_memory_limit {}\n", 5 * MIB, 64 * MIB);
        let files = [("memory.limit_in_bytes", format!("{none}\n")), ("memory.stat", stat)];
        write(&place.join("two"), &files);
        let found = tightest_of(&mounts, groups, 0).expect("a group above has one");
        assert_eq!((found.limit_bytes, found.left_bytes), (64 * MIB, 59 * MIB));
        let both = [("memory.limit_in_bytes", 40 * MIB), ("memory.memsw.limit_in_bytes", 48 * MIB)];
        write(&place.join("two"), &both.map(|(name, bytes)| (name, bytes.to_string())));
        let found = tightest_of(&mounts, groups, 100 * MIB).expect("it has one");
        assert_eq!((found.limit_bytes, found.left_bytes), (40 * MIB, 43 * MIB));
    }
}
