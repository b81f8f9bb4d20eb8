//! No text that this library writes contains a password, whatever else is wrong with the URL.

use std::error::Error;
use std::sync::Mutex;

use haypile::url::CacheUrl;
use haypile::{OpenError, Registry};
use proptest::prelude::*;

/// URLs in which `PW` stands for a password, well-formed or not. None of them reaches a server: port 1
/// refuses connections, and no name resolves.
const URLS: &[&str] = &[
    "redis://u:PW@127.0.0.1:1/0",
    "redis://:PW@127.0.0.1:1/0",
    "redis://u:PW@127.0.0.1:1/0,timeout=1s",
    "redis://u:PW@127.0.0.1:1/0?timeout",
    "redis://u:PW@127.0.0.1:1/0?timeout=1s&timeout=2s",
    "redis://u:PW@127.0.0.1:1/0?timeout=never",
    "redis://u:PW@127.0.0.1:1/0?compress=gzip",
    "redis://u:PW@127.0.0.1:1/0?tmeout=1s",
    "redis://u:PW@127.0.0.1:1/none",
    "redis://u:PW@127.0.0.1:99999",
    "redis://u:PW@127.0.0.1:1,127.0.0.1:2",
    "redis://u:PW@127.0.0.1:1/%zz",
    "redis://u:PW@%ff",
    "redis://u:PW@127.0.0.1:1->memory:",
    "redis://u:PW@127.0.0.1:1 -> memory://x",
    "memory://?sice=1MiB -> redis://u:PW@127.0.0.1:1",
    "memory://?size=1MiB -> rediss://u:PW@127.0.0.1:1",
    "memory:size=1MiB+redis:u:PW@127.0.0.1:1/0?timeout=1s",
    "memory:size=1MiB+redis:u:PW@127.0.0.1:1/0,timeout=x",
    "memory:policy=lru+redis:u:PW@127.0.0.1:1",
    "redis:u:PW@127.0.0.1:1/0",
    "redis:u:PW@127.0.0.1:1/0?timeout=1s",
    "redis:/u:PW@127.0.0.1:1",
    "redis:///u:PW@127.0.0.1:1",
    "redis//u:PW@127.0.0.1:1",
    "redis:://u:PW@127.0.0.1:1",
    "Redis://u:PW@127.0.0.1:1",
    "u:PW@127.0.0.1:1",
    "://:PW@127.0.0.1",
    ":PW@127.0.0.1",
    "redis u:PW@127.0.0.1:1",
    "redis+unix://u:PW@/run/nothing.sock",
    "redis+unix:///u:PW@/run/nothing.sock",
    "redis+unix:///:PW@nothing.sock",
    "redis+cluster://u:PW@127.0.0.1:1",
    "redis+cluster://u:PW@127.0.0.1:1/0",
    "redis+cluster://u:PW@127.0.0.1:1,127.0.0.1:1",
    "memcached://u:PW@127.0.0.1:1",
    "memcached:///u:PW@/run/nothing.sock",
    "memcached://u:PW@127.0.0.1:1/path",
    "memory://u:PW@127.0.0.1:1?size=1MiB",
    "memory:u:PW@127.0.0.1:1",
    "none://u:PW@h",
    "file://u:PW@127.0.0.1:1/nonexistent/x",
    "file:u:PW@127.0.0.1:1/nonexistent/x,size=1",
    "nothing://u:PW@h/x?y=z",
];

/// The same without an `@`: only a text that cannot be a port is known to be a password.
const URLS_WITHOUT_AT: &[&str] = &[
    "redis://u:PW",
    "redis://:PW/0",
    "redis://u:PW/0?timeout=1s",
    "redis:u:PW,timeout=1s",
    "redis+cluster://127.0.0.1:1,u:PW",
    "memcached://u:PW",
    "memory://u:PW?size=1MiB",
    "memory: -> redis://u:PW",
    "redis://u:PW->memory:",
    "redis://u:PW,timeout=1s/0?",
    "file://u:PW/nonexistent/x",
];

static LOGGED: Mutex<String> = Mutex::new(String::new());

struct Log;

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let mut logged = LOGGED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        logged.push_str(&record.args().to_string());
    }

    fn flush(&self) {}
}

/// Returns all texts that opening the URL produces.
fn texts(url: &str) -> Vec<String> {
    if log::set_logger(&Log).is_ok() {
        log::set_max_level(log::LevelFilter::Trace);
    }
    let mut registry = Registry::new();
    haypile_remote::register(&mut registry);
    let mut texts = vec![CacheUrl::redacted_text(url)];
    let mut tell = |error: &OpenError| {
        texts.push(format!("{error} {error:?} {error:#?}"));
        let mut cause = error.source();
        while let Some(error) = cause {
            texts.push(format!("{error} {error:?}"));
            cause = error.source();
        }
    };
    if let Err(error) = registry.parse(url) {
        tell(&error);
    }
    match registry.open(url) {
        Ok(store) => {
            texts.push(format!("{} {store:?}", store.describe()));
            texts.push(store.warnings().join(" "));
        }
        Err(error) => tell(&error),
    }
    let logged = &mut *LOGGED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    texts.push(std::mem::take(logged));
    texts
}

/// Checks that no part of the password is in any text.
fn check(template: &str, words: &[String], separators: &[&str]) -> Result<(), TestCaseError> {
    let mut password = String::new();
    for (at, word) in words.iter().enumerate() {
        password.push_str(word);
        if at + 1 < words.len() {
            password.push_str(separators.get(at).copied().unwrap_or("!"));
        }
    }
    let url = template.replace("PW", &password);
    for text in texts(&url) {
        for word in words {
            prop_assert!(!text.contains(word.as_str()), "{url}\n'{word}' is in: {text}");
        }
    }
    Ok(())
}

fn words() -> impl Strategy<Value = Vec<String>> {
    // No word occurs in a URL, a message or a name of an option.
    let word = prop_oneof!["[qjz]{5,9}", "[QJZ][qjz0-9_-]{4,8}"];
    prop::collection::vec(word, 1..4)
}

const SEPARATORS: &[&str] = &[
    "@",
    ":",
    "/",
    "?",
    "&",
    "=",
    ",",
    "+",
    "%",
    "%4",
    "%40",
    "->",
    " -> ",
    ">",
    " ",
    "#",
    "[",
    "]",
    "//",
    "://",
    "?x=",
    ",x=",
    "&x=",
    "+memory:",
    " -> memory://",
    "'",
    "\\",
    "é",
    "\n",
    "\0",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_text_contains_a_part_of_a_password(
        template in prop::sample::select(URLS),
        words in words(),
        separators in prop::collection::vec(prop::sample::select(SEPARATORS), 3),
    ) {
        check(template, &words, &separators)?;
    }
}

#[test]
fn a_password_without_an_at_is_hidden_where_a_port_would_be() {
    for template in URLS_WITHOUT_AT {
        for password in ["Qjz77q", "7777777"] {
            check(template, &[password.to_owned()], &[]).unwrap();
        }
    }
}
