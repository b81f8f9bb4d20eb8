//! A URL that cannot be opened is an error that lists what is allowed.

use haypile::{Cache, Registry};

fn message(url: &str) -> String {
    match Registry::new().open(url) {
        Ok(store) => panic!("{url} opened {}", store.describe()),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn says(url: &str, parts: &[&str]) {
    let message = message(url);
    for part in parts {
        assert!(message.contains(part), "{url}: '{message}' does not say '{part}'");
    }
}

#[test]
fn unknown_names_list_what_there_is() {
    says("memry:size=1MiB", &["memry", "memory, none"]);
    says("memory:sice=1MiB", &["sice", "size, policy, shards, ttl, namespace"]);
    says("memory:policy=lrx", &["lrx", "fifo, lru, slru"]);
    says("memory:policy=s3fifo:smal=1", &["smal", "small, threshold"]);
    says("memory:policy=lru,small=1", &["small", "size, policy, shards, ttl, namespace"]);
    says("memory:small=1,policy=s3fifo", &["small", "size, policy, shards, ttl, namespace"]);
    says("memory:policy=nope,small=1", &["nope", "fifo, lru"]);
    says("none:size=1MiB", &["size", "none"]);
}

#[test]
fn options_of_one_form_do_not_follow_the_place_of_the_other() {
    for url in [
        "file:/tmp/a?size=64MiB",
        "file:/tmp/a?size=64MiB&ttl=10m,mode=ro",
        "file:///tmp/a,size=64MiB",
        "file:///tmp/a,size=64MiB?ttl=10m",
        "memory:size=1MiB+file:/tmp/a?size=64MiB",
    ] {
        says(url, &["/tmp/a", "mixes two forms", "%3F for '?'"]);
    }
    let registry = Registry::new();
    for url in [
        "file:/tmp/a%3Fsize=1",
        "file:///tmp/a%2Csize=1",
        "file:///tmp/a,b",
        "memory:namespace=a?b",
    ] {
        assert!(registry.parse(url).is_ok(), "{url}");
    }
}

#[test]
fn bad_values_say_the_range() {
    says("memory:size=1", &["1 is out of range", "1KiB", "256GiB"]);
    says("memory:size=257GiB", &["257GiB", "256GiB"]);
    says("memory:size=lots", &["lots", "KiB, MiB, GiB", "KB, MB, GB"]);
    says("memory:size=-1MiB", &["-1MiB", "MiB"]);
    says("memory:size=", &["size", "no value"]);
    says("memory:policy=s3fifo:small=200", &["small", "200", " to "]);
    says("memory:ttl=30", &["ttl", "30", "500ms, 30s, 10m"]);
    says("memory:ttl=0s", &["ttl", "above zero"]);
}

#[test]
fn bad_syntax_says_the_syntax() {
    says("", &["SCHEME://", "memory:size=64MiB"]);
    says("memory: -> ", &["SCHEME://"]);
    says("memory:size=1MiB+", &["SCHEME://"]);
    says("Memory:size=1MiB", &["Memory", "lower-case"]);
    says("://", &["memory://"]);
    says("/var/tmp/app.haypile", &["/var/tmp/app.haypile", "memory://"]);
    says("memory:size=1MiB,", &["name=value"]);
    says("memory:size=1MiB,,policy=lru", &["name=value"]);
    says("memory://?size=1MiB&policy", &["'policy'", "name=value"]);
    says("memory:size=1MiB,size=2MiB", &["size", "twice"]);
    says("memory:namespace=%zz", &["%zz", "%25"]);
    says("memory:namespace=%", &["%25"]);
    says("memory:namespace=%ff", &["UTF-8"]);
    for url in [
        "memory:size=1MiB->none",
        "memory://?size=1MiB->none://",
        "memory://?size=1MiB ->none://",
        "memory://?size=1MiB-> none://",
        "memory://->none:// -> none://",
    ] {
        says(url, &["->", "a blank before and after it", "%3E"]);
    }
    assert!(Registry::new().open("memory:namespace=a-%3Eb").is_ok());
    says("memory://host", &["memory://host", "only options", "size, policy"]);
    says("memory:/path,size=1MiB", &["only options"]);
}

#[test]
fn what_is_not_there_is_said_plainly() {
    says("file:/nonexistent/app.haypile", &["/nonexistent/app.haypile", "No such file"]);
    says("file:/nonexistent/app.haypile,mode=ro", &["does not exist", "open it once for writing"]);
    says("file:/tmp", &["directory", "ordinary file"]);
    says("file:/tmp/x,size=1KiB", &["1KiB", "1MiB", "1024GiB"]);
    says("memcached://127.0.0.1:11211", &["memcached", "not registered the crate", "memory, none"]);
    says("redis://127.0.0.1:6379/0", &["redis", "the crate that opens them"]);
    says("redis+unix:/run/redis.sock", &["redis+unix", "not registered"]);
    says("redis+cluster:127.0.0.1:7000", &["redis+cluster", "the crate that opens them"]);
    says("memory:size=1MiB+redis:h", &["redis", "not registered"]);
    says("memory:compress=gzip", &["compress", "gzip", "lz4", "zstd:LEVEL", "from 1", "to 19"]);
    says("memory:compress=zstd:20", &["compress", "zstd:20", "to 19"]);
    says("memory:compress=lz4,compress_min=1", &["compress_min", "from 64 to 1GiB"]);
    says("memory:compress_min=1KiB", &["compress_min", "needs 'compress'"]);
}

#[test]
fn a_recording_needs_a_file_and_its_options_need_a_recording() {
    says("memory:record=", &["'record' has no value", "PATH.PID"]);
    says("memory:record=/tmp/", &["'/tmp/'", "cannot be the path of a file"]);
    says("memory:record=a%00b", &["'a\\0b'", "cannot be the path of a file"]);
    says("memory:record=a,record_max=1KiB", &["record_max", "1KiB", "from 1MiB to 1048576GiB"]);
    says("memory:record=a,record_keys=sha1", &["record_keys", "'sha1'", "plain, hash"]);
    says("memory:record_max=1MiB", &["'record_max' needs 'record'"]);
    says("memory:record_keys=hash", &["'record_keys' needs 'record'"]);
    says("memory:record=/nowhere/at/all", &["/nowhere/at/all", "in a directory that exists"]);
    says("none:record=/tmp/x", &["'none' has no option 'record'"]);
}

#[test]
fn a_shared_file_is_allowed_only_where_there_is_a_file() {
    says("memory:allow_shared=yes", &["'allow_shared' needs 'persist'"]);
    says("memory:allow_shared=no", &["'allow_shared' needs 'persist'"]);
    says("memory:persist=a,allow_shared=maybe", &["'maybe'", "no, yes"]);
    says("memory:persist=a,allow_shared=", &["'allow_shared' has no value"]);
    assert!(Registry::new().parse("memory:allow_shared=yes,persist=a").is_ok());
    assert!(Registry::new().parse("file:/a,allow_shared=yes").is_ok());
}

#[test]
fn a_policy_that_exceeds_the_bound_is_refused() {
    says("memory:policy=slru:overflow=1", &["slru:overflow=1", "simulate"]);
}

#[test]
fn the_policy_of_the_file_store_is_refused() {
    says("memory:policy=segment:segments=64", &["segment:segments=64", "file store", "simulate"]);
}

#[test]
fn a_cache_opens_what_the_registry_opens() {
    let cache = Cache::open("memory:").unwrap();
    assert_eq!(cache.store().describe(), "memory://?size=64MiB&policy=s3fifo");
    assert!(Cache::open("nothing:").unwrap_err().to_string().contains("none"));
}

#[test]
fn an_option_that_does_nothing_next_to_another_is_refused() {
    for (url, option, other) in [
        ("file:/tmp/a,mode=copy,size=1GiB", "size", "mode=copy"),
        ("file:/tmp/a,size=1GiB,mode=copy", "size", "mode=copy"),
        ("file:///tmp/a?verify=always&mode=copy", "verify", "mode=copy"),
        ("file:/tmp/a,mode=copy,compute_wait=1s", "compute_wait", "mode=copy"),
        ("file:/tmp/a,mode=copy,prefault=yes", "prefault", "mode=copy"),
        ("file:/tmp/a,mode=ro,recreate=yes", "recreate", "mode=ro"),
        ("file:/tmp/a,mode=ro,ttl=1h", "ttl", "mode=ro"),
        ("memory:write=through,write_max=1MiB+none:", "write_max", "write=through"),
    ] {
        says(
            url,
            &[&format!("the option '{option}' has no effect with {other}; leave out one of them")],
        );
    }
    // Those that have one.
    let registry = Registry::new();
    for url in
        ["file:/tmp/a,mode=rw,size=1GiB", "file:/tmp/a,mode=ro,verify=always,compute_wait=1s"]
    {
        assert!(registry.parse(url).is_ok(), "{url}");
    }
}

#[test]
fn options_without_effect_are_options_of_their_scheme() {
    for scheme in Registry::new().schemes() {
        for (option, other, _) in scheme.idle {
            assert!(
                scheme.option(option).is_some() && scheme.option(other).is_some(),
                "{option} {other}"
            );
        }
    }
}
