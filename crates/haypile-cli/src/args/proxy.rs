//! Arguments of `haypile proxy`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use haypile::ByteSize;
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
    /// Server that has the responses; HOST=URL for a server of one host only, which shows a
    /// certificate for HOST if its URL has an address. May be given several times
    #[arg(long = "origin", value_name = "[HOST=]URL", required = true)]
    pub(crate) origins: Vec<OriginServer>,
    /// Address at which the proxy listens for requests; localhost is 127.0.0.1
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: ListenAddress,
    /// Store responses that set a cookie, and so give the cookies of one client to all others: only
    /// for origins whose cookies identify nobody
    #[arg(long)]
    pub(crate) store_set_cookie: bool,
    /// Pass this header field of requests on instead of removing it, such as X-Forwarded-For: only
    /// behind another proxy that sets it. May be given several times
    #[arg(long = "trust-field", value_name = "NAME")]
    pub(crate) trusted_fields: Vec<TrustedField>,
    /// Size of the largest response body that is stored; larger ones are passed on [default: a
    /// sixteenth of the cache]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) largest_body: Option<ByteSize>,
    /// Requests that wait for the response to another request for the same resource: all that it
    /// may answer, those without a cookie, or none
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Collapsed::All)]
    pub(crate) collapse: Collapsed,
    #[expect(clippy::doc_markdown, reason = "clap prints it as it stands")]
    /// Longest time in all that a request waits for responses to others, before it goes to the
    /// origin. A response that takes twice as long as the last time, but 1s to 5s, delays no other
    /// request for longer [default: compute_wait of the cache, 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) collapse_wait: Option<Duration>,
    /// Effect of a client's 'Cache-Control: no-cache' or 'max-age=0', which browsers send on a reload:
    /// one request to the origin for each, one for all that come while another is on its way, or none
    #[arg(long, value_name = "EFFECT", value_enum, default_value_t = NoCache::Collapse)]
    pub(crate) client_no_cache: NoCache,
    /// Serve a response for this long after its lifetime while it is revalidated in the background,
    /// unless it forbids that (must-revalidate, proxy-revalidate, s-maxage, no-cache) [default: its
    /// stale-while-revalidate]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) serve_stale: Option<Duration>,
    /// Lifetime of a response that states none [default: a tenth of the time since its
    /// Last-Modified, a day at most]. Not used if its request had a cookie or Authorization
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) ttl: Option<Duration>,
    /// The cookie of this name, or '*' for all, decides nothing about responses: --ttl holds though a
    /// request has it, and 'Vary: Cookie' does not mean it. May be given several times
    #[arg(long = "ignore-cookie", value_name = "NAME|*")]
    pub(crate) ignored_cookies: Vec<String>,
    /// Keep apart, where a response has 'Vary: Accept-Encoding', requests with codings that are not
    /// registered, for origins that send one: otherwise 'gzip, lzma' gets the response to 'gzip'
    #[arg(long)]
    pub(crate) keep_unknown_codings: bool,
    /// Store bodies whose end only the end of the connection marks, as some old servers send them
    #[arg(long)]
    pub(crate) store_close_delimited: bool,
    /// Treat an origin as down after this many connections that failed, without a response in
    /// between. One request at a time tries it then; others get a stale response, or 503
    #[arg(long, value_name = "N", value_parser = positive, default_value = "3")]
    pub(crate) down_after_failures: NonZeroUsize,
    /// Treat an origin as down after this many different URLs without a response in time; those with
    /// the same first segment count once
    #[arg(long, value_name = "N", value_parser = positive, default_value = "3")]
    pub(crate) down_after_slow: NonZeroUsize,
    /// Time within which the failures of --down-after-failures and --down-after-slow have to happen
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub(crate) down_within: Duration,
    /// Longest wait for a connection to an origin
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub(crate) connect_limit: Duration,
    /// Longest wait for an origin to take the next part of a request, and for the head of its
    /// response
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) first_byte_limit: Duration,
    /// Longest wait for the next part of an origin's response
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) pause_limit: Duration,
    /// Longest wait for a client: for its next request or the next part of it, for it to take the
    /// next part of a response, and after it has ended its side of the connection
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) client_limit: Duration,
    /// Longest time in which the whole body of a request, or of an origin's response, has to arrive
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "24h")]
    pub(crate) body_limit: Duration,
    /// Longest time for which a WebSocket may be silent before it is closed
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m")]
    pub(crate) tunnel_limit: Duration,
    /// Append a line for each request to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) access_log: Option<PathBuf>,
    /// Append a line to this file for each failure of an origin and each refused request [default:
    /// standard error]
    #[arg(long, value_name = "FILE")]
    pub(crate) error_log: Option<PathBuf>,
    /// Answer operators (metrics, purges) at unix:PATH, for this user alone, or at ADDRESS:PORT,
    /// for everybody who has the token
    #[arg(long, value_name = "WHERE")]
    pub(crate) admin: Option<AdminAddress>,
    /// File with the token that operators send as 'Authorization: Bearer TOKEN'
    #[arg(long, value_name = "FILE", requires = "admin")]
    pub(crate) admin_token_file: Option<PathBuf>,
    /// Number of threads that answer requests [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// When the proxy is asked to end, longest wait for the answers to requests that have already
    /// come
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    pub(crate) grace: Duration,
}

/// The requests that wait for the response to another request for the same resource: all, those
/// without a cookie, or none.
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

/// The effect of a client's `Cache-Control: no-cache`: a request to the origin for each, one for
/// all at the same time, or none.
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

/// The URL of a cache, as an option of a command.
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
