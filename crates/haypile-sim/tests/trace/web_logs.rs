//! Logs of web servers, proxies and content networks: what each line means for a cache.

use crate::support::{Owned, error, options, read_named, request, requests};
use haypile_sim::trace::Op::{Delete, Read};
use haypile_sim::trace::format::{Format, ReadOptions, TraceReader};
use haypile_sim::trace::{BuildOptions, Op, TraceBuilder};

/// 10 October 2000, 13:55:36 in California, in microseconds.
const TIME: u64 = 971_211_336_000_000;

fn line(request: &str, rest: &str) -> String {
    format!("h - - [10/Oct/2000:13:55:36 -0700] \"{request}\" {rest}\n")
}

/// A request for a key without a size.
fn sizeless(op: Op, key: &str, time_us: impl Into<Option<u64>>) -> Owned {
    request(op, key, None, time_us)
}

/// Reads a log whose format has to be recognised as this one.
fn read(format: Format, log: &str) -> (Vec<String>, Vec<Owned>) {
    let (report, read) = read_named("t", log.as_bytes(), &ReadOptions::default()).expect("a log");
    assert_eq!((report.format, report.bad), (format, 0), "{log}");
    assert_eq!(requests(log, &options(format)), read);
    let mut notes = report.notes;
    let before = notes.len();
    notes.retain(|note| !note.starts_with("logs do not tell which responses are private"));
    assert_eq!(notes.len() + 1, before, "one note about what no log has");
    (notes, read)
}

#[test]
fn access_logs_common_and_combined() {
    let log = concat!(
        r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif?b=c HTTP/1.0" 200 2326"#,
        "\n# a comment\n",
        r#"example.org:443 ::1 - a b [10/Oct/2000:20:55:36 +0000] "POST /x \"y\" z HTTP/1.1" "#,
        r#"201 17 "http://h/\"" "Mozilla/5.0 (X11; [en])""#,
        "\r\n",
        r#"[::1] - - [01/Jan/1970:01:00:01 +0100] "DELETE /\x22 HTTP/2.0" 204 -"#,
        "\n",
        r#"h - - [10/Oct/2000:13:55:36 -0700] "HEAD http://h/ HTTP/1.1" 304 0"#,
        "\n",
        r#"h - - [10/Oct/2000:13:55:36 -0700] "OPTIONS * HTTP/1.0" 204 0"#,
        "\n",
        r#"h - - [10/Oct/2000:13:55:36 -0700] "M-SEARCH http://h/ HTTP/1.1" 405 9"#,
        "\n",
        r#"h - - [10/Oct/2000:13:55:36 -0700] "GET /old" 200 5"#,
        "\n",
        r#"www.example.com 192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] (0 s) "GET /v HTTP/1.1" 200 6"#,
    );
    let (notes, read) = read(Format::AccessLog, log);
    assert_eq!(
        read,
        [
            request(Read, "/a.gif?b=c", 2_326, TIME),
            sizeless(Delete, r#"example.org/x \"y\" z"#, TIME),
            sizeless(Delete, r"/\x22", 1_000_000),
            sizeless(Read, "http://h/", TIME),
            request(Read, "/old", 5, TIME),
            request(Read, "www.example.com/v", 6, TIME),
        ]
    );
    assert_eq!(
        notes,
        [
            "t: left out lines: 2 with a method that no cache stores",
            "t: reads that sent no bytes (304): 1; each counts with the last known size of its URL",
            "t: requests that remove the entry of their URL (neither GET nor HEAD): 2",
            "t: 1 of 6 requests have an earlier time than one before them; they stay in the order of the file",
        ]
    );
}

/// Worked out by hand: what a cache answers of these, the entries being unlimited.
#[test]
fn methods_and_statuses_are_those_of_http() {
    let log = [
        line("GET /a HTTP/1.1", "200 900"),
        line("GET /a HTTP/1.1", "206 20"),
        line("POST /a HTTP/1.1", "500 0"),
        line("GET /a HTTP/1.1", "304 -"),
        line("POST /a HTTP/1.1", "303 0"),
        line("GET /b HTTP/1.1", "500 7"),
        line("GET /b HTTP/1.1", "404 11"),
        line("PURGE /b HTTP/1.1", "200 0"),
        line("PURGE /a HTTP/1.1", "403 0"),
        line("GET /b HTTP/1.1", "302 11"),
    ]
    .concat();
    let (notes, read) = read(Format::AccessLog, &log);
    assert_eq!(
        read,
        [
            request(Read, "/a", 900, TIME),
            sizeless(Read, "/a", TIME),
            sizeless(Delete, "/a", TIME),
            request(Read, "/b", 11, TIME),
            sizeless(Delete, "/b", TIME),
        ]
    );
    assert_eq!(
        notes,
        [
            "t: left out lines: 2 with a status that is not stored (--status selects them), 1 with a part of a value (206), 2 with a \
             change that failed",
            "t: reads that sent no bytes (304): 1; each counts with the last known size of its URL",
            "t: requests that remove the entry of their URL (neither GET nor HEAD): 2",
        ]
    );
    let nginx = ReadOptions {
        statuses: "200,301,302".parse().expect("statuses"),
        ..options(Format::AccessLog)
    };
    let statuses = requests(log, &nginx);
    assert_eq!(statuses.iter().filter(|request| request.op == Read).count(), 3);
}

/// Clients that send nothing, TLS to a port without it and OPTIONS are in every public log.
#[test]
fn lines_of_a_log_without_a_request_are_left_out_and_counted() {
    let log = [
        line("-", "400 0"),
        line(r"\x16\x03\x01\x02", "400 0"),
        line("OPTIONS * HTTP/1.1", "400 0"),
        line("GET /a HTTP/1.1", "200 0"),
    ];
    let (notes, read) = read(Format::AccessLog, &log.concat());
    assert_eq!(read.len(), 1);
    let expected =
        "t: left out lines: 2 without a request that is HTTP, 1 with a method that no cache stores";
    assert_eq!(notes, [expected]);
}

/// Requests that a proxy refused are not asked of its cache.
#[test]
fn requests_that_the_proxy_refused_are_left_out_and_counted() {
    let of = |status: u16, cache: &str| {
        line("GET /a HTTP/1.1", &format!("{status} 9 \"-\" \"detail=\" {cache}"))
    };
    let log = [
        of(421, r#""detail=\x22this host has no origin\x22" 0.000100"#),
        of(504, r#""detail=\x22only-if-cached\x22" 0.000100"#),
        of(400, r#""fwd=uri-miss; fwd-status=400" 0.000100"#),
        of(502, r#""fwd=stale; detail=\x22x\x22" 0.000100"#),
        of(404, r#""-""#),
        of(404, ""),
    ];
    let (notes, read) = read(Format::AccessLog, &log.concat());
    assert_eq!(read.len(), 2);
    let expected = "t: left out lines: 2 that were refused, 2 with a status that is not stored (--status selects them)";
    assert_eq!(notes, [expected]);
}

/// A browser that asks whether its copy is still good is sent nothing.
#[test]
fn a_page_that_was_not_modified_keeps_its_size() {
    let log = [
        line("GET /a HTTP/1.1", "200 900"),
        line("GET /a HTTP/1.1", "304 -"),
        line("GET /a HTTP/1.1", "304 0"),
        line("HEAD /a HTTP/1.1", "200 120"),
    ]
    .concat();
    let mut builder = TraceBuilder::new(BuildOptions::default());
    let reader = TraceReader::from_reader("log", log.as_bytes(), &options(Format::AccessLog));
    reader.unwrap().read(&mut builder).unwrap();
    let trace = builder.finish().unwrap();
    assert_eq!(trace.sizes().unwrap().len(), 4);
    assert!(trace.sizes().unwrap().iter().all(|size| size.get() == 900));
}

/// Servers are killed while they write, and disks fill up.
#[test]
fn a_few_torn_lines_of_a_log_are_passed_over_and_counted() {
    let log =
        ["torn\n".to_owned(), line("GET /a HTTP/1.1", "200 1"), line("GET /a HTTP/1.1", "200 1")]
            .concat();
    let (report, read) = read_named("t", log.as_bytes(), &ReadOptions::default()).expect("a log");
    assert_eq!((report.format, report.bad, read.len()), (Format::AccessLog, 1, 2));
    assert!(report.first_bad[0].to_string().starts_with("t:1: expected host ident user"));
    // Most lines are of something else.
    let other = ["torn\n".repeat(2), line("GET /a HTTP/1.1", "200 1")].concat();
    assert!(
        error(&other, &options(Format::AccessLog)).starts_with("t:1: expected host ident user")
    );
}

#[test]
fn json_of_servers_and_networks() {
    let caddy = r#"caddy-1  | {"level":"info","msg":"serving initial configuration"}
{"level":"info","ts":971211336.0,"logger":"http.log.access","request":{"method":"GET","host":"h","uri":"/a?b"},"size":9,"status":200}
{"level":"info","ts":971211336.5,"logger":"http.log.access","request":{"method":"PUT","host":"h","uri":"/a?b"},"size":0,"status":204}
"#;
    let (notes, read_caddy) = read(Format::JsonLog, caddy);
    assert_eq!(
        read_caddy,
        [request(Read, "h/a?b", 9, TIME), sizeless(Delete, "h/a?b", TIME + 500_000)]
    );
    assert_eq!(
        notes,
        [
            "t: left out lines: 1 of other events",
            "t: requests that remove the entry of their URL (neither GET nor HEAD): 1"
        ]
    );
    let nginx = r#"{"time_iso8601":"2000-10-10T13:55:36-07:00","request_method":"GET","uri":"/a","args":"b=1","status":"200","body_bytes_sent":"9","upstream_cache_status":"HIT"}
{"time_local":"10/Oct/2000:13:55:36 -0700","request":"GET /c HTTP/1.1","status":200,"bytes_sent":7,"upstream_cache_status":"MISS"}
{"msec":971211336.000,"request":"\u0016\u0003","status":400,"bytes_sent":7}
"#;
    let (notes, read_nginx) = read(Format::JsonLog, nginx);
    assert_eq!(read_nginx, [request(Read, "/a?b=1", 9, TIME), request(Read, "/c", 7, TIME)]);
    assert_eq!(
        notes,
        [
            "t: left out lines: 1 of other events",
            "t: by the log itself, a cache answered 50.0 % of 2 reads",
            "t: the sizes include the headers of responses"
        ]
    );
    let traefik = r#"{"RequestHost":"h","RequestMethod":"GET","RequestPath":"/a","DownstreamStatus":200,"DownstreamContentSize":9,"StartUTC":"2000-10-10T20:55:36Z","time":"x"}"#;
    assert_eq!(read(Format::JsonLog, traefik).1, [request(Read, "h/a", 9, TIME)]);
    for time in ["971211336000000000", "\"2000-10-10T20:55:36Z\"", "971211336"] {
        let cloudflare = format!(
            r#"{{"ClientRequestHost":"h","ClientRequestMethod":"GET","ClientRequestURI":"/a","EdgeStartTimestamp":{time},"EdgeResponseBytes":9,"EdgeResponseStatus":200,"CacheCacheStatus":"hit"}}"#
        );
        let (notes, read) = read(Format::JsonLog, &cloudflare);
        assert_eq!(read, [request(Read, "h/a", 9, TIME)]);
        assert_eq!(
            notes,
            [
                "t: by the log itself, a cache answered 100.0 % of 1 reads",
                "t: the sizes include the headers of responses"
            ]
        );
    }
}

#[test]
fn json_of_content_networks() {
    let hit = "t: by the log itself, a cache answered 100.0 % of 1 reads";
    let headers = "t: the sizes include the headers of responses";
    for (line, key, notes) in [
        (
            r#"{"timestamp":"2000-10-10T20:55:36+0000","host":"h","url":"/a","request_method":"GET","response_status":200,"response_body_size":9,"response_state":"HIT-CLUSTER"}"#,
            "h/a",
            vec![hit],
        ),
        (
            r#"{"@timestamp":"2000-10-10T20:55:36Z","host":{"name":"web1"},"http":{"request":{"method":"GET"},"response":{"status_code":200,"body":{"bytes":9}}},"url":{"domain":"h","path":"/a","query":"b=1"}}"#,
            "h/a?b=1",
            vec![],
        ),
        (
            r#"{"reqTimeSec":"971211336.000","bytes":"400","objSize":"9","statusCode":"200","reqHost":"h","reqMethod":"GET","reqPath":"/a","queryStr":"b=1","cacheStatus":"1"}"#,
            "h/a?b=1",
            vec![hit],
        ),
        (
            r#"{"httpRequest":{"requestMethod":"GET","requestUrl":"https://h/a","status":200,"responseSize":"9","cacheHit":true,"latency":"0.1s"},"timestamp":"2000-10-10T20:55:36Z"}"#,
            "https://h/a",
            vec![hit, headers],
        ),
        (
            r#"{"time":"2000-10-10T20:55:36Z","category":"FrontDoorAccessLog","properties":{"httpMethod":"GET","requestUri":"https://h:443/a","httpStatusCode":"200","responseBytes":"9","cacheStatus":"REMOTE_HIT"}}"#,
            "https://h:443/a",
            vec![hit],
        ),
        (
            r#"{"date":"2000-10-10","time":"20:55:36","cs-method":"GET","x-host-header":"h","cs-uri-stem":"/a","cs-uri-query":"-","sc-status":"200","sc-bytes":"9","x-edge-result-type":"RefreshHit"}"#,
            "h/a",
            vec![hit, headers],
        ),
        (
            r#"{"start_time":"2000-10-10T20:55:36.000Z","method":"GET","path":"/a","authority":"h","response_code":200,"bytes_sent":9}"#,
            "h/a",
            vec![],
        ),
    ] {
        let (told, read) = read(Format::JsonLog, line);
        assert_eq!((read, told), (vec![request(Read, key, 9, TIME)], strings(&notes)), "{line}");
    }
    let missed =
        r#"{"url":"/a","request_method":"GET","response_status":200,"response_state":"MISS-WAIT"}"#;
    assert_eq!(
        read(Format::JsonLog, missed).0,
        ["t: by the log itself, a cache answered 0.0 % of 1 reads"]
    );
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// As container runtimes, the journal and collectors of logs write what a server has written.
#[test]
fn json_around_lines_of_other_logs() {
    let line = r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.0\" 200 9"#;
    let inner = r#"{\"ts\":971211336,\"request\":{\"method\":\"GET\",\"host\":\"h\",\"uri\":\"/a\"},\"size\":9,\"status\":200}"#;
    for (log, key) in [
        (format!(r#"{{"log":"{line}\n","stream":"stdout","time":"2026-01-01T00:00:00Z"}}"#), "/a"),
        (format!(r#"{{"MESSAGE":"{line}","_SYSTEMD_UNIT":"nginx.service"}}"#), "/a"),
        (
            format!(
                r#"{{"message":"{line}","path":"/var/log/access.log","host":"web1","status":"info"}}"#
            ),
            "/a",
        ),
        (format!(r#"{{"log":"{inner}\n","stream":"stdout"}}"#), "h/a"),
        (format!(r#"{{"message":{},"stream":"stdout"}}"#, inner.replace('\\', "")), "h/a"),
    ] {
        let log = format!("{log}\n{{\"log\":\"ready\"}}\n{{\"log\":7}}\n{{\"log\":\"{{\"}}\n");
        let (notes, read) = read(Format::JsonLog, &log);
        assert_eq!(read, [request(Read, key, 9, TIME)], "{log}");
        assert_eq!(notes, ["t: left out lines: 3 of other events"]);
    }
    let other = error("{\"log\":\"ready\"}\n", &options(Format::JsonLog));
    assert!(other.contains("1 of other events; if its requests have other names"), "{other}");
}

#[test]
fn envoy_and_istio_begin_with_the_time() {
    let envoy = r#"[2000-10-10T20:55:36.000Z] "GET /a HTTP/1.1" 200 - 0 9 3 2 "-" "curl" "id" "h" "192.0.2.1:80"
[2000-10-10T20:55:36.000Z] "GET /a HTTP/1.1" 200 - via_upstream - "-" 0 9 3 2 "-" "curl" "id" "h" "192.0.2.1:80" outbound
[2000-10-10T20:55:36.000Z] "- - -" 0 NR filter_chain_not_found - "-" 0 0 0 - "-" "-" "-" "-" "-" - -
"#;
    let expected = request(Read, "h/a", 9, TIME);
    let (notes, read) = read(Format::AccessLog, envoy);
    assert_eq!(read, [expected.clone(), expected]);
    assert_eq!(notes, ["t: left out lines: 1 without a request that is HTTP"]);
}

#[test]
fn json_of_programs_by_paths() {
    let log = "{\"call\":{\"key\":\"user:7\",\"do\":\"get\"},\"len\":9,\"at\":971211336}\n\
               {\"call\":{\"key\":\"12\",\"do\":\"set\"},\"len\":\"8\",\"at\":971211336}\n";
    let mut asked = ReadOptions::default();
    asked.csv.set_columns("key=call.key,size=len,op=call.do,time=at").expect("columns");
    assert_eq!(
        requests(log, &asked),
        [request(Read, "user:7", 9, TIME), request(Op::Write, 12, 8, TIME)]
    );
    asked.csv.set_columns("op=none,time=none,size=none").expect("columns");
    assert_eq!(requests(log, &asked), [sizeless(Read, "user:7", None), crate::support::key(12)]);
    let other = "{\"call\":{\"key\":\"a\",\"do\":\"fly\"}}\n";
    asked.csv.set_columns("key=call.key,op=call.do").expect("columns");
    assert!(error(other, &asked).contains("expected an operation"));
    assert!(error("{\"a\":\n", &options(Format::JsonLog)).contains("expected a JSON object"));
}

#[test]
fn logs_that_name_their_fields() {
    let iis = "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n#Date: 2000-10-10 20:55:36\n\
               #Fields: time c-ip cs-method cs-uri-stem cs-uri-query sc-status sc-bytes\n\
               20:55:36 192.0.2.1 GET /a b=1 200 9\n\
               20:55:36 192.0.2.1 GET /a - 200 7\n\
               #Fields: date time cs-method cs-host cs-uri-stem sc-status\n\
               2000-10-10 20:55:37 HEAD h /a 200\n\
               2000-10-10 20:55:37 - h - -\n";
    let (notes, read_iis) = read(Format::W3c, iis);
    assert_eq!(
        read_iis,
        [
            request(Read, "/a?b=1", 9, TIME),
            request(Read, "/a", 7, TIME),
            sizeless(Read, "h/a", TIME + 1_000_000)
        ]
    );
    assert_eq!(notes, ["t: left out lines: 1 without a request that is HTTP"]);
    let cloudfront = "#Version: 1.0\n#Fields: date time sc-bytes cs-method cs(Host) cs-uri-stem sc-status cs-uri-query x-edge-result-type x-host-header\n\
        2000-10-10\t20:55:36\t182\tGET\td1.cloudfront.net\t/a\t200\t-\tRefreshHit\texample.com\n";
    let (notes, read_cloudfront) = read(Format::W3c, cloudfront);
    assert_eq!(read_cloudfront, [request(Read, "example.com/a", 182, TIME)]);
    assert_eq!(
        notes,
        [
            "t: by the log itself, a cache answered 100.0 % of 1 reads",
            "t: the sizes include the headers of responses"
        ]
    );
    let error = |log: &str| error(log, &ReadOptions::default());
    assert!(
        error("#Fields: date time x-event\n2000-10-10 20:55:36 play\n")
            .contains("sc-status in #Fields:")
    );
    assert!(
        error("#Fields: cs-uri sc-status\n/a 200 1\n")
            .contains("expected 2 columns as in #Fields:")
    );
}

#[test]
fn logs_of_proxies_and_balancers() {
    let squid = "971211336.000    15 192.0.2.1 TCP_MISS/200 1234 GET http://h/a - HIER_DIRECT/192.0.2.2 text/html\n\
                 971211336.000    15 192.0.2.1 TCP_MEM_HIT/200 1234 GET http://h/a - HIER_NONE/- text/html\n\
                 971211336.000    15 192.0.2.1 TCP_TUNNEL/200 99 CONNECT h:443 - HIER_DIRECT/192.0.2.2 -\n\
                 971211336.000    15 192.0.2.1 TCP_DENIED/407 99 GET http://h/b - HIER_NONE/- -\n";
    let (notes, read_squid) = read(Format::Squid, squid);
    assert_eq!(read_squid, vec![request(Read, "http://h/a", 1234, TIME); 2]);
    assert_eq!(
        notes,
        [
            "t: left out lines: 1 with CONNECT, of which no proxy sees the content, 1 that were refused",
            "t: by the log itself, a cache answered 50.0 % of 2 reads",
            "t: the sizes include the headers of responses",
        ]
    );
    let elb = "https 2000-10-10T20:55:36.000000Z app/b/1 1.2.3.4:2817 10.0.0.1:80 0.001 0.102 0.000 200 200 225 24950 \"GET https://h:443/a HTTP/1.1\" \"agent \\\"x\\\"\" - -\n\
               2000-10-10T20:55:36Z b 1.2.3.4:2817 10.0.0.1:80 0.001 0.102 0.000 - - 82 305 \"- - - \" \"-\" - -\n";
    let (notes, read_elb) = read(Format::Elb, elb);
    assert_eq!(read_elb, [request(Read, "https://h:443/a", 24_950, TIME)]);
    assert_eq!(notes[0], "t: left out lines: 1 without a request that is HTTP");
    let s3 = "o bucket [10/Oct/2000:20:55:36 +0000] 1.2.3.4 user ID1 WEBSITE.GET.OBJECT a/b \"GET /a/b?x HTTP/1.1\" 200 - 3 368 10 9 \"-\" \"agent\"\n\
              o bucket [10/Oct/2000:20:55:36 +0000] 1.2.3.4 user ID2 REST.PUT.OBJECT a/b \"PUT /a/b HTTP/1.1\" 200 - - 368 10 9 \"-\" \"agent\"\n\
              o bucket [10/Oct/2000:20:55:36 +0000] 1.2.3.4 user ID3 REST.GET.LOCATION - \"GET /?location HTTP/1.1\" 200 - 142 - 10 9 \"-\" \"agent\"\n";
    let (notes, read_s3) = read(Format::S3Log, s3);
    assert_eq!(
        read_s3,
        [request(Read, "bucket/a/b", 368, TIME), sizeless(Delete, "bucket/a/b", TIME)]
    );
    assert_eq!(notes[0], "t: left out lines: 1 of other events");
    let haproxy = "Oct 10 20:55:36 host haproxy[1]: Proxy front started.\n\
                   Oct 10 20:55:36 host haproxy[1]: 4.3.2.1:5 [10/Oct/2000:20:55:36.000] front~ back/s 0/0/0/72/72 200 7456 - - ---- 5/4/0/1/0 0/0 {a|b \"c\"} \"GET /a HTTP/1.1\"\n\
                   Oct 10 20:55:36 host haproxy[1]: 4.3.2.1:5 [10/Oct/2000:20:55:36.000] front back/<NOSRV> -1/-1/-1/-1/0 400 187 - - PR-- 5/4/0/1/0 0/0 \"<BADREQ>\"\n\
                   Oct 10 20:55:36 host haproxy[1]: 4.3.2.1:5 [10/Oct/2000:20:55:36.000] front/s: SSL handshake failure\n";
    let (notes, read_haproxy) = read(Format::Haproxy, haproxy);
    assert_eq!(read_haproxy, [request(Read, "/a", 7456, TIME)]);
    assert_eq!(notes[0], "t: left out lines: 1 without a request that is HTTP, 2 of other events");
}

/// A rotated day next to the day before, and one without times.
#[test]
fn logs_are_merged_by_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let fields = "#Fields: date time cs-uri-stem sc-status\n";
    let late = write("a.log", &format!("{fields}2000-10-11 00:00:00 /late 200\n"));
    let early = write("b.log", &format!("{fields}2000-10-10 00:00:00 /early 200\n"));
    let keys = |paths: &[std::path::PathBuf]| {
        let mut keys = Vec::new();
        let mut sink = |request: haypile_sim::trace::Request<'_>| {
            keys.push(Owned::from(request).key);
            Ok(())
        };
        let report = haypile_sim::trace::format::read(paths, &ReadOptions::default(), &mut sink);
        report.expect("a trace");
        keys
    };
    assert_eq!(keys(&[late.clone(), early.clone()]), ["/early", "/late"].map(Into::into));
    let timeless = write("c.log", "#Fields: cs-uri-stem sc-status\n/timeless 200\n");
    assert_eq!(keys(&[late, timeless, early]), ["/late", "/timeless", "/early"].map(Into::into));
}

/// The costs that a log states, by its lines: those of the server behind, of whole values, that no cache answered.
fn costs(format: Format, log: &str, columns: &str) -> Vec<Option<u64>> {
    let mut costs = Vec::new();
    let mut options = ReadOptions { format: Some(format), ..ReadOptions::default() };
    if !columns.is_empty() {
        options.csv.set_columns(columns).expect("it is sound");
    }
    let mut sink = |request: haypile_sim::trace::Request<'_>| {
        costs.push(request.cost_ns);
        Ok(())
    };
    TraceReader::from_reader("log", log.as_bytes(), &options)
        .expect("it is sound")
        .read(&mut sink)
        .expect("it is sound");
    costs
}

#[test]
fn a_log_states_what_misses_cost() {
    let nginx = [
        r#"{"request":"GET /a HTTP/1.1","status":200,"upstream_response_time":"0.052"}"#,
        r#"{"request":"GET /a HTTP/1.1","status":200,"upstream_response_time":"0.010, 0.002 : 0.001"}"#,
        r#"{"request":"GET /a HTTP/1.1","status":200,"upstream_response_time":"-","upstream_cache_status":"HIT"}"#,
        r#"{"request":"GET /a HTTP/1.1","status":200,"upstream_response_time":"0.9","upstream_cache_status":"REVALIDATED"}"#,
        r#"{"request":"GET /a HTTP/1.1","status":304,"upstream_response_time":"0.001"}"#,
        r#"{"request":"GET /a HTTP/1.1","status":200,"duration_ms":7.5}"#,
    ]
    .join("\n");
    let all = [Some(52_000_000), Some(13_000_000), None, None, None, None];
    assert_eq!(costs(Format::JsonLog, &nginx, ""), all);
    let by_path = costs(Format::JsonLog, &nginx, "cost=duration_ms");
    assert_eq!(by_path, [None, None, None, None, None, Some(7_500_000)]);
    assert_eq!(costs(Format::JsonLog, &nginx, "cost=none"), [None; 6]);
    let traefik = r#"{"RequestMethod":"GET","RequestPath":"/a","DownstreamStatus":200,"OriginDuration":1234567}"#;
    assert_eq!(costs(Format::JsonLog, traefik, ""), [Some(1_234_567)]);
    let cloudflare =
        r#"{"ClientRequestURI":"/a","EdgeResponseStatus":200,"OriginResponseDurationMs":81}"#;
    assert_eq!(costs(Format::JsonLog, cloudflare, ""), [Some(81_000_000)]);
    let elb = "https 2000-10-10T20:55:36.000000Z app/b/1 1.2.3.4:2817 10.0.0.1:80 0.001 0.102 0.000 200 200 225 24950 \"GET https://h:443/a HTTP/1.1\" \"-\"\n\
               https 2000-10-10T20:55:36.000000Z app/b/1 1.2.3.4:2817 - -1 -1 -1 200 - 225 24950 \"GET https://h:443/a HTTP/1.1\" \"-\"\n";
    assert_eq!(costs(Format::Elb, elb, ""), [Some(102_000_000), None]);
    let haproxy = |timers: &str| {
        format!(
            "Oct 10 20:55:36 h haproxy[1]: 4.3.2.1:5 [10/Oct/2000:20:55:36.000] f b/s {timers} 200 7 - - ---- 5/4/0/1/0 0/0 \"GET /a HTTP/1.1\"\n"
        )
    };
    assert_eq!(costs(Format::Haproxy, &haproxy("0/0/1/72/80"), ""), [Some(72_000_000)]);
    assert_eq!(costs(Format::Haproxy, &haproxy("0/0/1/-1/80"), ""), [None]);
    let squid = "1584345236.354 15 192.0.2.1 TCP_MISS/200 1234 GET http://h/ - HIER_DIRECT/192.0.2.2 text/html\n\
                 1584345237.354 2 192.0.2.1 TCP_MEM_HIT/200 1234 GET http://h/ - HIER_NONE/- text/html\n";
    assert_eq!(costs(Format::Squid, squid, ""), [Some(15_000_000), None]);
}

#[test]
fn a_column_states_what_misses_cost() {
    let csv = "key,cost_ms\na,1.5\nb,-\na,\n";
    assert_eq!(costs(Format::Csv, csv, ""), [Some(1_500_000), None, None]);
    let seconds = "key,took\na,0.25\n";
    assert_eq!(costs(Format::Csv, seconds, "cost=took"), [Some(250_000_000)]);
    assert_eq!(costs(Format::Csv, "key,cost\na,2\n", "cost=none"), [None]);
    let options = ReadOptions { format: Some(Format::Csv), ..ReadOptions::default() };
    let mut sink = |_: haypile_sim::trace::Request<'_>| Ok(());
    let bad = TraceReader::from_reader("log", &b"key,cost\na,-2\n"[..], &options);
    let error = bad.expect("it is sound").read(&mut sink).expect_err("it is bad").to_string();
    assert!(error.contains("the cost of a miss (a time: number, not negative)"), "{error}");
}
