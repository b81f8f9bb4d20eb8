//! The names of hosts in requests to a site's server.
//!
//! The server of a site knows a resource by host and path, and its hosts have one address. Servers of one
//! host whose URLs differ in scheme or port are different ones all the same: all but the first have a
//! name of their own here, which caches do not see.

use std::collections::{HashMap, HashSet};

use url::Url;

use crate::site::Site;

/// Scheme, host and port.
type WebOrigin = (String, String, u16);

/// The host name that requests to a site's server use for each origin (scheme, host and port) of the site.
#[derive(Debug)]
pub(super) struct WireNames(HashMap<WebOrigin, String>);

impl WireNames {
    pub(super) fn of(site: &Site) -> Self {
        let (mut names, mut hosts) = (HashMap::new(), HashSet::new());
        let urls = site.resources.iter().filter_map(|resource| Url::parse(&resource.url).ok());
        for origin in urls.filter_map(|url| origin(&url)) {
            let number = names.len();
            names.entry(origin).or_insert_with_key(|(_, host, _)| {
                let is_first = hosts.insert(host.clone());
                // RFC 2606: no host is called so.
                if is_first { host.clone() } else { format!("origin-{number}.invalid") }
            });
        }
        Self(names)
    }

    /// Returns the host name that requests for a URL of the site use, without a port; `None` if the site has no such
    /// URL.
    pub(super) fn get(&self, url: &Url) -> Option<&str> {
        self.0.get(&origin(url)?).map(String::as_str)
    }
}

fn origin(url: &Url) -> Option<WebOrigin> {
    let host = url.host_str()?.to_ascii_lowercase();
    Some((url.scheme().to_owned(), host, url.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::site::list;

    #[test]
    fn servers_of_one_host_have_names_of_their_own() {
        let text = "[one]\nhttp://a.test/ 1KB\n  http://a.test:80/x 1KB\n  https://a.test/ 1KB\n  \
                    http://a.test:8080/ 1KB\n  http://b.test/ 1KB\n";
        let names = WireNames::of(&list::parse(Path::new("site"), text.as_bytes()).unwrap().site);
        let name = |url: &str| names.get(&Url::parse(url).unwrap()).map(str::to_owned);
        assert_eq!(name("http://a.test/").unwrap(), "a.test");
        assert_eq!(name("http://A.test:80/y").unwrap(), "a.test");
        assert_eq!(name("https://a.test:443/").unwrap(), "origin-1.invalid");
        assert_eq!(name("http://a.test:8080/").unwrap(), "origin-2.invalid");
        assert_eq!(name("http://b.test/").unwrap(), "b.test");
        assert_eq!(name("http://c.test/"), None);
    }
}
