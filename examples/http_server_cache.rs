//! An HTTP cache around a server's routes: what a page says in `Cache-Control` and `Vary` decides.
//!
//! ```sh
//! cargo run --example http_server_cache
//! curl -i http://127.0.0.1:3000/news        # half a second; cache-status: ... stored
//! curl -i http://127.0.0.1:3000/news        # at once; cache-status: haypile; hit; ttl=60
//! curl -i http://127.0.0.1:3000/account     # for one user: never stored
//! ```
//!
//! `http_server_cache ADDRESS` listens elsewhere; port 0 is any free one.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::header::CACHE_CONTROL;
use axum::response::IntoResponse;
use axum::routing::get;
use haypile::Cache;
use haypile_http::{CacheLayer, HttpCache};

/// The number of pages that were made.
static MADE: AtomicU32 = AtomicU32::new(0);

async fn page(control: &'static str) -> impl IntoResponse {
    tokio::time::sleep(Duration::from_millis(500)).await;
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    ([(CACHE_CONTROL, control)], format!("page {number}\n"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let cache = HttpCache::builder(Cache::open("memory:size=64MiB")?).build();
    let routes = Router::new()
        .route("/news", get(|| page("max-age=60, stale-while-revalidate=600")))
        .route("/account", get(|| page("private")))
        .layer(CacheLayer::server(cache));
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{}/news", listener.local_addr()?);
    Ok(axum::serve(listener, routes).await?)
}
