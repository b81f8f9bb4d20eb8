//! `haypile proxy`

use std::process::ExitCode;

use anyhow::{Context, anyhow};
use haypile::Cache;
use haypile_http::HttpCache;
use haypile_http::proxy::{Limits, Proxy};
use haypile_http::semantics::Rules;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::proxy::Proxy as Arguments;
use crate::cache::OpenCache;

/// Answers requests until it is asked to end.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut builder = runtime::Builder::new_multi_thread();
    if let Some(threads) = arguments.threads {
        builder.worker_threads(threads.get());
    }
    builder.enable_all().build()?.block_on(serve(arguments))
}

async fn serve(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let cache = OpenCache::open(&arguments.cache.url())?;
    let proxy = proxy(arguments, &cache)?;
    let address = arguments.listen;
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| {
        format!("cannot listen on {address}; --listen ADDRESS:PORT names another")
    })?;
    // The port may have been 0.
    eprintln!("haypile: listening on http://{}", listener.local_addr()?);
    let others = if arguments.origins.len() == 1 { "all hosts" } else { "all other hosts" };
    for origin in &arguments.origins {
        let host = origin.host.as_deref().unwrap_or(others);
        eprintln!("haypile: {origin} answers for {host}");
    }
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let asked = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        eprintln!("haypile: ending; once more ends it at once");
    };
    let ended = proxy.serve(listener, asked, arguments.grace);
    let cut_off = tokio::select! {
        cut_off = ended => cut_off,
        // The first one is `asked`'s: this one comes after it.
        () = twice() => return Ok(ExitCode::from(130)),
    };
    if cut_off > 0 {
        eprintln!("haypile: {cut_off} connections were cut off after {:?}", arguments.grace);
    }
    cache.end(true)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns when the user has pressed Ctrl-C a second time.
async fn twice() {
    let Ok(mut interrupt) = signal(SignalKind::interrupt()) else {
        return std::future::pending().await;
    };
    interrupt.recv().await;
    interrupt.recv().await;
}

fn proxy(arguments: &Arguments, cache: &OpenCache) -> anyhow::Result<Proxy> {
    let rules = Rules { stores_set_cookie: arguments.store_set_cookie, ..Rules::shared() };
    let cache = Cache::new(cache.store().clone());
    let mut builder = HttpCache::builder(cache).rules(rules);
    if let Some(bytes) = arguments.largest_body {
        builder = builder.largest_body(bytes);
    }
    if let Some(wait) = arguments.collapse_wait {
        builder = builder.collapse_wait(wait);
    }
    let mut limits = Limits::default();
    limits.connect = arguments.connect_limit;
    limits.first_byte = arguments.first_byte_limit;
    limits.pause = arguments.pause_limit;
    limits.client = arguments.client_limit;
    Proxy::new(builder.build(), arguments.origins.clone(), limits).map_err(|error| anyhow!(error))
}
