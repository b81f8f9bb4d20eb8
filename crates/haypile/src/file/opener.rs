//! The scheme `file` and its options.

use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use crate::clock::Clock;
use crate::file::copied_store::CopiedStore;
use crate::file::format::layout::{
    DEFAULT_ENTRY_BYTES, MAX_ENTRY_BYTES, MAX_FILE_BYTES, MIN_ENTRY_BYTES, MIN_FILE_BYTES,
};
use crate::file::operations::name::MAX_NAMESPACE_BYTES;
use crate::file::process::create::{self, Compressed, Wanted};
use crate::file::process::error::FileError;
use crate::file::process::sessions::Sessions;
use crate::file::reader::Reader;
use crate::file::store::FileStore;
use crate::groups;
use crate::open::{OpenError, Opener};
use crate::store::{DEFAULT_COMPUTE_WAIT, Store};
use crate::url::{OptionSpec, Place, ResolvedLevel, Scheme, ValueKind};

const DEFAULT_SIZE_BYTES: u64 = 64 << 20;

/// A process that only reads neither replaces a file nor writes entries, and one that copies trusts nothing in any
/// file. (With `mode=ro`, `size=` has the effect that it always has on an existing file: a warning where that has
/// another.)
const IDLE: &[(&str, &str, &str)] = &[
    ("recreate", "mode", "ro"),
    ("ttl", "mode", "ro"),
    ("size", "mode", "copy"),
    ("entry_size", "mode", "copy"),
    ("groups", "mode", "copy"),
    ("recreate", "mode", "copy"),
    ("ttl", "mode", "copy"),
    ("verify", "mode", "copy"),
    ("prefault", "mode", "copy"),
    ("allow_shared", "mode", "copy"),
    ("compute_wait", "mode", "copy"),
];

pub(in crate::file) static SCHEME: Scheme = Scheme {
    name: "file",
    place: Place::Path,
    idle: IDLE,
    options: &[
        OptionSpec {
            name: "size",
            kind: ValueKind::Size { min_bytes: MIN_FILE_BYTES, max_bytes: MAX_FILE_BYTES },
            help: "size of a new file, which never grows; 64MiB by default. An existing file \
                   keeps its own",
        },
        OptionSpec {
            name: "entry_size",
            kind: ValueKind::Size { min_bytes: MIN_ENTRY_BYTES, max_bytes: MAX_ENTRY_BYTES },
            help: "approximate size of an entry, key and value, for which the index of a new file \
                   is made; 256 by default",
        },
        OptionSpec {
            name: "groups",
            kind: ValueKind::Count { min: *groups::WORDS.start(), max: *groups::WORDS.end() },
            help: "numbers that a new file has for groups, at most one per 64 bytes: groups that share one are \
                   invalidated together; one per 8192 bytes by default",
        },
        OptionSpec {
            name: "mode",
            kind: ValueKind::Choice(&["rw", "ro", "copy"]),
            help: "whether this process also writes; copy reads the file without mapping it and \
                   trusts nothing in it, even if it belongs to another user; what it finds may be \
                   a second old; rw by default",
        },
        OptionSpec {
            name: "verify",
            kind: ValueKind::Choice(&["needed", "first", "always"]),
            help: "when reads verify checksums: where an earlier boot wrote; also of each value that \
                   is read in place, when this process first reads it so; or always; needed by \
                   default",
        },
        OptionSpec {
            name: "recreate",
            kind: ValueKind::Choice(&["no", "yes"]),
            help: "whether a new, empty file replaces an existing one; no by default",
        },
        OptionSpec {
            name: "prefault",
            kind: ValueKind::Choice(&["no", "yes"]),
            help: "whether opening brings the whole file into memory and maps it, so that no read \
                   waits for that, and on tmpfs no write; a new file on tmpfs with huge=advise then \
                   has huge pages; no by default",
        },
        OptionSpec::ALLOW_SHARED,
        OptionSpec {
            name: "allow_network",
            kind: ValueKind::Choice(&["no", "yes"]),
            help: "whether to use a file on a network file system or FUSE, which no other machine \
                   may use at the same time; no by default",
        },
        OptionSpec::TTL,
        OptionSpec::NAMESPACE,
        OptionSpec::COMPUTE_WAIT,
        OptionSpec::RECORD,
        OptionSpec::RECORD_MAX,
        OptionSpec::RECORD_KEYS,
        OptionSpec::COMPRESS,
        OptionSpec::COMPRESS_MIN,
    ],
    help: "one mapped file, shared by all processes that open it",
};

#[derive(Debug)]
pub(crate) struct FileOpener;

impl Opener for FileOpener {
    fn scheme(&self) -> &'static Scheme {
        &SCHEME
    }

    fn open(
        &self,
        level: &ResolvedLevel,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Store>, OpenError> {
        let url = level.url();
        let failed =
            |source: FileError| OpenError::Backend { url: url.to_string(), source: source.into() };
        let path = Path::new(level.path());
        let now = clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ttl = level.duration("ttl");
        if let Some(namespace) = level.text("namespace")
            && namespace.len() > MAX_NAMESPACE_BYTES
        {
            return Err(OpenError::LongNamespace { bytes: namespace.len() });
        }
        let wanted = Wanted {
            size_bytes: level.size("size").unwrap_or(DEFAULT_SIZE_BYTES),
            entry_bytes: level.size("entry_size").unwrap_or(DEFAULT_ENTRY_BYTES),
            groups: level.count("groups"),
            compression: match level.compression("compress") {
                Some(compression) => Compressed::As(Some(compression.method())),
                None => Compressed::AsItIs,
            },
            is_writable: level.choice("mode").is_none_or(|mode| mode == "rw"),
            prefaults: level.is_yes("prefault"),
            may_be_shared: level.is_yes("allow_shared"),
            may_be_remote: level.is_yes("allow_network"),
            now_ms: u64::try_from(now.as_millis()).unwrap_or(0),
        };
        if level.is_yes("recreate") && wanted.is_writable {
            create::replace_and_retire(path, &wanted).map_err(failed)?;
        }
        if level.choice("mode") == Some("copy") {
            let store = CopiedStore::open(path.to_owned(), level, clock).map_err(failed)?;
            return Ok(warned(store));
        }
        let verifies_all = level.choice("verify") == Some("always");
        let sessions =
            Sessions::open(path, wanted, verifies_all, clock.now_ns()).map_err(failed)?;
        let compute_wait = level.duration("compute_wait").unwrap_or(DEFAULT_COMPUTE_WAIT);
        let verifies_in_place = level.choice("verify") == Some("first");
        let reader = Reader::new(level, clock, sessions.file_bytes());
        Ok(warned(FileStore::new(sessions, reader, ttl, compute_wait, verifies_in_place)))
    }
}

/// Returns a store that has just been opened, after its warnings were written to the log.
fn warned(store: impl Store + 'static) -> Arc<dyn Store> {
    store.warnings().iter().for_each(|warning| log::warn!("{warning}"));
    Arc::new(store)
}
