//! Every operation, compared with a plain model.

use crate::daemon::Daemon;
use crate::program::{output, passes};

const STEPS: &str = "--steps 1500";

fn check(url: &str) {
    passes("differential", url, STEPS);
}

#[test]
fn memory_that_is_never_full() {
    check("memory:size=64MiB");
    check("memory:size=64MiB,compress=lz4,ttl=1h");
}

#[test]
fn memory_of_every_policy_that_is_full() {
    for policy in ["fifo", "lru", "slru", "clock", "sieve", "s3fifo", "wtinylfu", "arc"] {
        check(&format!("memory:size=1MiB,shards=1,policy={policy}"));
    }
}

#[test]
fn memory_of_policies_that_decline() {
    for policy in ["lirs", "slru4"] {
        check(&format!("memory:size=1MiB,shards=1,policy={policy}"));
    }
}

#[test]
#[ignore = "a shard that lacks room evicts from others before it drops what has expired there"]
fn memory_in_shards_that_is_full() {
    check("memory:size=2MiB,shards=4");
}

#[test]
fn memory_that_is_saved_and_loaded() {
    check("memory:size=2MiB,shards=1,persist={dir}/snapshot");
    check("memory:size=64MiB,persist={dir}/snapshot,persist_load=background,compress=zstd");
}

#[test]
fn a_file_through_several_handles() {
    check("file:{dir}/cache,size=16MiB");
    check("file:{dir}/cache,size=1MiB,entry_size=4KiB,ttl=1d");
}

#[test]
fn a_file_that_compresses_and_verifies() {
    check("file:{dir}/cache,size=4MiB,compress=zstd");
    check("file:{dir}/cache,size=1MiB,compress=lz4,verify=always");
}

#[test]
fn three_namespaces_of_one_file() {
    passes("differential", "file:{dir}/cache,size=16MiB", "--steps 1500 --namespaces 3");
}

#[test]
fn levels_of_two_and_three() {
    check("memory:size=64MiB,stale=1h+file:{dir}/cache,size=16MiB");
    check("memory:size=64MiB,stale=1h+memory:size=64MiB,stale=5ms+file:{dir}/cache,size=16MiB");
    check("memory:size=64MiB+memory:size=64MiB,compress=lz4");
}

#[test]
fn levels_that_write_back() {
    check("memory:size=64MiB,stale=1h,write=back+file:{dir}/cache,size=16MiB");
    check("memory:size=64MiB,write=back,write_max=20KB+memory:size=64MiB");
}

#[test]
fn levels_whose_upper_one_is_small() {
    // A value above 1 MiB has no copy.
    let options = "--steps 4000 --seed 3";
    passes("differential", "memory:size=1MiB,stale=1h+file:{dir}/cache,size=64MiB", options);
    let url = "memory:size=1MiB,stale=1h+memory:size=2MiB,stale=1h+memory:size=64MiB";
    passes("differential", url, options);
}

#[test]
fn redis() {
    let Some(daemon) = Daemon::redis() else { return };
    check(&daemon.url());
    passes("differential", &daemon.url(), "--steps 700 --namespaces 2 --longest 100KB");
}

#[test]
fn memcached() {
    let Some(daemon) = Daemon::memcached() else { return };
    check(&daemon.url());
}

#[test]
fn levels_over_servers() {
    for daemon in [Daemon::redis(), Daemon::memcached()].into_iter().flatten() {
        check(&format!("memory:size=64MiB,stale=1h+{}", daemon.url()));
    }
}

#[test]
fn a_run_repeats_and_is_shortened() {
    // A cache that may forget, of which nothing may be missing, fails.
    let fail = |options: &str| {
        let url = "memory:size=64KiB,shards=1,policy=lru";
        let options: Vec<&str> = options.split_whitespace().collect();
        let arguments =
            [vec!["differential", url, "--json", "--missing", "none"], options].concat();
        let output = output(&arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["failure"].clone()
    };
    let first = fail("--seed 7 --steps 2000 --shrink 0");
    assert_eq!(fail("--seed 7 --steps 2000 --shrink 0"), first);
    let steps = |failure: &serde_json::Value| failure["only"].as_array().expect("steps").len();
    let short = fail("--seed 7 --steps 2000 --shrink 20");
    assert!(steps(&short) < steps(&first), "{short}");
    let only: Vec<String> =
        short["only"].as_array().expect("steps").iter().map(ToString::to_string).collect();
    let again = fail(&format!("--replay 7 --steps 2000 --only {} --shrink 0", only.join(",")));
    assert_eq!(again["text"], short["text"]);
}

#[test]
fn a_wrong_url_is_an_error_of_use() {
    for url in ["memory:size=1", "unknown:", "file:{dir}/x,stale=1s"] {
        assert_eq!(output(&["differential", url]).status.code(), Some(2), "{url}");
    }
}
