//! Levels over Redis: a small cache in the process in front of a server that many processes share. A read that the
//! process answers costs nanoseconds in place of a round trip, and is at most `stale` old.
//!
//! ```sh
//! redis-server --port 6379 &
//! cargo run -p haypile-remote --example levels_over_redis "redis://127.0.0.1:6379?namespace=demo&ttl=10m"
//! ```

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::error::Error;

use haypile::{Cache, Registry};

fn main() -> Result<(), Box<dyn Error>> {
    let server = std::env::args().nth(1);
    let server =
        server.unwrap_or_else(|| "redis://127.0.0.1:6379?namespace=demo&ttl=10m".to_owned());
    let mut registry = Registry::new();
    haypile_remote::register(&mut registry);
    let levels = format!("memory://?size=16MiB&stale=5s -> {server}");
    let cache = Cache::new(registry.open(&levels)?);
    cache.set("user:7", "Ada")?;
    for _ in 0..1_000 {
        assert_eq!(cache.get("user:7")?.as_deref(), Some(b"Ada".as_slice()));
    }
    for level in cache.store().stats_by_level()? {
        println!("{}: {} hits", level.url, level.stats.hits);
    }
    Ok(())
}
