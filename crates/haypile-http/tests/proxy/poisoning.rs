//! Requests by which a client would have others get what they did not ask for.

use haypile_http::proxy::Limits;

use super::net::{Logged, body, fields, fresh, heads, origin, proxy, status};

/// Asks for a target under a `Host` as it stands here.
fn request(target: &str, host: &str, more: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n")
}

/// One host under several names has one origin and one response.
#[tokio::test]
async fn a_port_is_written_in_one_way_only() {
    for (host, expected) in [
        ("a.example:", 200),
        ("a.example:80", 200),
        ("A.Example:080", 200),
        ("a.example:65616", 400),
        ("a.example:99999999999", 400),
        ("a.example:+80", 400),
        ("a.example:8o", 400),
    ] {
        let (one, other) = (origin([fresh("one")]), origin([fresh("other")]));
        let proxy = proxy(&[&format!("a.example={}", one.url()), other.url()]).await;
        let poison = proxy.talk(request("/", host, "")).await;
        assert_eq!(status(&poison), expected, "{host}: {poison}");
        assert_eq!(other.requests(), 0, "{host}: {poison}");
        let answer = proxy.talk(request("/", "a.example", "")).await;
        assert_eq!((body(&answer), one.requests()), ("one", 1), "{host}: {answer}");
        for head in one.received() {
            let head = String::from_utf8_lossy(&head.head).into_owned();
            assert!(head.to_lowercase().contains("host: a.example\r\n"), "{host}: {head}");
            // An origin that writes links by it writes the same ones for everybody.
            assert!(head.contains("a.example\r\n"), "{host}: {head}");
        }
    }
}

/// Another port is another host: its response is its own.
#[tokio::test]
async fn the_origin_is_told_the_port_that_the_response_is_stored_under() {
    let origin = origin([fresh("x")]);
    let proxy = proxy(&[origin.url()]).await;
    for host in ["b:8080", "b", "[::1]:8080", "B:08080"] {
        proxy.talk(request("/", host, "")).await;
    }
    let seen: Vec<_> = heads(&origin)
        .iter()
        .filter_map(|head| head.lines().find_map(|line| line.strip_prefix("host: ")))
        .map(str::to_owned)
        .collect();
    assert_eq!(seen, ["b:8080", "b", "[::1]:8080"]);
}

/// The cache does not know these fields, so that the origin must not.
#[tokio::test]
async fn fields_that_move_a_request_elsewhere_do_not_reach_the_origin() {
    let origin = origin([fresh("x")]);
    let proxy = proxy(&[origin.url()]).await;
    for name in [
        "X-Forwarded-Host",
        "X-Forwarded-Port",
        "X-Forwarded-Prefix",
        "X-Forwarded-Scheme",
        "X-Forwarded-Server",
        "X-Forwarded-SSL",
        "X_Forwarded_Host",
        "X-Forwarded_Host",
        "X_Original_URL",
        "X-HTTP-Method",
        "X-Method-Override",
        "X-Host",
        "X-Real-IP",
        "Proxy",
        "Content_Length",
        "Transfer_Encoding",
    ] {
        let more = format!("{name}: poison\r\n");
        assert_eq!(status(&proxy.talk(request(&format!("/{name}"), "a", &more)).await), 200);
        let seen = heads(&origin);
        let last = seen.last().expect("it came");
        assert!(!last.contains("poison"), "{name}: {last}");
    }
}

/// `*` is for OPTIONS: RFC 9112, section 3.2.4. Its answer is none to `/*`.
#[tokio::test]
async fn an_asterisk_is_not_a_path() {
    let origin = origin([fresh("x")]);
    let proxy = proxy(&[origin.url()]).await;
    assert_eq!(status(&proxy.talk(request("*", "a", "")).await), 400);
    assert_eq!(origin.requests(), 0);
    assert_eq!(status(&proxy.talk(request("/*", "a", "")).await), 200);
    let options = "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    assert_eq!(status(&proxy.talk(options).await), 200);
    assert!(heads(&origin)[1].starts_with("options * http/1.1\r\n"), "{:?}", heads(&origin));
}

/// A client that asked for one protocol is not given another.
#[tokio::test]
async fn an_origin_that_switches_unasked_is_a_failure() {
    use haypile_origin::server::{Ending, Reply};
    let switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    let origin = origin([Reply::raw(switching).ending(Ending::Close), fields(&[], "x")]);
    let logged = Logged::new(&[origin.url()], Limits::default()).await;
    let answer = logged.proxy.talk(request("/", "a", "")).await;
    assert_eq!(status(&answer), 502, "{answer}");
    assert!(logged.line(1).await.contains("switches protocols unasked"));
    assert_eq!(status(&logged.proxy.talk(request("/", "a", "")).await), 200);
}
