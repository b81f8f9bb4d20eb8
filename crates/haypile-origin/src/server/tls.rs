//! TLS of the server: a certificate authority that lives in memory, and handshakes of clients.
//!
//! Only hosts that the script names with [`on_https_host`](super::Script::on_https_host) have a certificate, so that a
//! browser that asks other hosts by itself gets no connection, and its requests are not counted.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use xxhash_rust::xxh3::xxh3_64;

/// The longest time that a client may take for its TLS handshake; a slower one is disconnected. It is long enough for
/// many concurrent handshakes over the slowest emulated link.
pub const HANDSHAKE_LIMIT: Duration = Duration::from_mins(1);

const HTTP_2: &[u8] = b"h2";
const HTTP_1: &[u8] = b"http/1.1";

/// A certificate authority for one run. Its keys are made at the start, stay in memory, and end with it.
///
/// A client of a [TLS server](super::Script::with_tls) has to trust [its certificate](Self::certificate_der).
pub struct TlsAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    /// The key of all servers. Only the certificates differ.
    server_key: KeyPair,
}

/// A certificate and its key, for a server of TLS that is not a [`ScriptedOrigin`](super::ScriptedOrigin).
#[derive(Clone, PartialEq, Eq)]
pub struct TlsIdentity {
    /// The certificate in DER; the authority has signed it, so that there is nothing between them.
    pub certificate_der: Vec<u8>,
    /// The private key in the DER of PKCS #8.
    pub key_der: Vec<u8>,
}

/// The versions of HTTP that a TLS server offers its clients (ALPN).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alpn {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2, and HTTP/1.1 for clients that do not speak it.
    Http2,
}

/// The settings of a script's TLS server.
#[derive(Clone, Debug)]
pub(super) struct TlsSettings {
    pub(super) authority: Arc<TlsAuthority>,
    pub(super) alpn: Alpn,
}

impl TlsAuthority {
    /// Makes an authority with new keys.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub fn new() -> io::Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name = name("Haypile, authority of one run");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.self_signed(&key).map_err(io::Error::other)?.into();
        let server_key = KeyPair::generate().map_err(io::Error::other)?;
        Ok(Self { issuer: Issuer::new(params, key), certificate, server_key })
    }

    /// Returns the certificate of the authority in DER, which clients have to trust.
    pub fn certificate_der(&self) -> &[u8] {
        &self.certificate
    }

    /// Returns a certificate for a host with its key.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the text is not a host name in ASCII.
    pub fn identity(&self, host: &str) -> io::Result<TlsIdentity> {
        let certificate_der = self.certificate_of(host)?.to_vec();
        Ok(TlsIdentity { certificate_der, key_der: self.server_key.serialize_der() })
    }

    fn certificate_of(&self, host: &str) -> io::Result<CertificateDer<'static>> {
        let invalid = |error| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("there is no certificate for '{host}': {error}"),
            )
        };
        let mut params = CertificateParams::new([host.to_owned()]).map_err(invalid)?;
        params.distinguished_name = name("Haypile, origin server");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        // Browsers refuse two certificates of one authority with the same number.
        params.serial_number = Some(xxh3_64(host.as_bytes()).into());
        params.signed_by(&self.server_key, &self.issuer).map(Into::into).map_err(invalid)
    }
}

fn name(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

impl fmt::Debug for TlsAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsAuthority").finish_non_exhaustive()
    }
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}

/// The certificates of hosts, made before the first handshake.
#[derive(Debug)]
struct HostCertificates(HashMap<String, Arc<CertifiedKey>>);

impl ResolvesServerCert for HostCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.get(hello.server_name()?).cloned()
    }
}

impl TlsSettings {
    /// Returns what accepts handshakes for these hosts, in TLS 1.3 alone: one round trip.
    pub(super) fn acceptor<'a>(
        &self,
        hosts: impl Iterator<Item = &'a str>,
    ) -> io::Result<TlsAcceptor> {
        let provider = Arc::new(default_provider());
        let key = PrivatePkcs8KeyDer::from(self.authority.server_key.serialize_der());
        let key = provider
            .key_provider
            .load_private_key(PrivateKeyDer::from(key))
            .map_err(io::Error::other)?;
        let certified = |host: &str| {
            let certificate = self.authority.certificate_of(host)?;
            let certified = CertifiedKey::new(vec![certificate], Arc::clone(&key));
            Ok((host.to_owned(), Arc::new(certified)))
        };
        let certificates = HostCertificates(hosts.map(certified).collect::<io::Result<_>>()?);
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(certificates));
        let offered: &[&[u8]] = match self.alpn {
            Alpn::Http1 => &[HTTP_1],
            Alpn::Http2 => &[HTTP_2, HTTP_1],
        };
        config.alpn_protocols = offered.iter().map(|version| version.to_vec()).collect();
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Shakes hands with a client, within [`HANDSHAKE_LIMIT`]. Returns the stream, and whether it carries HTTP/2; `None` if
/// there is no handshake.
pub(super) async fn shake_hands(
    acceptor: TlsAcceptor,
    stream: TcpStream,
) -> Option<(TlsStream<TcpStream>, bool)> {
    // Without it, the second write of a handshake may wait for the client's acknowledgement.
    let _ = stream.set_nodelay(true);
    let stream = timeout(HANDSHAKE_LIMIT, acceptor.accept(stream)).await.ok()?.ok()?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP_2);
    Some((stream, is_http2))
}
