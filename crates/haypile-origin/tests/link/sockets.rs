//! The emulator in front of an origin server. Nothing here depends on how long something takes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haypile_origin::link::{LinkEmulator, LinkOrigins, LinkProfile};
use haypile_origin::server::{
    Alpn, BodySource, Ending, Reply, Script, ScriptedOrigin, TlsAuthority,
};
use http::Response;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

/// Longer than any machine needs; what hangs fails after it.
const LONG: Duration = Duration::from_mins(1);
const GET: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
const CLOSE: &[u8] = b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n";
const BODY_BYTES: u64 = 1_000_000;

fn origin() -> ScriptedOrigin {
    let reply = Response::new(BodySource::generated(BODY_BYTES, 3));
    ScriptedOrigin::start(Script::new([reply])).expect("a port")
}

fn start(profile: &str, origin: SocketAddr) -> LinkEmulator {
    let profile: LinkProfile = profile.parse().expect("a link");
    LinkEmulator::start(profile, 1, origin).expect("ports")
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.expect("it listens")
}

/// Sends a request, and returns all that comes and whether it ends in order.
async fn talk(address: SocketAddr, request: &[u8]) -> (Vec<u8>, bool) {
    let mut client = connect(address).await;
    client.write_all(request).await.expect("it takes it");
    let mut answer = Vec::new();
    let read = timeout(LONG, client.read_to_end(&mut answer)).await.expect("it ends");
    (answer, read.is_ok())
}

async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(LONG, wait).await.expect("it becomes so");
}

#[tokio::test]
async fn an_origin_answers_on_both_ports() {
    let origin = origin();
    let (direct, _) = talk(origin.address(), CLOSE).await;
    for profile in ["unshaped", "down=100Mbit/s,up=10Mbit/s,rtt=6ms,jitter=2ms"] {
        let link = start(profile, origin.address());
        assert_ne!(link.address(), link.tls_address());
        for (address, round_trips) in [(link.address(), 2), (link.tls_address(), 3)] {
            let start = Instant::now();
            let (answer, is_closed) = talk(address, CLOSE).await;
            assert!(answer == direct && is_closed, "{profile}: {}", answer.len());
            let profile = link.profile();
            let shortest = profile.round_trip.saturating_sub(profile.jitter) * round_trips;
            assert!(start.elapsed() >= shortest, "{profile:?}");
        }
        until(|| link.open_connections() == 0).await;
        let bytes = (link.bytes_down(), link.bytes_up());
        assert_eq!(bytes, (2 * direct.len() as u64, 2 * CLOSE.len() as u64), "{profile}");
        assert_eq!(link.connections(), 2);
        link.stop().await;
    }
    assert_eq!((origin.connections(), origin.requests()), (5, 5));
}

#[tokio::test]
async fn a_handshake_of_tls_passes_the_link_and_takes_its_round_trip() {
    let authority = Arc::new(TlsAuthority::new().expect("random numbers"));
    let script = Script::new([Response::new("http")])
        .on_https_host("a.test", "/", [Response::new("https")])
        .with_tls(Arc::clone(&authority), Alpn::Http1);
    let origin = ScriptedOrigin::start(script).expect("ports");
    let profile: LinkProfile = "rtt=20ms".parse().expect("a link");
    let origins = LinkOrigins { plain: origin.address(), tls: origin.tls_address() };
    let link = LinkEmulator::start(profile, 1, origins).expect("ports");
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from(authority.certificate_der().to_vec());
    roots.add(certificate).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let start = Instant::now();
    let name = ServerName::try_from("a.test").expect("a host name");
    let connected =
        TlsConnector::from(Arc::new(config)).connect(name, connect(link.tls_address()).await);
    let mut client = timeout(LONG, connected).await.expect("an end").expect("a handshake");
    client
        .write_all(b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n")
        .await
        .expect("it takes it");
    let mut answer = Vec::new();
    let read = timeout(LONG, client.read_to_end(&mut answer)).await.expect("it ends");
    assert!(read.is_ok() && answer.ends_with(b"https"));
    // To connect, to shake hands, and for the request.
    assert!(start.elapsed() >= Duration::from_millis(60));
    // Its bytes are those of TLS: the certificate alone has hundreds.
    assert!(link.bytes_down() > answer.len() as u64 + 300, "{}", link.bytes_down());
    let (plain, _) = talk(link.address(), CLOSE).await;
    assert!(plain.ends_with(b"http"));
    assert_eq!((link.connections(), origin.counts().tls_requests), (2, 1));
}

#[tokio::test]
async fn a_reset_of_the_origin_arrives() {
    let reply = Reply::from(Response::new("hello")).ending(Ending::Reset);
    let origin = ScriptedOrigin::start(Script::new([reply])).expect("a port");
    for profile in ["unshaped", "rtt=6ms"] {
        let link = start(profile, origin.address());
        let (answer, is_closed) = talk(link.address(), GET).await;
        assert!(answer.ends_with(b"\r\n\r\nhello") && !is_closed, "{profile}");
    }
}

#[tokio::test]
async fn a_reset_of_a_client_arrives() {
    let reply = Reply::from(Response::new("hello")).ending(Ending::Hang);
    let origin = ScriptedOrigin::start(Script::new([reply])).expect("a port");
    let link = start("rtt=2ms", origin.address());
    let mut client = connect(link.address()).await;
    client.write_all(GET).await.expect("it takes it");
    client.read_u8().await.expect("it answers");
    assert_eq!((origin.open_connections(), link.open_connections()), (1, 1));
    client.set_zero_linger().expect("a socket");
    drop(client);
    until(|| origin.open_connections() == 0 && link.open_connections() == 0).await;
}

#[tokio::test]
async fn an_origin_that_refuses_resets_the_client() {
    let origin = origin();
    let address = origin.address();
    origin.stop().await;
    let link = start("rtt=2ms", address);
    assert_eq!(talk(link.address(), b"").await, (vec![], false));
    assert_eq!(link.connections(), 0);
}

#[tokio::test]
async fn nothing_is_left_of_an_emulator() {
    let reply = Reply::raw("").ending(Ending::Hang);
    let origin = ScriptedOrigin::start_in_thread(Script::new([reply])).expect("a port");
    for drops in [false, true] {
        let link = start("3g", origin.address());
        let mut clients = Vec::new();
        for address in [link.address(), link.tls_address()] {
            let mut client = connect(address).await;
            client.write_all(GET).await.expect("it takes it");
            clients.push(client);
        }
        until(|| link.open_connections() == 2).await;
        let metrics = Handle::current().metrics();
        assert_eq!(metrics.num_alive_tasks(), 3);
        let address = link.address();
        if drops {
            drop(link);
            until(|| metrics.num_alive_tasks() == 0).await;
        } else {
            link.stop().await;
            assert_eq!(metrics.num_alive_tasks(), 0);
        }
        assert!(TcpStream::connect(address).await.is_err());
        for client in &mut clients {
            let read = timeout(LONG, client.read(&mut [0])).await.expect("it ends");
            assert_eq!(read.unwrap_or(0), 0);
        }
        until(|| origin.open_connections() == 0).await;
    }
}

#[test]
fn without_a_runtime_it_has_one_of_its_own() {
    let script = || Script::new([Response::new("hello")]);
    let origin = ScriptedOrigin::start_in_thread(script()).expect("a port");
    let profile = LinkProfile::unshaped();
    assert!(LinkEmulator::start(profile.clone(), 1, origin.address()).is_err());
    let link = LinkEmulator::start_in_thread(profile, 1, origin.address()).expect("ports");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (answer, _) = runtime.expect("a runtime").block_on(talk(link.tls_address(), CLOSE));
    assert!(answer.ends_with(b"\r\n\r\nhello"));
    let address = link.address();
    drop(link);
    assert!(std::net::TcpStream::connect(address).is_err());
}
