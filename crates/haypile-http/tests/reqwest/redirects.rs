//! Redirects, above and below the cache.

use std::error::Error;

use haypile_http::reqwest::TooManyRedirects;

use super::net::{Server, response};
use super::{FRESH, around, builder, cache, client, get, is_hit, read, status};

#[tokio::test]
async fn each_redirect_is_stored_under_its_own_url() {
    let server = Server::start(|_, seen| match seen.path() {
        "/a" => response(301, &[FRESH, ("location", "b")], "moved"),
        "/b" => response(302, &[FRESH, ("location", "/c?d=e")], ""),
        _ => response(200, &[FRESH], "c"),
    })
    .await;
    let cache = cache();
    let client = client(&cache);
    for expected in [false, true] {
        let response = get(&client, server.url("/a")).await;
        assert_eq!(response.url().as_str(), server.url("/c?d=e"));
        assert_eq!(is_hit(&response), expected);
        assert_eq!(response.text().await.expect("a body"), "c");
    }
    assert_eq!(read(&client, server.url("/b")).await, ("c".to_owned(), true));
    assert_eq!(server.requests(), 3);
    // The redirects themselves, to a client that does not follow them.
    let stopping = builder(&cache).redirects(0).build().expect("a client");
    let response = get(&stopping, server.url("/a")).await;
    assert_eq!((response.status().as_u16(), is_hit(&response)), (301, true));
    assert_eq!(response.url().as_str(), server.url("/a"));
    assert_eq!(response.text().await.expect("a body"), "moved");
}

#[tokio::test]
async fn a_client_that_follows_redirects_itself_stores_none_of_them() {
    let server = Server::start(|_, seen| match seen.path() {
        "/a" => response(301, &[FRESH, ("location", "/b")], ""),
        _ => response(200, &[FRESH], "b"),
    })
    .await;
    let client = around(&cache(), reqwest::Client::builder());
    for _ in 0..2 {
        let response = get(&client, server.url("/a")).await;
        assert_eq!(response.url().as_str(), server.url("/b"));
        assert_eq!(
            status(&response).detail.as_deref(),
            Some("not stored: the client followed a redirect")
        );
        assert!(!is_hit(&response) && !status(&response).is_stored);
        assert_eq!(response.text().await.expect("a body"), "b");
    }
    assert_eq!(server.requests(), 4);
    // What it asks for by its own URL is stored.
    assert_eq!(read(&client, server.url("/b")).await, ("b".to_owned(), false));
    assert_eq!(read(&client, server.url("/b")).await, ("b".to_owned(), true));
}

#[tokio::test]
async fn a_304_of_another_target_does_not_freshen_a_response() {
    let server = Server::start(|number, seen| match (number, seen.path()) {
        (0, _) => response(200, &[("cache-control", "max-age=0"), ("etag", "\"1\"")], "a"),
        (_, "/a") => response(302, &[("location", "/b")], ""),
        // The client sends the conditions along.
        _ if seen.field("if-none-match") == "\"1\"" => response(304, &[("etag", "\"1\"")], ""),
        _ => response(200, &[FRESH], "b"),
    })
    .await;
    let client = around(&cache(), reqwest::Client::builder());
    assert_eq!(read(&client, server.url("/a")).await, ("a".to_owned(), false));
    for _ in 0..2 {
        assert_eq!(read(&client, server.url("/a")).await, ("b".to_owned(), false));
    }
    let head = client.head(server.url("/a")).send().await.expect("a response");
    assert_eq!(head.url().path(), "/b");
    // Neither has the head of the other target changed what is stored.
    let before = server.requests();
    assert_eq!(read(&client, server.url("/a")).await, ("b".to_owned(), false));
    assert_eq!(server.seen()[before].field("if-none-match"), "\"1\"");
}

#[tokio::test]
async fn credentials_stay_with_the_origin_that_the_caller_named() {
    let other = Server::start(|_, seen| match seen.path() {
        "/x" => response(302, &[("location", "/y")], ""),
        _ => response(200, &[], "there"),
    })
    .await;
    let to_other = other.url("/x");
    let server = Server::start(move |_, seen| match seen.path() {
        "/a" => response(302, &[("location", "/b")], ""),
        _ => response(302, &[("location", &to_other)], ""),
    })
    .await;
    let client = client(&cache());
    let request = client.get(server.url("/a")).bearer_auth("secret").header("cookie", "a=b");
    let request = request.header("host", "named.example").header("x-other", "kept");
    let response = request.send().await.expect("a response");
    assert_eq!(response.url().as_str(), other.url("/y"));
    assert_eq!(response.text().await.expect("a body"), "there");
    for seen in server.seen() {
        assert_eq!((seen.field("authorization"), seen.field("cookie")), ("bearer secret", "a=b"));
    }
    let seen = other.seen();
    assert_eq!((server.requests(), seen.len()), (2, 2));
    for seen in seen {
        assert_eq!((seen.field("authorization"), seen.field("cookie")), ("", ""));
        assert_eq!(seen.field("x-other"), "kept");
        assert_ne!(seen.field("host"), "named.example");
    }
}

#[tokio::test]
async fn a_loop_ends_with_an_error() {
    for control in ["no-store", "max-age=60"] {
        let fields = [("cache-control", control), ("location", "/loop")];
        let server = Server::start(move |_, _| response(302, &fields, "")).await;
        let error = client(&cache()).get(server.url("/loop")).send().await.expect_err("it loops");
        assert_eq!(error.to_string(), TooManyRedirects(10).to_string(), "{:?}", error.source());
        assert_eq!(server.requests(), if control == "no-store" { 11 } else { 1 });
    }
}

#[tokio::test]
async fn a_redirect_to_nowhere_is_the_clients_error_or_returned() {
    let server = Server::start(|_, seen| match seen.path() {
        "/ftp" => response(302, &[("location", "ftp://example.org/")], ""),
        "/file" => response(302, &[("location", "file:///etc/passwd")], ""),
        "/strange" => response(302, &[("location", "http://")], ""),
        _ => response(302, &[], ""),
    })
    .await;
    let client = client(&cache());
    client.get(server.url("/ftp")).send().await.expect_err("it is not HTTP");
    for path in ["/file", "/strange", "/none"] {
        assert_eq!(get(&client, server.url(path)).await.status().as_u16(), 302, "{path}");
    }
}
