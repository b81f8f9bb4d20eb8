//! Arguments of `haypile proxy`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use haypile_http::proxy::{AdminAddress, ListenAddress, OriginServer, TrustedField};
use haypile_http::{ClientNoCache, Collapse};
use haypile_lab::experiment::value::size;

use super::cache::Url;
use super::value::{duration, positive};

#[derive(Debug, Args)]
#[command(after_help = "\
Each response to an HTTP request says in Cache-Status what the proxy did, and if it did not store
it, why. Without --listen only programs of this machine reach the proxy. Ctrl-C, or SIGTERM, ends
it as soon as the requests that have come are answered.

Several proxies may share one cache, for example one file: each uses what the others have stored.

A page for an origin's failure has an id; the cause stands next to it in the error log.

SIGHUP opens the logs again, after they were renamed. Those of the access log are in the combined format, with
the absolute URL; 'haypile simulate' and 'haypile advise' read them.

Through --admin come metrics and purges:
  curl --unix-socket /run/haypile.sock http://proxy/metrics
  curl --unix-socket /run/haypile.sock http://proxy/purge --data-urlencode url=http://example.org/a
  curl --unix-socket /run/haypile.sock http://proxy/purge -d prefix=http://example.org/img/
  curl --unix-socket /run/haypile.sock http://proxy/purge -d group=user:7 -d soft

Examples:
  haypile proxy --cache memory:size=64MiB --origin http://127.0.0.1:8000
  haypile proxy --cache memory:size=64MiB --origin http://127.0.0.1:8000 \\
    --ttl 10s --ignore-cookie _ga --serve-stale 1h
  haypile proxy --cache file:/var/cache/site.haypile,size=10GiB --listen 0.0.0.0:80 \\
    --origin example.org=http://10.0.0.2:8080 --origin img.example.org=https://10.0.0.3")]
pub(crate) struct Proxy {
    #[command(flatten)]
    pub(crate) cache: CacheOption,
    /// Server that has the responses; HOST=URL for one that has those of one host only, and shows a
    /// certificate for HOST if its URL has an address. May be given several times
    #[arg(long = "origin", value_name = "[HOST=]URL", required = true)]
    pub(crate) origins: Vec<OriginServer>,
    /// Address to listen on; localhost is 127.0.0.1
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: ListenAddress,
    /// Store responses that set a cookie, and so give the cookies of one client to all others: only
    /// for origins whose cookies identify nobody
    #[arg(long)]
    pub(crate) store_set_cookie: bool,
    /// Pass this field of requests on instead of removing it, such as X-Forwarded-For: only behind
    /// another proxy that sets it. May be given several times
    #[arg(long = "trust-field", value_name = "NAME")]
    pub(crate) trusted_fields: Vec<TrustedField>,
    /// Pass larger bodies on unstored [default: a sixteenth of the cache]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) largest_body: Option<u64>,
    /// Requests that wait for the response to another's for the same: all that it may answer, of
    /// those without a cookie, or none
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Collapsed::All)]
    pub(crate) collapse: Collapsed,
    #[expect(clippy::doc_markdown, reason = "clap prints it as it stands")]
    /// Wait this long in all for other requests to bring the same response, then ask the origin. One
    /// that takes twice as long as the last time, but 1s to 5s, delays no other for longer
    /// [default: compute_wait of the cache, 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) collapse_wait: Option<Duration>,
    /// Effect of a client's 'Cache-Control: no-cache' or 'max-age=0', which browsers send on a reload:
    /// one request to the origin for each, one for all that come while another is on its way, or none
    #[arg(long, value_name = "EFFECT", value_enum, default_value_t = NoCache::Collapse)]
    pub(crate) client_no_cache: NoCache,
    /// Serve a response for this long after its lifetime while it is revalidated in the background,
    /// unless it forbids that (must-revalidate, proxy-revalidate, s-maxage, no-cache) [default: as it says
    /// in stale-while-revalidate]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) serve_stale: Option<Duration>,
    /// Keep a response fresh for this long that does not say so itself [default: a tenth of the time
    /// since its Last-Modified, a day at most]. Not if its request had a cookie or Authorization
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) ttl: Option<Duration>,
    /// The cookie of this name, or '*' for all, decides nothing about responses: --ttl holds though a
    /// request has it. May be given several times
    #[arg(long = "ignore-cookie", value_name = "NAME|*")]
    pub(crate) ignored_cookies: Vec<String>,
    /// Store bodies whose end only the end of the connection marks, as some old servers send them
    #[arg(long)]
    pub(crate) store_close_delimited: bool,
    /// Take an origin for down after this many connections that failed, without a response in between.
    /// One request at a time tries it then; others get a stale response, or 503
    #[arg(long, value_name = "N", value_parser = positive, default_value = "3")]
    pub(crate) down_after_failures: NonZeroUsize,
    /// The same after no response came in time for this many different targets
    #[arg(long, value_name = "N", value_parser = positive, default_value = "3")]
    pub(crate) down_after_slow: NonZeroUsize,
    /// Count only failures of the last such time for that
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub(crate) down_within: Duration,
    /// Wait this long for a connection to an origin
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub(crate) connect_limit: Duration,
    /// Wait this long for an origin to take the next part of a request, and for the head of its
    /// response
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) first_byte_limit: Duration,
    /// Wait this long for the next part of an origin's response
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) pause_limit: Duration,
    /// Wait this long for the next request of a client or the next part of it, for a client to take
    /// the next part of a response, and with one that has ended its side of the connection
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) client_limit: Duration,
    /// End the body of a request, or of an origin's response, that takes longer than this, however
    /// steadily it comes
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "24h")]
    pub(crate) body_limit: Duration,
    /// Close a WebSocket over which neither side has sent anything for this long
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m")]
    pub(crate) tunnel_limit: Duration,
    /// Append a line for each request to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) access_log: Option<PathBuf>,
    /// Append a line for each failure of an origin and each request that is refused to this file
    /// [default: standard error]
    #[arg(long, value_name = "FILE")]
    pub(crate) error_log: Option<PathBuf>,
    /// Answer operators (metrics, purges) at unix:PATH, for this user alone, or at ADDRESS:PORT, for
    /// whoever has the token
    #[arg(long, value_name = "WHERE")]
    pub(crate) admin: Option<AdminAddress>,
    /// File with the token that operators send as 'Authorization: Bearer TOKEN'
    #[arg(long, value_name = "FILE", requires = "admin")]
    pub(crate) admin_token_file: Option<PathBuf>,
    /// Threads that answer requests [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// When asked to end, wait this long for the requests that have come
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    pub(crate) grace: Duration,
}

/// The requests that wait.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Collapsed {
    All,
    WithoutCookie,
    Off,
}

impl From<Collapsed> for Collapse {
    fn from(collapsed: Collapsed) -> Self {
        match collapsed {
            Collapsed::All => Self::All,
            Collapsed::WithoutCookie => Self::WithoutCookie,
            Collapsed::Off => Self::Off,
        }
    }
}

/// The effect of a client's `no-cache`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum NoCache {
    Obey,
    Collapse,
    Ignore,
}

impl From<NoCache> for ClientNoCache {
    fn from(effect: NoCache) -> Self {
        match effect {
            NoCache::Obey => Self::Obey,
            NoCache::Collapse => Self::Collapse,
            NoCache::Ignore => Self::Ignore,
        }
    }
}

/// URL of the cache, as an option.
#[derive(Debug, Args)]
pub(crate) struct CacheOption {
    #[expect(clippy::doc_markdown, reason = "clap prints it as it stands")]
    /// Cache that keeps the responses, such as memory:size=64MiB or
    /// "memory:size=64MiB -> file:/var/cache/site.haypile,size=10GiB"
    #[arg(long, value_name = "URL")]
    cache: String,
}

impl CacheOption {
    pub(crate) fn url(&self) -> Url {
        Url { url: self.cache.clone().into() }
    }
}
