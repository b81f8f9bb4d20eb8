//! Several proxies on one file.

use super::net::{body, fresh_origin, proxy_on};
use haypile_http::proxy::Limits;

#[tokio::test]
async fn two_proxies_on_one_file_ask_as_one() {
    const PAGES: u64 = 50;
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("file:{}/a.haypile,size=16MiB", folder.path().display());
    let long = "x".repeat(200_000);
    let origin = fresh_origin(&long);
    let limits = Limits::default();
    let one = proxy_on(&url, &[origin.url()], limits).await;
    let other = proxy_on(&url, &[origin.url()], limits).await;
    for round in 0..2 {
        for page in 0..PAGES {
            let path = format!("/{page}");
            let (first, second) = tokio::join!(one.get(&path), other.get(&path));
            assert!(body(&first).len() == long.len() && body(&second).len() == long.len());
        }
        assert_eq!(origin.requests(), PAGES, "round {round}");
    }
}
