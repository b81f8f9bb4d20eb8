//! The view that a process has of the file system, and its clock. Two processes with the same view find the same under a
//! path.

use std::fmt;

/// A source of the time, and of an identifier of the process's view of the file system: processes with the same one see
/// the same files.
pub(crate) trait Viewer: fmt::Debug + Send + Sync {
    /// Nanoseconds since the machine was started, with those in which it was suspended. Nobody sets this clock.
    fn now_ns(&self) -> u64;

    /// Identifies the view of the calling process; `None` if the system does not tell it.
    fn view(&self) -> Option<u128>;
}

/// The operating system's [`Viewer`] (time and view of the file system).
#[derive(Debug)]
pub(crate) struct SystemViewer;

#[cfg(target_os = "linux")]
impl Viewer for SystemViewer {
    fn now_ns(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000) + u64::try_from(now.tv_nsec).unwrap_or(0)
    }

    /// Of the boot, to which the clock belongs; of the namespaces of mounts, users and this clock; of the root
    /// directory; and of the rights of the thread, which may not enter each folder. A process in a sandbox (Landlock,
    /// bubblewrap) may gain no privileges: folders can be hidden from it in ways that the system tells nobody.
    fn view(&self) -> Option<u128> {
        use rustix::fs::{AtFlags, CWD, StatxFlags, stat, statx};
        use rustix::process::{getegid, geteuid, getgroups};
        use rustix::thread::{capabilities, no_new_privs};
        use xxhash_rust::xxh3::Xxh3;

        /// `STATX_MNT_ID_UNIQUE` of Linux 6.8: a number that no later mount has again.
        const UNIQUE_MOUNT: StatxFlags = StatxFlags::from_bits_retain(0x4000);
        if no_new_privs() != Ok(false) {
            return None;
        }
        let mut hasher = Xxh3::new();
        let mut add = |number: u64| hasher.update(&number.to_le_bytes());
        for name in ["mnt", "user", "time"] {
            // Kernels before 5.6 have no namespace of time.
            let namespace = match stat(format!("/proc/thread-self/ns/{name}")) {
                Ok(found) => (found.st_dev, found.st_ino),
                Err(_) if name == "time" => (0, 0),
                Err(_) => return None,
            };
            add(namespace.0);
            add(namespace.1);
        }
        let wanted = StatxFlags::INO | StatxFlags::MNT_ID | UNIQUE_MOUNT;
        let root = statx(CWD, "/", AtFlags::NO_AUTOMOUNT, wanted).ok()?;
        for number in [root.stx_dev_major, root.stx_dev_minor] {
            add(u64::from(number));
        }
        add(root.stx_ino);
        add(root.stx_mnt_id);
        add(u64::from(geteuid().as_raw()));
        add(u64::from(getegid().as_raw()));
        for group in getgroups().ok()? {
            add(u64::from(group.as_raw()));
        }
        add(capabilities(None).ok()?.effective.bits());
        // AppArmor and SELinux; without such a module there is none.
        let label = std::fs::read("/proc/thread-self/attr/current").unwrap_or_default();
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
        if boot.is_empty() {
            return None;
        }
        hasher.update(&label);
        hasher.update(&boot);
        Some(hasher.digest128())
    }
}

#[cfg(not(target_os = "linux"))]
impl Viewer for SystemViewer {
    fn now_ns(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000) + u64::try_from(now.tv_nsec).unwrap_or(0)
    }

    fn view(&self) -> Option<u128> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_view_stays_the_same_and_its_clock_goes_on() {
        let (before, after) = (SystemViewer.now_ns(), SystemViewer.now_ns());
        assert!(0 < before && before <= after);
        assert_eq!(SystemViewer.view(), SystemViewer.view());
        let other = std::thread::spawn(|| SystemViewer.view()).join().unwrap();
        assert_eq!(SystemViewer.view(), other);
    }

    /// Not a test: prints the view of a process that the next one starts.
    #[test]
    #[ignore = "run by another test"]
    fn prints_its_view() {
        println!("view {:?} of a process", SystemViewer.view());
    }

    #[test]
    fn another_namespace_of_mounts_is_another_view_and_another_process_is_not() {
        if SystemViewer.view().is_none() {
            println!("skipped: the system does not tell the view of this process");
            return;
        }
        let own = std::env::current_exe().unwrap();
        let words = ["--exact", "view::tests::prints_its_view", "--ignored", "--nocapture"];
        let view = |command: &mut Command| {
            let output = command.args(words).output().ok().filter(|it| it.status.success())?;
            let text = String::from_utf8(output.stdout).unwrap();
            text.lines().find_map(|line| Some(line.split_once("view ")?.1.to_owned()))
        };
        let here = format!("{:?} of a process", SystemViewer.view());
        assert_eq!(view(&mut Command::new(&own)), Some(here.clone()));
        let is_root = rustix::process::geteuid().is_root();
        let user: &[&str] = if is_root { &[] } else { &["--user", "--map-current-user"] };
        match view(Command::new("unshare").arg("--mount").args(user).arg(&own)) {
            Some(there) => assert_ne!(there, here),
            None => println!("skipped: this user may not make namespaces"),
        }
        // As in a sandbox.
        match view(Command::new("setpriv").arg("--no-new-privs").arg(&own)) {
            Some(there) => assert_eq!(there, "None of a process"),
            None => println!("skipped: there is no setpriv"),
        }
    }
}
