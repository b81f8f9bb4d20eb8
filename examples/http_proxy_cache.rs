//! A caching proxy of one's own, around a client of hyper: `haypile proxy` is one that does much more.
//!
//! ```sh
//! cargo run --example http_proxy_cache http://example.org
//! curl -i http://127.0.0.1:3000/
//! ```
//!
//! `http_proxy_cache ORIGIN ADDRESS` listens elsewhere; port 0 is any free one.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::error::Error;

use haypile::Cache;
use haypile_http::{Body, CacheLayer, HttpCache};
use http::header::HOST;
use http::uri::{Authority, Scheme};
use http::{Request, Uri};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tower_layer::Layer;
use tower_service::Service;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let origin = arguments.next().ok_or("usage: http_proxy_cache ORIGIN [ADDRESS]")?;
    let origin: Authority = origin.parse::<Uri>()?.authority().ok_or("no host")?.clone();
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let cache = HttpCache::builder(Cache::open("memory:size=64MiB")?).build();
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    // Its requests have absolute URIs, as those of every client.
    let cached = CacheLayer::new(cache).layer(client);
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{}/", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let (cached, origin) = (cached.clone(), origin.clone());
        let service = service_fn(move |mut request: Request<hyper::body::Incoming>| {
            let mut parts = request.uri().clone().into_parts();
            (parts.scheme, parts.authority) = (Some(Scheme::HTTP), Some(origin.clone()));
            request.headers_mut().remove(HOST);
            let mut cached = cached.clone();
            async move {
                *request.uri_mut() = Uri::from_parts(parts)?;
                cached.call(request).await
            }
        });
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new());
        tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
    }
}
