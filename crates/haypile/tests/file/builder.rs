//! Opening by a path.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use haypile::Cache;
use haypile::compress::Compression;
use haypile::file::FileBuilder;
use tempfile::tempdir;

#[test]
fn any_path_is_one_and_its_url_opens_the_same_file() {
    let folder = tempdir().unwrap();
    let names: [&[u8]; 7] = [
        b"plain",
        b"my cache, v2 + a->b",
        b"x -> memory:",
        b"50%41?#&=",
        b"size=1MiB,ttl=1s",
        b"\xFF\xFE",
        b"a\nb",
    ];
    for name in names {
        let path = folder.path().join(OsStr::from_bytes(name));
        let cache = FileBuilder::new(&path).size(1 << 20).open().unwrap();
        cache.set("key", name).unwrap();
        assert!(path.is_file(), "{}", path.display());
        let url = cache.store().describe();
        assert_eq!(Cache::open(&url).unwrap().get("key").unwrap().unwrap(), name, "{url}");
        let short = url.parse::<haypile::url::CacheUrl>().unwrap().short().to_string();
        assert_eq!(Cache::open(&short).unwrap().get("key").unwrap().unwrap(), name, "{short}");
    }
}

#[test]
fn its_options_are_those_of_a_url() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a");
    let builder =
        FileBuilder::new(&path).size(2 << 20).ttl(Duration::from_millis(90_500)).namespace("n");
    let cache = builder.compression(Compression::Lz4).option("entry_size", "1KiB").open().unwrap();
    let expected = format!(
        "file://{}?size=2MiB&entry_size=1KiB&ttl=1m30s500ms&namespace=n&compress=lz4",
        path.display()
    );
    assert_eq!(cache.store().describe(), expected);
    let reader = FileBuilder::new(&path).read_only().open().unwrap();
    assert!(reader.set("key", "value").is_err());
    let error = FileBuilder::new(&path).option("siz", "1MiB").open().unwrap_err().to_string();
    assert!(error.contains("'file' has no option 'siz'"), "{error}");
}

#[test]
fn an_option_without_effect_is_refused() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a");
    drop(FileBuilder::new(&path).open().unwrap());
    let error = FileBuilder::new(&path)
        .ttl(Duration::from_secs(1))
        .read_only()
        .open()
        .unwrap_err()
        .to_string();
    assert_eq!(error, "the option 'ttl' has no effect with mode=ro; leave out one of them");
}

#[test]
fn a_path_that_cannot_be_a_file_is_an_error_that_names_it() {
    let folder = tempdir().unwrap();
    let error = FileBuilder::new(folder.path()).open().unwrap_err().to_string();
    assert!(error.contains(&folder.path().display().to_string()), "{error}");
    assert!(FileBuilder::new("").open().is_err());
}
