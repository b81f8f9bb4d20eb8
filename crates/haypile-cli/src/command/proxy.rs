//! `haypile proxy`

use std::num::NonZeroUsize;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use haypile::Cache;
use haypile_http::HttpCache;
use haypile_http::proxy::{
    AccessLog, Admin, AdminAddress, DownAfter, ErrorLog, Limits, ListenAddress, Proxy, Settings,
};
use haypile_http::semantics::{IgnoredCookies, Rules};
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::args::proxy::Proxy as Arguments;
use crate::cache::OpenCache;
use crate::interrupt;
use crate::output::note;

/// Executes `haypile proxy`: answers HTTP requests from a cache until it is asked to end.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut builder = match arguments.threads.map(NonZeroUsize::get) {
        // Nothing has to be handed from one thread to another.
        Some(1) => runtime::Builder::new_current_thread(),
        _ => runtime::Builder::new_multi_thread(),
    };
    if let Some(threads) = arguments.threads {
        builder.worker_threads(threads.get());
    }
    builder.enable_all().build()?.block_on(serve(arguments))
}

async fn serve(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let cache = OpenCache::open(&arguments.cache.url())?;
    // What the cache warns of at its opening has been printed.
    log_to_standard_error();
    let proxy = proxy(arguments, &cache)?;
    // Before anybody knows of it: a signal that comes at once must not end it in the middle of a request.
    let signals = Signals::watch()?;
    let ListenAddress(address) = arguments.listen;
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| {
        format!("cannot listen on {address}; --listen ADDRESS:PORT names another")
    })?;
    // It fails without its token, which has to be known before anybody reads that the proxy listens.
    let admin = admin(arguments, &proxy)?;
    // The port may have been 0.
    note!("haypile: listening on http://{}", listener.local_addr()?);
    let others = if arguments.origins.len() == 1 { "all hosts" } else { "all other hosts" };
    for origin in &arguments.origins {
        let host = origin.host.as_deref().unwrap_or(others);
        note!("haypile: {origin} answers for {host}");
    }
    // It is dropped, and its socket with it, when this ends.
    let mut operators = JoinSet::new();
    if let Some(admin) = admin {
        note!("haypile: metrics and purges at {}", admin.address()?);
        operators.spawn(admin.serve());
    }
    let (asked, was_asked) = oneshot::channel::<()>();
    let ended = proxy.serve(listener, async { drop(was_asked.await) }, arguments.grace);
    let cut_off = tokio::select! {
        cut_off = ended => cut_off,
        signal = signals.heed(&proxy, asked) => return Ok(ExitCode::from(interrupt::status_of(signal))),
    };
    if cut_off > 0 {
        note!("haypile: {cut_off} connections were cut off after {:?}", arguments.grace);
    }
    cache.end(true)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what the cache reports while it is in use, such as a server that no longer answers.
fn log_to_standard_error() {
    struct StandardError;

    impl log::Log for StandardError {
        fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
            metadata.target().starts_with("haypile")
        }

        fn log(&self, record: &log::Record<'_>) {
            if self.enabled(record.metadata()) {
                note!("haypile: {}", record.args());
            }
        }

        fn flush(&self) {}
    }

    if log::set_logger(&StandardError).is_ok() {
        log::set_max_level(log::LevelFilter::Info);
    }
}

/// The signals that the proxy heeds, from the moment at which they are watched.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn watch() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Asks the proxy to end at the first Ctrl-C or SIGTERM, and returns the number of the second signal.
    async fn heed(mut self, proxy: &Proxy, asked: oneshot::Sender<()>) -> i32 {
        let mut asked = Some(asked);
        loop {
            let signal = tokio::select! {
                _ = self.interrupt.recv() => SignalKind::interrupt(),
                _ = self.terminate.recv() => SignalKind::terminate(),
                _ = self.hangup.recv() => {
                    proxy.reopen_logs();
                    continue;
                }
            };
            let Some(asked) = asked.take() else { return signal.as_raw_value() };
            note!("haypile: ending; once more ends it at once");
            let _ = asked.send(());
        }
    }
}

/// Returns what answers operators, if anything is to.
fn admin(arguments: &Arguments, proxy: &Proxy) -> anyhow::Result<Option<Admin>> {
    let Some(address) = &arguments.admin else { return Ok(None) };
    let token = arguments.admin_token_file.as_ref().map(|path| {
        let token = std::fs::read_to_string(path);
        let token =
            token.with_context(|| format!("cannot read the token in {}", path.display()))?;
        let token = token.trim().to_owned();
        anyhow::ensure!(!token.is_empty(), "there is no token in {}", path.display());
        Ok(token)
    });
    let token = token.transpose()?;
    if token.is_none() && matches!(address, AdminAddress::Tcp(_)) {
        bail!("the admin address {address} needs --admin-token-file; unix:PATH needs no token");
    }
    let admin = Admin::bind(proxy, address, token);
    admin.map(Some).with_context(|| format!("cannot answer operators at {address}"))
}

fn proxy(arguments: &Arguments, cache: &OpenCache) -> anyhow::Result<Proxy> {
    let cache = Cache::new(cache.store().clone());
    let mut builder = HttpCache::builder(cache)
        .rules(rules(arguments))
        .collapse(arguments.collapse.into())
        .client_no_cache(arguments.client_no_cache.into());
    if let Some(size) = arguments.largest_body {
        builder = builder.largest_body(size.0);
    }
    if let Some(wait) = arguments.collapse_wait {
        builder = builder.collapse_wait(wait);
    }
    let mut limits = Limits::default();
    limits.connect = arguments.connect_limit;
    limits.first_byte = arguments.first_byte_limit;
    limits.pause = arguments.pause_limit;
    limits.client = arguments.client_limit;
    limits.body = arguments.body_limit;
    limits.tunnel = arguments.tunnel_limit;
    let log = arguments.access_log.as_ref().map(|path| {
        let log = AccessLog::open(path);
        log.with_context(|| format!("cannot write the access log {}", path.display()))
    });
    let error_log = match &arguments.error_log {
        None => ErrorLog::standard_error(),
        Some(path) => ErrorLog::open(path),
    };
    let mut down_after = DownAfter::default();
    down_after.connect_failures = arguments.down_after_failures.get();
    down_after.slow_targets = arguments.down_after_slow.get();
    down_after.within = arguments.down_within;
    let mut settings = Settings::default();
    settings.limits = limits;
    settings.access_log = log.transpose()?;
    settings.error_log = Some(error_log.with_context(|| {
        let path = arguments.error_log.as_deref().unwrap_or("standard error".as_ref());
        format!("cannot write the error log {}", path.display())
    })?);
    settings.down_after = down_after;
    settings.trusted_fields.clone_from(&arguments.trusted_fields);
    Proxy::new(builder.build(), arguments.origins.clone(), settings).map_err(|error| anyhow!(error))
}

/// Returns the rules that the proxy follows.
fn rules(arguments: &Arguments) -> Rules {
    let cookies = &arguments.ignored_cookies;
    let ignored_cookies = if cookies.iter().any(|name| name == "*") {
        IgnoredCookies::All
    } else {
        IgnoredCookies::Named(cookies.clone())
    };
    Rules {
        stores_set_cookie: arguments.store_set_cookie,
        stores_close_delimited: arguments.store_close_delimited,
        serve_stale: arguments.serve_stale,
        default_lifetime: arguments.ttl,
        ignored_cookies,
        keeps_unknown_codings: arguments.keep_unknown_codings,
        ..Rules::shared()
    }
}
