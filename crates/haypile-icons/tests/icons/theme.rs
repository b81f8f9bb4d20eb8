//! A theme on disk.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use haypile::Cache;
use haypile_icons::{IconCache, IconCacheOptions, IconRequest};
use tempfile::TempDir;

pub(crate) fn svg(colour: &str) -> String {
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='16' height='16'>\
         <rect width='16' height='16' fill='{colour}'/></svg>"
    )
}

/// A theme of one size below a folder, whose times lie in the past.
pub(crate) struct Theme {
    pub(crate) folder: TempDir,
}

impl Theme {
    pub(crate) fn new(icons: &[(&str, String)]) -> Self {
        let theme = Self { folder: TempDir::new().unwrap() };
        let text = "[Icon Theme]\nDirectories=16/apps\n[16/apps]\nSize=16\nType=Fixed\n";
        fs::create_dir_all(theme.apps()).unwrap();
        fs::write(theme.base().join("mine/index.theme"), text).unwrap();
        for (name, text) in icons {
            fs::write(theme.apps().join(name), text).unwrap();
        }
        theme.age();
        theme
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.folder.path().join("icons")
    }

    pub(crate) fn apps(&self) -> PathBuf {
        self.base().join("mine/16/apps")
    }

    /// Sets times of modification back, by other amounts each time, so that they differ from those
    /// before, whatever the steps of the clock are.
    pub(crate) fn age(&self) {
        let paths = ["", "mine", "mine/16/apps", "mine/index.theme"];
        for path in paths {
            age(&self.base().join(path), 1000);
        }
    }

    pub(crate) fn file(&self) -> String {
        format!("file:{},size=8MiB", self.folder.path().join("cache").display())
    }

    /// A process that checks all by itself.
    pub(crate) fn open(&self) -> IconCache {
        self.with(&IconCacheOptions { shares_checks: false, ..IconCacheOptions::default() })
    }

    /// Young files are kept: the tests change times explicitly.
    pub(crate) fn with(&self, options: &IconCacheOptions) -> IconCache {
        let options = IconCacheOptions {
            base: vec![self.base()],
            racy_margin: Some(Duration::ZERO),
            ..options.clone()
        };
        IconCache::with("mine", Some(Cache::open(&self.file()).unwrap()), options)
    }
}

pub(crate) fn age(path: &Path, seconds: u64) {
    File::open(path)
        .unwrap()
        .set_modified(SystemTime::now() - Duration::from_secs(seconds))
        .unwrap();
}

pub(crate) fn colour(icons: &IconCache, name: &str) -> Option<[u8; 4]> {
    let icon = icons.lookup(&IconRequest::new(name, 16)).unwrap()?;
    assert_eq!((icon.width(), icon.height(), icon.pixels().len()), (16, 16, 1024));
    Some(icon.pixels()[..4].try_into().unwrap())
}

pub(crate) const RED: [u8; 4] = [255, 0, 0, 255];
pub(crate) const BLUE: [u8; 4] = [0, 0, 255, 255];
