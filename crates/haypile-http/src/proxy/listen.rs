//! The address that the proxy listens on.

use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// The address that a proxy listens on: `127.0.0.1:8080`, `[::]:80`, or `localhost:8080`, which is
/// the same as the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAddress(pub SocketAddr);

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Any other name may have several addresses, or none as the proxy starts.
        let address = match text.split_once(':') {
            Some((host, port)) if host.eq_ignore_ascii_case("localhost") => {
                port.parse().ok().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into())
            }
            _ => text.parse().ok(),
        };
        address.map(Self).ok_or_else(|| {
            "not ADDRESS:PORT, for example 127.0.0.1:8080, 0.0.0.0:80 or [::]:80".into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_text() {
        for (text, expected) in [
            ("127.0.0.1:8080", Some("127.0.0.1:8080")),
            ("[::]:80", Some("[::]:80")),
            ("localhost:8080", Some("127.0.0.1:8080")),
            ("Localhost:0", Some("127.0.0.1:0")),
            ("8080", None),
            (":8080", None),
            ("localhost", None),
            ("localhost:99999", None),
            ("example.org:80", None),
            ("", None),
        ] {
            let found = text.parse::<ListenAddress>();
            let found = found.map(|ListenAddress(address)| address.to_string());
            let found = found.map_err(|error| assert!(error.contains("for example"), "{error}"));
            assert_eq!(found.ok().as_deref(), expected, "{text}");
        }
    }
}
