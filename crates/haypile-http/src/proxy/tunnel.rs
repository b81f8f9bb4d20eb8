//! Connections that stop being HTTP: WebSocket (RFC 6455, section 4).

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, HeaderName, HeaderValue, UPGRADE};
use http::{HeaderMap, Method, Response, StatusCode, Version, request};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::time::timeout;

use super::Inner;
use crate::cache::Body;

/// The other bytes of a tunnel that are in memory at most, for each direction.
const BUFFER_BYTES: usize = 16 << 10;

/// Whether a request asks for a WebSocket, the only protocol that the proxy tunnels.
pub(super) fn is_asked_for(parts: &request::Parts) -> bool {
    parts.method == Method::GET
        && parts.version == Version::HTTP_11
        && is_websocket(&parts.headers)
        && names(&parts.headers, &CONNECTION, "upgrade")
}

fn is_websocket(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(UPGRADE).iter();
    let is_it = |line: &HeaderValue| line.as_bytes().eq_ignore_ascii_case(b"websocket");
    lines.next().is_some_and(is_it) && lines.next().is_none()
}

fn names(headers: &HeaderMap, name: &HeaderName, member: &str) -> bool {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|other| other.trim().eq_ignore_ascii_case(member))
}

/// Adds the header fields that ask an origin for a WebSocket, or agree to one (`Connection`,
/// `Upgrade`), to a message.
pub(super) fn add_fields(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
}

/// Connects a client's connection with an origin's, as a WebSocket, if the origin's response
/// agrees.
pub(super) fn join(proxy: &Arc<Inner>, client: OnUpgrade, response: &mut Response<Body>) {
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return;
    }
    let origin = response.extensions_mut().remove::<OnUpgrade>();
    add_fields(response.headers_mut());
    let (proxy, limit) = (Arc::clone(proxy), proxy.limits.tunnel);
    tokio::spawn(async move {
        let Some(origin) = origin else { return };
        let _open = proxy.metrics.tunnel();
        // The client has its response soon, or is gone.
        let both = async { tokio::try_join!(client, origin) };
        let Ok(Ok((client, origin))) = timeout(proxy.limits.client, both).await else { return };
        copy_both(client, origin, limit).await;
    });
}

/// Copies in both directions until one side ends, or both are silent for this long.
async fn copy_both(one: Upgraded, other: Upgraded, limit: Duration) {
    let (from_one, to_one) = split(TokioIo::new(one));
    let (from_other, to_other) = split(TokioIo::new(other));
    let spoken = tokio::sync::Notify::new();
    let silence = async { while timeout(limit, spoken.notified()).await.is_ok() {} };
    let copied = async {
        tokio::join!(
            copy(from_one, to_other, limit, &spoken),
            copy(from_other, to_one, limit, &spoken)
        )
    };
    tokio::select! {
        _ = copied => {}
        () = silence => {}
    }
}

async fn copy(
    mut from: ReadHalf<TokioIo<Upgraded>>,
    mut to: WriteHalf<TokioIo<Upgraded>>,
    limit: Duration,
    spoken: &tokio::sync::Notify,
) {
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Ok(length) = from.read(&mut buffer).await {
        if length == 0 {
            break;
        }
        spoken.notify_one();
        let written = timeout(limit, to.write_all(&buffer[..length])).await;
        if !matches!(written, Ok(Ok(()))) {
            break;
        }
    }
    let _ = timeout(limit, to.shutdown()).await;
}
