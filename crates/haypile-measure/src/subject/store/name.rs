//! The cache URL of a subject's name.

use std::borrow::Cow;
use std::path::Path;

use haypile::OpenError;
use haypile::url::{CacheUrl, Level};

use super::super::error::SubjectError;
use super::super::{Room, SubjectSpec, server};
use super::file;

/// The schemes that an experiment gives its capacity to when their URL states no size.
const SIZED: [&str; 2] = ["memory", "file"];

/// Returns the cache URL of a subject: its name, completed by the sizes and the file path that the
/// name leaves to the experiment. The addresses of its own servers are filled in later.
pub fn complete(
    spec: &SubjectSpec,
    room: &Room,
    directory: &Path,
) -> Result<CacheUrl, SubjectError> {
    let url: CacheUrl = with_colons(spec.as_str()).parse().map_err(SubjectError::open(spec))?;
    let mut levels: Vec<Level> = Vec::new();
    for level in url.levels() {
        // Each has its file, or its server, under a name of its own.
        let is_there = |other: &Level| other.scheme() == level.scheme();
        if level.scheme() != "memory" && levels.iter().any(is_there) {
            let wrong = format!("two levels are {0}, and a subject has one {0}", level.scheme());
            return Err(SubjectError::Spec { subject: spec.redacted(), wrong });
        }
        if file::is_placed(level) {
            let wrong = "a file that is measured lies in the working directory of its runners, \
                         which --directory says; write file, or file: and options";
            return Err(SubjectError::Spec { subject: spec.redacted(), wrong: wrong.to_owned() });
        }
        if server::is_of_others(level) {
            let wrong = "a server that is measured is the subject's own, which is emptied; write \
                         memcached or redis, or memcached://127.0.0.1:0 for one on a port";
            return Err(SubjectError::Spec { subject: spec.redacted(), wrong: wrong.to_owned() });
        }
        let level = sized(level.clone(), room).and_then(|level| file::placed(level, directory));
        levels.push(level.map_err(SubjectError::open(spec))?);
    }
    CacheUrl::new(levels).map_err(SubjectError::open(spec))
}

/// A level without options may be written without its colon: `memory+file`.
fn with_colons(text: &str) -> Cow<'_, str> {
    if text.contains("://") || text.contains("->") {
        return text.into();
    }
    let mut pieces: Vec<Cow<'_, str>> = Vec::new();
    for piece in text.split('+') {
        match pieces.last_mut() {
            // The schemes that have a plus in them.
            Some(last)
                if last == "redis:"
                    && ["unix:", "cluster:"].iter().any(|end| piece.starts_with(end)) =>
            {
                *last = format!("redis+{piece}").into();
            }
            _ if piece.contains(':') || piece.is_empty() => pieces.push(piece.into()),
            _ => pieces.push(format!("{piece}:").into()),
        }
    }
    pieces.join("+").into()
}

fn sized(level: Level, room: &Room) -> Result<Level, OpenError> {
    if !SIZED.contains(&level.scheme()) || level.option("size").is_some() {
        return Ok(level);
    }
    let bytes = match room.capacity_bytes {
        bytes if file::is_kept_by(&level) => bytes.max(file::MIN_BYTES),
        bytes => bytes,
    };
    Ok(level.with_option("size", haypile::ByteSize(bytes).to_string())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(text: &str) -> Result<String, SubjectError> {
        let spec = text.parse().unwrap();
        Ok(complete(&spec, &Room::new(1 << 20, 1000), Path::new("/place"))?.to_string())
    }

    #[test]
    fn what_a_name_leaves_out_is_the_experiment_s() {
        for (text, url) in [
            ("memory", "memory://?size=1MiB"),
            ("memory:policy=lru", "memory://?policy=lru&size=1MiB"),
            ("memory:size=2MiB", "memory://?size=2MiB"),
            ("file", "file:///place/cache.haypile?size=1MiB"),
            ("file:entry_size=1KiB", "file:///place/cache.haypile?entry_size=1KiB&size=1MiB"),
            ("file://?size=2MiB", "file:///place/cache.haypile?size=2MiB"),
            ("none", "none://"),
            (
                "memory+file:entry_size=1KiB",
                "memory://?size=1MiB -> file:///place/cache.haypile?entry_size=1KiB&size=1MiB",
            ),
            ("memory:size=2MiB+memcached", "memory://?size=2MiB -> memcached://"),
            (
                "memory://?size=2MiB -> redis://127.0.0.1:0",
                "memory://?size=2MiB -> redis://127.0.0.1:0",
            ),
        ] {
            assert_eq!(completed(text).unwrap(), url, "{text}");
        }
    }

    #[test]
    fn levels_do_not_share_a_place() {
        for text in ["file+file:entry_size=1KiB", "memcached+memory+memcached"] {
            let message = completed(text).unwrap_err().to_string();
            assert!(message.contains("a subject has one"), "{message}");
        }
        assert!(completed("memory:size=1MiB+memory").is_ok());
    }

    #[test]
    fn a_server_of_others_is_refused() {
        for text in [
            "memcached:127.0.0.1:11211",
            "redis://server/0",
            "memory+redis+unix:/run/x",
            "redis+cluster:127.0.0.1:7000",
            "redis://ann:hunter2@server/0",
        ] {
            let message = completed(text).unwrap_err().to_string();
            assert!(message.contains("is the subject's own"), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn a_file_somewhere_else_is_refused() {
        for text in ["file:/tmp/x", "file:///tmp/x?size=1MiB", "file:server", "memory+file:/tmp/x"]
        {
            let message = completed(text).unwrap_err().to_string();
            assert!(message.contains("which --directory says"), "{message}");
        }
    }
}
