//! The names of the rivals, and the functions that open them.

use std::collections::hash_map::RandomState as SipHash;

use foldhash::fast::RandomState as FoldHash;
use foyer_memory::{EvictionConfig, FifoConfig, LfuConfig, LruConfig, S3FifoConfig, SieveConfig};
use haypile_measure::subject::{
    Kind, Room, Subject, SubjectError, SubjectSpec, Subjects, UNCHECKED,
};

use crate::files::Files;
use crate::foyer::Foyer;
use crate::lmdb::Lmdb;
use crate::lru::LockedLru;
use crate::map::PlainMap;
use crate::mini::MiniMoka;
use crate::moka::Moka;
use crate::options::Options;
use crate::quick::Quick;
use crate::redb::Redb;
use crate::rival::{Alone, Rival};
use crate::shared::SharedCache;
use crate::sqlite::Sqlite;
use crate::stretto::Stretto;
use crate::tinyufo::TinyUfo;

type Opened = Result<Box<dyn Subject>, SubjectError>;

/// Options and what they may be; nothing stands for a number.
const ROOM: (&str, &[&str]) = ("room", &[]);
const SHARDS: (&str, &[&str]) = ("shards", &[]);
const HASHER: (&str, &[&str]) = ("hasher", &["siphash", "foldhash"]);
const MODE: (&str, &[&str]) = ("mode", &["fast", "compact"]);
const POLICY: (&str, &[&str]) = ("policy", &["lru", "s3fifo", "lfu", "sieve", "fifo"]);

/// Returns all rivals in Rust.
pub(crate) fn rivals() -> Subjects {
    let mut subjects = Subjects::new();
    for kind in [
        Kind {
            name: "quick_cache",
            usage: "quick_cache[:shards=N]",
            help: "quick_cache::sync::Cache, bounded in bytes",
            version: env!("VERSION_QUICK_CACHE"),
            open: quick_cache,
            ..KIND
        },
        Kind {
            name: "moka",
            usage: "moka[:hasher=foldhash]",
            help: "moka::sync::Cache, bounded in bytes",
            version: env!("VERSION_MOKA"),
            open: moka,
            ..KIND
        },
        Kind {
            name: "mini-moka",
            usage: "mini-moka[:hasher=foldhash]",
            help: "mini_moka::sync::Cache, bounded in bytes",
            version: env!("VERSION_MINI_MOKA"),
            open: mini_moka,
            ..KIND
        },
        Kind {
            name: "foyer",
            usage: "foyer[:policy=lru|s3fifo|lfu|sieve|fifo][,shards=N]",
            help: "foyer::Cache, its cache in memory, bounded in bytes",
            version: env!("VERSION_FOYER_MEMORY"),
            open: foyer,
            ..KIND
        },
        Kind {
            name: "tinyufo",
            usage: "tinyufo[:mode=compact]",
            help: "tinyufo::TinyUfo, pingora's, bounded in bytes; keeps hashes and no keys",
            version: env!("VERSION_TINYUFO"),
            open: tinyufo,
            ..KIND
        },
        Kind {
            name: "stretto",
            usage: "stretto",
            help: "stretto::Cache, bounded in bytes; a set waits until it is admitted or rejected",
            version: env!("VERSION_STRETTO"),
            open: stretto,
            ..KIND
        },
        Kind {
            name: "lru",
            usage: "lru",
            help: "lru::LruCache behind a mutex, bounded in entries",
            version: env!("VERSION_LRU"),
            open: lru,
            ..KIND
        },
        Kind {
            name: "lmdb",
            usage: "lmdb[:room=N]",
            help: "LMDB by heed, writemap and nosync: a file that processes share; evicts nothing",
            version: concat!("heed ", env!("VERSION_HEED")),
            shared: true,
            open: lmdb,
            ..KIND
        },
        Kind {
            name: "sqlite",
            usage: "sqlite",
            help: "SQLite by rusqlite, WAL and no syncs: a file that processes share; evicts nothing",
            version: concat!("rusqlite ", env!("VERSION_RUSQLITE")),
            shared: true,
            open: sqlite,
            ..KIND
        },
        Kind {
            name: "redb",
            usage: "redb",
            help: "redb, commits without durability: a file of one process; evicts nothing",
            version: env!("VERSION_REDB"),
            open: redb,
            ..KIND
        },
        Kind {
            name: "files",
            usage: "files",
            help: "a file for each entry, by std::fs: processes share them; evicts nothing",
            shared: true,
            open: files,
            ..KIND
        },
        KIND,
    ] {
        subjects.register(kind);
    }
    subjects
}

/// The plain map, and what all have in common.
const KIND: Kind = Kind {
    name: "hashmap",
    usage: "hashmap[:hasher=foldhash]",
    help: "std::collections::HashMap, one thread, no lock and no bound",
    language: "rust",
    version: env!("VERSION_RUSTC"),
    hidden: false,
    shared: false,
    open: hashmap,
    check: UNCHECKED,
};

fn quick_cache(spec: &SubjectSpec, room: &Room, _: &Subjects) -> Opened {
    let options = Options::parse(spec, room, &[SHARDS])?;
    rival("quick_cache", env!("VERSION_QUICK_CACHE"), move || Quick::new(&options))
}

fn moka(spec: &SubjectSpec, room: &Room, _: &Subjects) -> Opened {
    let options = Options::parse(spec, room, &[HASHER])?;
    let version = env!("VERSION_MOKA");
    if is_foldhash(&options) {
        rival("moka", version, move || Ok(Moka::new(&options, FoldHash::default())))
    } else {
        rival("moka", version, move || Ok(Moka::new(&options, SipHash::new())))
    }
}

fn mini_moka(spec: &SubjectSpec, room: &Room, _: &Subjects) -> Opened {
    let options = Options::parse(spec, room, &[HASHER])?;
    let version = env!("VERSION_MINI_MOKA");
    if is_foldhash(&options) {
        rival("mini-moka", version, move || Ok(MiniMoka::new(&options, FoldHash::default())))
    } else {
        rival("mini-moka", version, move || Ok(MiniMoka::new(&options, SipHash::new())))
    }
}

fn foyer(spec: &SubjectSpec, room: &Room, _: &Subjects) -> Opened {
    let options = Options::parse(spec, room, &[POLICY, SHARDS])?;
    rival("foyer", env!("VERSION_FOYER_MEMORY"), move || {
        let eviction: EvictionConfig = match options.value("policy") {
            Some("s3fifo") => S3FifoConfig::default().into(),
            Some("lfu") => LfuConfig::default().into(),
            Some("sieve") => SieveConfig.into(),
            Some("fifo") => FifoConfig::default().into(),
            _ => LruConfig::default().into(),
        };
        Foyer::new(&options, eviction)
    })
}

fn tinyufo(spec: &SubjectSpec, room: &Room, _: &Subjects) -> Opened {
    let options = Options::parse(spec, room, &[MODE])?;
    rival("tinyufo", env!("VERSION_TINYUFO"), move || TinyUfo::new(&options))
}

fn stretto(spec: &SubjectSpec, room: &Room, _: &Subjects) -> Opened {
    let options = Options::parse(spec, room, &[])?;
    rival("stretto", env!("VERSION_STRETTO"), move || Stretto::new(&options))
}

fn lru(spec: &SubjectSpec, room: &Room, _: &Subjects) -> Opened {
    let options = Options::parse(spec, room, &[])?;
    let entries = options.entries as u64;
    let opened = Rival::new("lru", env!("VERSION_LRU"), move || Ok(LockedLru::new(&options)))?;
    Ok(Box::new(opened.with_count("capacity_entries", entries)))
}

fn lmdb(spec: &SubjectSpec, room: &Room, _: &Subjects) -> Opened {
    let options = Options::parse(spec, room, &[ROOM])?;
    Ok(Box::new(Lmdb::open(room, options.room()).map_err(SubjectError::open(spec))?))
}

fn sqlite(spec: &SubjectSpec, room: &Room, _: &Subjects) -> Opened {
    Options::parse(spec, room, &[])?;
    Ok(Box::new(Sqlite::open(room).map_err(SubjectError::open(spec))?))
}

fn redb(spec: &SubjectSpec, room: &Room, _: &Subjects) -> Opened {
    Options::parse(spec, room, &[])?;
    Ok(Box::new(Redb::open(room).map_err(SubjectError::open(spec))?))
}

fn files(spec: &SubjectSpec, room: &Room, _: &Subjects) -> Opened {
    Options::parse(spec, room, &[])?;
    Ok(Box::new(Files::open(room).map_err(SubjectError::open(spec))?))
}

fn hashmap(spec: &SubjectSpec, room: &Room, _: &Subjects) -> Opened {
    let options = Options::parse(spec, room, &[HASHER])?;
    let version = env!("VERSION_RUSTC");
    Ok(if is_foldhash(&options) {
        Box::new(Alone::new(version, move || PlainMap::new(&options, FoldHash::default())))
    } else {
        Box::new(Alone::new(version, move || PlainMap::new(&options, SipHash::new())))
    })
}

fn is_foldhash(options: &Options) -> bool {
    options.value("hasher") == Some("foldhash")
}

/// A rival that is bounded in bytes.
fn rival<C: SharedCache + 'static>(
    name: &'static str,
    version: &'static str,
    open: impl Fn() -> Result<C, String> + 'static,
) -> Opened {
    Ok(Box::new(Rival::new(name, version, open)?))
}
