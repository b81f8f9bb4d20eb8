//! The cache as a middleware of `reqwest`, in front of origins on sockets.

mod bodies;
mod caching;
mod net;
mod redirects;

use haypile::Cache;
use haypile_http::reqwest::{CacheMiddleware, CachingClientBuilder};
use haypile_http::{HttpCache, Status};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};

const FRESH: (&str, &str) = ("cache-control", "max-age=60");

fn cache() -> HttpCache {
    HttpCache::builder(Cache::open("memory:size=16MiB").expect("it opens")).build()
}

/// Returns a client that does above the cache what `reqwest` does below it.
fn client(cache: &HttpCache) -> ClientWithMiddleware {
    builder(cache).build().expect("a client")
}

fn builder(cache: &HttpCache) -> CachingClientBuilder {
    // It decodes gzip and follows redirects, unless the builder switches that off.
    CachingClientBuilder::new(cache.clone(), reqwest::Client::builder().no_proxy())
}

/// Returns a client with the cache around it, as it is.
fn around(cache: &HttpCache, client: reqwest::ClientBuilder) -> ClientWithMiddleware {
    let client = client.no_proxy().build().expect("a client");
    let middleware = CacheMiddleware::new(cache.clone(), client.clone());
    ClientBuilder::new(client).with(middleware).build()
}

fn status(response: &reqwest::Response) -> &Status {
    response.extensions().get().expect("the cache leaves it")
}

fn is_hit(response: &reqwest::Response) -> bool {
    status(response).forwarded.is_none()
}

async fn get(client: &ClientWithMiddleware, url: String) -> reqwest::Response {
    client.get(url).send().await.expect("a response")
}

/// Returns the text of a response, and whether it came from the cache.
async fn read(client: &ClientWithMiddleware, url: String) -> (String, bool) {
    let response = get(client, url).await;
    let is_hit = is_hit(&response);
    (response.text().await.expect("a whole body"), is_hit)
}
