//! Both forms of a URL print text that parses back to the same URL.

use std::time::Duration;

use haypile::Registry;
use haypile::memory::MemoryBuilder;
use haypile::url::{CacheUrl, Level};
use proptest::prelude::*;

fn level() -> impl Strategy<Value = Level> {
    let scheme = "[a-z][a-z0-9+.-]{0,8}";
    let server = prop_oneof![Just(String::new()), "[a-z0-9.:\\[\\]@=,+%]{1,12}", "[^/]{1,6}"];
    let path =
        prop_oneof![Just(String::new()), "/[a-z/]{0,9}", "/.{0,12}", "/( -> |[?&,+=%:/]){0,6}"];
    let options = prop::collection::vec(("[a-z0-9_-]{1,6}", ".{0,12}"), 0..4);
    (scheme, server, path, options).prop_map(|(scheme, server, path, options)| {
        let level = Level::new(&scheme).unwrap().with_server(server.replace('/', ""));
        let mut level = level.with_path(path).unwrap();
        for (name, value) in options {
            if level.option(&name).is_none() {
                level = level.with_option(name, value).unwrap();
            }
        }
        level
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_url_reads_back_from_both_forms(levels in prop::collection::vec(level(), 1..4)) {
        let url = CacheUrl::new(levels).unwrap();
        prop_assert_eq!(&url.to_string().parse::<CacheUrl>(), &Ok(url.clone()), "{}", url);
        let short = url.short().to_string();
        prop_assert_eq!(&short.parse::<CacheUrl>(), &Ok(url.clone()), "{}", short);
    }

    #[test]
    fn the_short_form_needs_no_quotes(level in level()) {
        let short = CacheUrl::from(level).short().to_string();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/:@=,+%[]".contains(&byte);
        prop_assert!(short.bytes().all(plain), "{}", short);
    }

    #[test]
    fn no_text_panics(text in ".*") {
        let _ = text.parse::<CacheUrl>();
        let _ = Registry::new().parse(&text);
    }

    #[test]
    fn a_ttl_keeps_every_nanosecond(secs in 0..u64::MAX >> 16, nanos in 1..1_000_000_000_u32) {
        let ttl = Duration::new(secs, nanos);
        let store = MemoryBuilder::new(1 << 20).ttl(Some(ttl)).store().unwrap();
        let url = Registry::new().parse(&store.describe()).unwrap();
        prop_assert_eq!(url.to_string(), store.describe());
        prop_assert_eq!(&store.url(), &url);
        let scheme = Registry::new().schemes().find(|scheme| scheme.name == "memory").unwrap();
        let level = url.levels()[0].resolve(scheme).unwrap();
        prop_assert_eq!(level.duration("ttl"), Some(ttl));
    }

    #[test]
    fn whatever_reads_reads_back(text in "[a-c:/?&,+=% >-]{0,24}") {
        if let Ok(url) = text.parse::<CacheUrl>() {
            prop_assert_eq!(url.to_string().parse(), Ok(url.clone()));
            prop_assert_eq!(url.short().to_string().parse(), Ok(url));
        }
    }
}

#[test]
fn both_forms_of_the_documented_urls_are_the_same() {
    for (canonical, short) in [
        ("memory://?size=64MiB&policy=s3fifo", "memory:size=64MiB,policy=s3fifo"),
        ("file:///var/tmp/app.haypile?size=512MiB", "file:/var/tmp/app.haypile,size=512MiB"),
        ("memcached://127.0.0.1:11211", "memcached:127.0.0.1:11211"),
        ("memcached:///run/memcached.sock", "memcached:/run/memcached.sock"),
        ("memcached://[::1]:11211", "memcached:[::1]:11211"),
        ("redis://127.0.0.1:6379/0", "redis:127.0.0.1:6379/0"),
        ("redis+unix:///run/redis.sock", "redis+unix:/run/redis.sock"),
        ("redis+cluster://127.0.0.1:7000", "redis+cluster:127.0.0.1:7000"),
        ("none://", "none:"),
        (
            "memory://?size=16MiB -> redis+unix:///run/redis.sock?ttl=1m -> none://",
            "memory:size=16MiB+redis+unix:/run/redis.sock,ttl=1m+none:",
        ),
        ("file:///a%20-%3E%20b%3F%26%2C%2B%C3%A9", "file:/a%20-%3E%20b%3F%26%2C%2B%C3%A9"),
    ] {
        let url: CacheUrl = canonical.parse().unwrap();
        assert_eq!(url.to_string(), canonical);
        assert_eq!(url.short().to_string(), short);
        assert_eq!(short.parse::<CacheUrl>().unwrap(), url);
    }
    assert_eq!("none".parse::<CacheUrl>().unwrap().to_string(), "none://");
    let escaped: CacheUrl = "file:///a%20-%3E%20b%3F%26%2C%2B%C3%A9".parse().unwrap();
    assert_eq!(escaped.levels()[0].path(), std::path::Path::new("/a -> b?&,+é"));
}

#[test]
fn a_registry_gives_the_canonical_form() {
    let registry = Registry::new();
    for (given, canonical) in [
        ("memory:", "memory://"),
        ("memory:policy=lru,size=1024KiB", "memory://?size=1MiB&policy=lru"),
        ("memory:ttl=90s", "memory://?ttl=1m30s"),
        ("memory:namespace=a b,ttl=1h", "memory://?ttl=1h&namespace=a%20b"),
        (
            "memory:policy=s3fifo:small=20:threshold=2",
            "memory://?policy=s3fifo:small=20:threshold=2",
        ),
        (
            "memory:policy=s3fifo,small=20,threshold=2",
            "memory://?policy=s3fifo:small=20:threshold=2",
        ),
        (
            "memory:policy=s3fifo:small=20,threshold=2,size=1MiB",
            "memory://?size=1MiB&policy=s3fifo:small=20:threshold=2",
        ),
        (
            "memory://?policy=s3fifo:small=20,threshold=2",
            "memory://?policy=s3fifo:small=20:threshold=2",
        ),
        ("memory://?policy=s3fifo:small=10", "memory://?policy=s3fifo"),
        (
            "memory:allow_shared=yes,persist_load=wait,persist=/a",
            "memory://?persist=/a&persist_load=wait&allow_shared=yes",
        ),
        ("file:/a,allow_shared=yes,mode=ro", "file:///a?mode=ro&allow_shared=yes"),
        ("memory:size=1MiB+none:", "memory://?size=1MiB -> none://"),
    ] {
        let url = registry.parse(given).unwrap();
        assert_eq!(url.to_string(), canonical, "{given}");
        assert_eq!(registry.resolve(&url).unwrap(), url);
        assert_eq!(registry.parse(&url.short().to_string()).unwrap(), url);
    }
}
