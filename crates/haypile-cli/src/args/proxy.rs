//! Arguments of `haypile proxy`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use haypile_http::proxy::{AdminAddress, ListenAddress, OriginServer, TrustedField};
use haypile_lab::experiment::value::size;

use super::cache::Url;
use super::value::{duration, positive};

#[derive(Debug, Args)]
#[command(after_help = "\
Each response to an HTTP request says in Cache-Status what the proxy did, and if it did not store
it, why. Without --listen only programs of this machine reach the proxy. Ctrl-C, or SIGTERM, ends
it as soon as the requests that have come are answered.

Several proxies may share one cache, for example one file: each uses what the others have stored.

SIGHUP opens the access log again, after it was renamed. Its lines are in the combined format, with
the absolute URL; 'haypile simulate' and 'haypile advise' read them.

Through --admin come metrics and purges:
  curl --unix-socket /run/haypile.sock http://proxy/metrics
  curl --unix-socket /run/haypile.sock http://proxy/purge --data-urlencode url=http://example.org/a
  curl --unix-socket /run/haypile.sock http://proxy/purge -d prefix=http://example.org/img/
  curl --unix-socket /run/haypile.sock http://proxy/purge -d group=user:7 -d soft

Examples:
  haypile proxy --cache memory:size=64MiB --origin http://127.0.0.1:8000
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
    #[expect(clippy::doc_markdown, reason = "clap prints it as it stands")]
    /// Wait this long for another request to bring the same response, then ask the origin
    /// [default: compute_wait of the cache, 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) collapse_wait: Option<Duration>,
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
