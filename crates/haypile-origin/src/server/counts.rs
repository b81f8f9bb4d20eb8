//! Counts of a server's requests and replies, which callers compare.

use std::ops::Sub;

/// The counts of requests, replies and bytes of an origin server at one time, or, subtracted,
/// between two times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OriginCounts {
    /// The number of accepted connections; of those with TLS, the ones whose handshake succeeded.
    pub connections: u64,
    /// The number of requests whose heads the server received.
    pub requests: u64,
    /// The number of these requests that came over TLS.
    pub tls_requests: u64,
    /// The number of these requests that came over HTTP/2.
    pub http2_requests: u64,
    /// The number of connections whose TLS handshake failed: the client does not trust the certificate, asks for a host
    /// without one, does not speak TLS 1.3, or takes too long.
    pub failed_handshakes: u64,
    /// The number of connections that the server ended because their bytes were not a valid
    /// request.
    pub unreadable: u64,
    /// The number of bytes of bodies that the server sent, without the framing of chunks.
    pub body_bytes: u64,
    /// The number of replies of the server with the status 200. A reply is counted right before its
    /// head is sent.
    pub replies_200: u64,
    /// The number of replies of the server with the status 206 (partial content).
    pub replies_206: u64,
    /// The number of replies of the server with the status 304 (not modified).
    pub replies_304: u64,
    /// The number of replies of the server with any other status, and of raw replies, which need
    /// not be HTTP responses.
    pub replies_other: u64,
}

/// An origin server's counts of requests and bytes for one host and path, at one time or,
/// subtracted, between two times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathCounts {
    /// The number of requests for the path whose heads were received.
    pub requests: u64,
    /// The number of bytes of bodies that were sent for the path, without the framing of chunks.
    pub body_bytes: u64,
}

impl Sub for OriginCounts {
    type Output = Self;

    /// Returns the counts since an earlier time; 0 where the other is not earlier.
    fn sub(self, earlier: Self) -> Self {
        Self {
            connections: self.connections.saturating_sub(earlier.connections),
            requests: self.requests.saturating_sub(earlier.requests),
            tls_requests: self.tls_requests.saturating_sub(earlier.tls_requests),
            http2_requests: self.http2_requests.saturating_sub(earlier.http2_requests),
            failed_handshakes: self.failed_handshakes.saturating_sub(earlier.failed_handshakes),
            unreadable: self.unreadable.saturating_sub(earlier.unreadable),
            body_bytes: self.body_bytes.saturating_sub(earlier.body_bytes),
            replies_200: self.replies_200.saturating_sub(earlier.replies_200),
            replies_206: self.replies_206.saturating_sub(earlier.replies_206),
            replies_304: self.replies_304.saturating_sub(earlier.replies_304),
            replies_other: self.replies_other.saturating_sub(earlier.replies_other),
        }
    }
}

impl Sub for PathCounts {
    type Output = Self;

    /// Returns the counts since an earlier time; 0 where the other is not earlier.
    fn sub(self, earlier: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(earlier.requests),
            body_bytes: self.body_bytes.saturating_sub(earlier.body_bytes),
        }
    }
}
