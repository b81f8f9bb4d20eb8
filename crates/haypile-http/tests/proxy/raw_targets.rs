//! Targets with bytes that no URI may have.

use haypile_origin::server::ScriptedOrigin;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::net::{LONG, body, fresh_origin, proxy, status};

/// The bytes that a target may have, but for a fragment's.
const OF_URIS: &str =
    "!$%&'()*+,-./0123456789:;=?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_abcdefghijklmnopqrstuvwxyz~";

/// Returns the first lines of all requests that an origin has received.
fn lines(origin: &ScriptedOrigin) -> Vec<String> {
    let first = |head: &[u8]| String::from_utf8_lossy(head).lines().next().map(str::to_owned);
    origin.received().iter().filter_map(|request| first(&request.head)).collect()
}

#[tokio::test]
async fn targets_as_people_type_them_are_encoded_for_the_cache_and_the_origin() {
    let origin = fresh_origin("ok");
    let proxy = proxy(&[origin.url()]).await;
    let all = (0x21..=0xFF).filter(|byte| ![b'#', 0x7F].contains(byte)).collect::<Vec<u8>>();
    for (target, expected) in [
        (&b"/a?q={\"a\":[1,\"x\"],\"b\":{}}"[..], "/a?q=%7B%22a%22:[1,%22x%22],%22b%22:%7B%7D%7D"),
        (b"/{\"a\"}", "/%7B%22a%22%7D"),
        ("/ü/€?😀".as_bytes(), "/%C3%BC/%E2%82%AC?%F0%9F%98%80"),
        // ISO 8859-1, as old applications send it.
        (b"/M\xFCller", "/M%FCller"),
        (b"/<a>`b`|c^d\\e", "/%3Ca%3E%60b%60%7Cc%5Ed%5Ce"),
        (b"http://example.org/{x}?\"y\"", "/%7Bx%7D?%22y%22"),
    ] {
        let before = origin.requests();
        for (target, cache) in [
            (target, "haypile; fwd=uri-miss"),
            (target, "haypile; hit"),
            (expected.as_bytes(), "haypile; hit"),
        ] {
            let head =
                [b"GET ", target, b" HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n"];
            let answer = proxy.talk(head.concat()).await;
            let shown = target.escape_ascii();
            assert_eq!((status(&answer), body(&answer)), (200, "ok"), "{shown}: {answer}");
            assert!(answer.contains(cache), "{shown}: {answer}");
        }
        assert_eq!(origin.requests(), before + 1);
        assert_eq!(lines(&origin).pop().expect("it came"), format!("GET {expected} HTTP/1.1"));
    }
    // All that a target may have, and all that it may not.
    let encode = |byte: &u8| {
        if OF_URIS.contains(char::from(*byte)) && byte.is_ascii() {
            char::from(*byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    let expected: String = all.iter().map(encode).collect();
    let head =
        [b"GET /", &all[..], b"?", &all[..], b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"];
    let answer = proxy.talk(head.concat()).await;
    assert_eq!(status(&answer), 200, "{answer}");
    let line = lines(&origin).pop().expect("it came");
    assert_eq!(line, format!("GET /{expected}?{expected} HTTP/1.1"));
}

/// A conversation whose bodies look like requests, with what the origin gets of it.
const SENT: &str = "GET /1{ HTTP/1.1\r\nHost: a\r\nCookie: a={b}\r\n\r\n\
    POST /2| HTTP/1.1\r\nHost: a\r\nContent-Length: 36\r\n\r\n\r\n\r\nGET /{ HTTP/1.1\r\nHost: {\"a\"}\r\n\r\n\
    PUT /3^ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
    1d\r\n\r\nGET /{ HTTP/1.1\r\nHost: {}\r\n\r\n1\r\n}\r\n0\r\n\r\n\
    GET /4` HTTP/1.1\r\nHost: a\r\n\r\n\
    POST /5{ HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n{}|\
    GET /6\" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n\
    GET /{smuggled} HTTP/1.1\r\nHost: a\r\n\r\n";
const RECEIVED: [(&str, &str); 6] = [
    ("GET /1%7B HTTP/1.1", ""),
    ("POST /2%7C HTTP/1.1", "\r\n\r\nGET /{ HTTP/1.1\r\nHost: {\"a\"}\r\n\r\n"),
    ("PUT /3%5E HTTP/1.1", "\r\nGET /{ HTTP/1.1\r\nHost: {}\r\n}"),
    ("GET /4%60 HTTP/1.1", ""),
    ("POST /5%7B HTTP/1.1", "{}|"),
    ("GET /6%22 HTTP/1.1", ""),
];

#[tokio::test]
async fn what_follows_a_request_is_a_request_or_a_body_as_before() {
    let step = SENT.len() / 7;
    let mut splits: Vec<Vec<usize>> = vec![vec![], (1..SENT.len()).step_by(step).collect()];
    splits.push((1..SENT.len()).collect());
    splits.extend((1..SENT.len()).step_by(3).map(|split| vec![split]));
    for split in splits {
        let origin = fresh_origin("ok");
        let proxy = proxy(&[origin.url()]).await;
        let mut client = TcpStream::connect(&proxy.address).await.expect("it listens");
        client.set_nodelay(true).expect("a socket");
        let ends = split.iter().copied().chain([SENT.len()]);
        let mut begin = 0;
        for end in ends {
            // It fails behind the last request, where the proxy has ended the connection.
            let _ = client.write_all(&SENT.as_bytes()[begin..end]).await;
            // The proxy is to see that much alone.
            tokio::task::yield_now().await;
            begin = end;
        }
        let mut answers = Vec::new();
        let _ = timeout(LONG, client.read_to_end(&mut answers)).await.expect("it ends");
        let received = origin.received();
        let received: Vec<_> = received
            .iter()
            .map(|request| {
                let head = String::from_utf8_lossy(&request.head);
                let line = head.lines().next().unwrap_or_default().to_owned();
                assert!(request.is_whole, "{split:?}: {head}");
                assert!(!line.contains("/1%") || head.contains("cookie: a={b}\r\n"), "{head}");
                (line, String::from_utf8_lossy(&request.body).into_owned())
            })
            .collect();
        let expected = RECEIVED.map(|(line, body)| (line.to_owned(), body.to_owned()));
        assert_eq!(received, expected, "{split:?}");
        assert_eq!(origin.unreadable(), 0);
    }
}

#[tokio::test]
async fn what_is_not_a_target_is_refused_as_before() {
    for target in
        ["/a b", "/a\x7Fb", "/a\0b", "/a\tb", "/a\rb", "{a}", "http://{a}/", "http://a{/b", ""]
    {
        let origin = fresh_origin("ok");
        let proxy = proxy(&[origin.url()]).await;
        let answer = proxy.talk(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        assert_eq!((status(&answer), origin.requests()), (400, 0), "{target:?}: {answer}");
    }
    // A target that is too long only once it is encoded.
    let origin = fresh_origin("ok");
    let proxy = proxy(&[origin.url()]).await;
    for (length, expected) in [(10_000, 200), (30_000, 431)] {
        let target = "{".repeat(length);
        let head = format!("GET /{target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&proxy.talk(head).await), expected, "{length}");
    }
}
