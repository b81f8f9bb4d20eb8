//! An HTTP cache around a client of reqwest, which the next run of the program finds again.
//!
//! ```sh
//! cargo run --example http_client_cache http://127.0.0.1:3000/news
//! ```
//!
//! `http_client_cache URL CACHE` keeps responses in another cache than `file:http.haypile,size=64MiB`.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::error::Error;

use haypile::Cache;
use haypile_http::reqwest::CachingClientBuilder;
use haypile_http::{CacheMode, HttpCache, Status};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("usage: http_client_cache URL [CACHE]")?;
    let store = arguments.next().unwrap_or_else(|| "file:http.haypile,size=64MiB".to_owned());
    // The cache of one user: it may keep what is private.
    let cache = HttpCache::builder(Cache::open(&store)?).private("me").build();
    let client = CachingClientBuilder::new(cache, reqwest::Client::builder()).build()?;
    for mode in [CacheMode::Default, CacheMode::Default, CacheMode::NoCache] {
        let response = client.get(&url).with_extension(mode).send().await?;
        let status = response.extensions().get::<Status>().cloned().unwrap_or_default();
        println!("{mode:?}: {} {status}", response.status().as_u16());
        response.bytes().await?;
    }
    Ok(())
}
