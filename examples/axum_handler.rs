//! A bounded cache in a web handler: pages that take long to make are made once each, however many clients ask.
//!
//! ```sh
//! cargo run --example axum_handler
//! curl http://127.0.0.1:3000/report/7    # half a second
//! curl http://127.0.0.1:3000/report/7    # at once, for a minute
//! curl http://127.0.0.1:3000/metrics
//! ```
//!
//! `axum_handler ADDRESS` listens elsewhere; port 0 is any free one.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use haypile::Cache;
use haypile::memory::MemoryBuilder;

const LIFE: Duration = Duration::from_mins(1);

/// Stands for a query that takes long.
async fn report(number: u32) -> Vec<u8> {
    tokio::time::sleep(Duration::from_millis(500)).await;
    format!("report {number}\n").into_bytes()
}

async fn page(State(cache): State<Cache>, Path(number): Path<u32>) -> Result<Vec<u8>, StatusCode> {
    let key = format!("report:{number}");
    let page = cache.get_or_compute_async(key, LIFE, || report(number)).await;
    page.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

async fn metrics(State(cache): State<Cache>) -> Result<String, StatusCode> {
    cache.prometheus().map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let cache: Cache = MemoryBuilder::new(64 << 20).open()?.into();
    let routes = Router::new().route("/report/{number}", get(page)).route("/metrics", get(metrics));
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{}/report/7", listener.local_addr()?);
    Ok(axum::serve(listener, routes.with_state(cache)).await?)
}
