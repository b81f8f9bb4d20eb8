//! Icon themes by the freedesktop specification: which file is an icon?
//!
//! | module | what it is |
//! |---|---|
//! | `folders` | the folders in which themes lie |
//! | `file` | `index.theme`: a theme's folders, their sizes, and the themes that it inherits |
//! | `inherit` | the order of themes |
//! | `scan` | all icons of a theme and of those that it inherits, as one [`ThemeIndex`] |
//! | `index` | the index in bytes, as it is stored and searched |
//! | `choose` | the best file for a name, a size and a scale |
//! | `probe` | the same without an index, by asking for every candidate: what programs without a cache do |

mod choose;
mod file;
mod folders;
mod index;
mod inherit;
mod probe;
mod scan;

pub use choose::{IconName, MAX_NAME_BYTES, distance};
pub use file::{FolderKind, ThemeFile, ThemeFolder};
pub use folders::{base_folders, is_installed};
pub use index::ThemeIndex;
pub(crate) use index::base_hash as scan_hash;
pub use inherit::Inheritance;
pub use probe::{ProbeCounts, probe};
pub use scan::{ScanCounts, scan};
