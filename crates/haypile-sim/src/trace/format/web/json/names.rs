//! Names of the members of JSON logs, by what they stand for; of several, the first that is there counts.

use super::super::super::options::TimeUnit;

pub(super) const METHOD: &[&str] = &[
    "request.method",
    "RequestMethod",
    "ClientRequestMethod",
    "request_method",
    "method",
    "http.request.method",
    "verb",
    "cs-method",
    "reqMethod",
    "httpRequest.requestMethod",
    "properties.httpMethod",
];
pub(super) const TARGET: &[&str] = &[
    "request.uri",
    "RequestPath",
    "ClientRequestURI",
    "request_uri",
    "uri",
    "path",
    "url",
    "url.original",
    "url.path",
    "cs-uri-stem",
    "reqPath",
    "httpRequest.requestUrl",
    "properties.requestUri",
];
pub(super) const REQUEST: &[&str] = &["request", "request_line"];
pub(super) const QUERY: &[&str] = &[
    "args",
    "query_string",
    "query",
    "url.query",
    "cs-uri-query",
    "queryStr",
    "properties.requestQuery",
];
pub(super) const HOST: &[&str] = &[
    "request.host",
    "RequestHost",
    "ClientRequestHost",
    "http_host",
    "host",
    "server_name",
    "vhost",
    "authority",
    "url.domain",
    "x-host-header",
    "cs(Host)",
    "reqHost",
    "properties.host",
];
pub(super) const STATUS: &[&str] = &[
    "status",
    "DownstreamStatus",
    "EdgeResponseStatus",
    "response",
    "status_code",
    "http.response.status_code",
    "response_code",
    "response_status",
    "sc-status",
    "statusCode",
    "httpRequest.status",
    "properties.httpStatusCode",
    "properties.httpStatus",
];
pub(super) const SIZE: &[&str] = &[
    "size",
    "DownstreamContentSize",
    "EdgeResponseBodyBytes",
    "EdgeResponseBytes",
    "body_bytes_sent",
    "response_body_size",
    "objSize",
    "bytes_sent",
    "bytes",
    "length",
    "http.response.body.bytes",
    "sc-bytes",
    "httpRequest.responseSize",
    "properties.responseBytes",
    "properties.sentBytes",
];
pub(super) const TIME: &[&str] = &[
    "ts",
    "StartUTC",
    "EdgeStartTimestamp",
    "time_iso8601",
    "time_local",
    "msec",
    "start_time",
    "reqTimeSec",
    "time",
    "@timestamp",
    "timestamp",
    "timeStamp",
    "date",
];
pub(super) const CACHE: &[&str] = &[
    "CacheCacheStatus",
    "upstream_cache_status",
    "cache_status",
    "cache",
    "response_state",
    "x-edge-result-type",
    "cacheStatus",
    "httpRequest.cacheHit",
    "properties.cacheStatus",
];

/// Names of members whose sizes include the headers of responses.
pub(super) const SIZE_WITH_HEADERS: &[&str] =
    &["EdgeResponseBytes", "bytes_sent", "sc-bytes", "httpRequest.responseSize"];

/// Members with a line of another log: of containers, of the journal, and of collectors of logs.
pub(super) const WRAPPED: &[&str] = &["log", "message", "MESSAGE", "textPayload"];

/// The time that the server behind took, with the unit.
pub(super) const COST: &[(&str, TimeUnit)] = &[
    ("upstream_response_time", TimeUnit::Seconds),
    ("OriginDuration", TimeUnit::Nanoseconds),
    ("OriginResponseDurationMs", TimeUnit::Milliseconds),
    ("OriginResponseTime", TimeUnit::Nanoseconds),
];
