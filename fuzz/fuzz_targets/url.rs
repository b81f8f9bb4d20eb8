//! Any text as the name of a cache: the registry refuses it, or it has one meaning however it is
//! written, and the store that it opens stays within its limits.
//!
//! `cargo +nightly fuzz run url`; `-malloc_limit_mb=256` also finds a store that reserves memory for
//! the size that it may grow to.

#![no_main]

use haypile::url::CacheUrl;
use haypile::{Registry, SetOptions, Store, Written};
use haypile_policy::PolicySpec;
use haypile_policy::rules::memory::{MAX_SIZE_BYTES, MIN_SIZE_BYTES};
use libfuzzer_sys::fuzz_target;

/// Bytes that a message may add to the text that it is about.
const MESSAGE_BYTES: usize = 2_000;

/// Prefixes of the text, so that more texts are meaningful.
const BEGINNINGS: [&str; 4] = ["", "memory:size=", "memory:policy=", "memory://?ttl="];

fuzz_target!(|text: &str| {
    for beginning in BEGINNINGS {
        check(&format!("{beginning}{text}"));
    }
    check_policy(text);
});

fn check(text: &str) {
    let registry = Registry::new();
    check_syntax(text);
    match registry.parse(text) {
        Ok(resolved) => check_resolved(&registry, &resolved),
        Err(error) => check_message(text, &error.to_string()),
    }
    match registry.open(text) {
        Ok(store) => check_store(&registry, &*store),
        Err(error) => check_message(text, &error.to_string()),
    }
}

/// A text that parses, parses back from both of its forms.
fn check_syntax(text: &str) {
    match text.parse::<CacheUrl>() {
        Ok(url) => {
            assert_eq!(url.to_string().parse().as_ref(), Ok(&url));
            assert_eq!(url.short().to_string().parse().as_ref(), Ok(&url));
        }
        Err(error) => check_message(text, &error.to_string()),
    }
}

/// A checked URL is in its canonical form, and both forms of that mean the same.
fn check_resolved(registry: &Registry, url: &CacheUrl) {
    assert_eq!(&registry.resolve(url).expect("it was checked"), url);
    for text in [url.to_string(), url.short().to_string()] {
        assert_eq!(&registry.parse(&text).expect("it was printed"), url, "{text}");
    }
}

fn check_store(registry: &Registry, store: &dyn Store) {
    let name = store.describe();
    let url = registry.parse(&name).expect("a store can be named");
    assert_eq!(url.to_string(), name);
    let limits = store.limits();
    if let Some(capacity_bytes) = limits.capacity_bytes.filter(|_| name.starts_with("memory:")) {
        assert!((MIN_SIZE_BYTES..=MAX_SIZE_BYTES).contains(&capacity_bytes), "{name}");
    }
    for (key, value) in [("a", "1"), ("b", ""), ("a", "a longer value")] {
        // A policy may decline an entry, but nobody gets another value than the one written.
        let written = store.set(key.as_bytes(), value.as_bytes(), &SetOptions::default());
        assert_eq!(written.expect("it is small"), Written::Stored);
        let mut found = Vec::new();
        if store.get_into(key.as_bytes(), &mut found).expect("memory does not fail").is_some() {
            assert_eq!(found, value.as_bytes());
        }
        let bytes = store.bytes().expect("memory does not fail");
        assert!(limits.capacity_bytes.is_none_or(|capacity_bytes| bytes <= capacity_bytes));
    }
}

/// A policy that reads, reads back.
fn check_policy(text: &str) {
    match text.parse::<PolicySpec>() {
        Ok(spec) => assert_eq!(spec.to_string().parse().as_ref(), Ok(&spec)),
        Err(error) => check_message(text, &error.to_string()),
    }
    for part in PolicySpec::split_list(text) {
        assert!(!part.is_empty());
    }
    let _ = PolicySpec::parse_list(text);
}

fn check_message(text: &str, message: &str) {
    // A message shows the text as given, as decoded, or escaped again: three bytes for one.
    assert!(message.len() <= 3 * text.len() + MESSAGE_BYTES, "{message}");
}
