//! The folders in which themes lie.

use std::env;
use std::path::PathBuf;

use super::file::is_name;

/// Returns the folders that contain themes, the most important first: `~/.icons`, `icons` in the
/// XDG data folders, and `/usr/share/pixmaps`. They may not exist.
pub fn base_folders() -> Vec<PathBuf> {
    let absolute = |name: &str| {
        let path = env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let home = absolute("HOME");
    let data_home = absolute("XDG_DATA_HOME").or_else(|| Some(home.as_ref()?.join(".local/share")));
    let dirs = env::var_os("XDG_DATA_DIRS").filter(|dirs| !dirs.is_empty());
    let dirs = dirs.unwrap_or_else(|| "/usr/local/share:/usr/share".into());
    let dirs = env::split_paths(&dirs).filter(|path| path.is_absolute()).collect::<Vec<_>>();
    let mut folders: Vec<PathBuf> = Vec::new();
    folders.extend(home.map(|home| home.join(".icons")));
    folders.extend(data_home.into_iter().chain(dirs).map(|data| data.join("icons")));
    folders.push("/usr/share/pixmaps".into());
    let mut seen: Vec<PathBuf> = Vec::new();
    folders.retain(|folder| {
        let is_new = !seen.contains(folder);
        seen.push(folder.clone());
        is_new
    });
    folders
}

/// Whether a theme has an `index.theme` file in one of these folders.
pub fn is_installed(theme: &str, base: &[PathBuf]) -> bool {
    is_name(theme) && base.iter().any(|folder| folder.join(theme).join("index.theme").exists())
}
