//! Invalidation by unsafe requests: RFC 9111, section 4.4.

use http::header::{CONTENT_LOCATION, LOCATION};
use http::uri::Scheme;
use http::{HeaderName, Method, Uri, response};

use super::list::members;
use super::rules::Rules;
use super::target::Target;

const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

/// Returns the URLs whose stored responses a response invalidates: if its method is unsafe and it
/// is not an error, the request's own, and those of `Location` and `Content-Location` with the same
/// origin. Otherwise any origin could invalidate another's responses.
pub fn invalidated_by(method: &Method, target: &Target, response: &response::Parts) -> Vec<Target> {
    if !may_have_changed(method, response) {
        return Vec::new();
    }
    let fields = [LOCATION, CONTENT_LOCATION];
    let references = fields.iter().flat_map(|name| response.headers.get_all(name));
    let targets = references.filter_map(|reference| target.resolve(reference.as_bytes()));
    let mut targets: Vec<_> = targets.filter(|other| other.origin() == target.origin()).collect();
    targets.push(target.clone());
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// Whether a request may have changed something, by its response: its method is unsafe, or unknown,
/// and the response is not an error.
pub(super) fn may_have_changed(method: &Method, response: &response::Parts) -> bool {
    !method.is_safe() && (response.status.is_success() || response.status.is_redirection())
}

/// Whether a response asks a user's private cache to forget everything from its origin
/// (`Clear-Site-Data`): <https://www.w3.org/TR/clear-site-data/>, for secure origins alone. It is
/// none of a shared cache's business, from which any user could clear it.
pub fn clears_origin(rules: &Rules, target: &Uri, response: &response::Parts) -> bool {
    let means_cache = |member: &[u8]| [&b"\"cache\""[..], b"\"*\""].contains(&member);
    !rules.is_shared()
        && target.scheme() == Some(&Scheme::HTTPS)
        && members(&response.headers, &CLEAR_SITE_DATA).any(means_cache)
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    fn invalidated(method: &str, status: u16, fields: &[(&str, &str)]) -> Vec<String> {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        let (response, ()) = response.body(()).expect("a response").into_parts();
        let target =
            Target::of(&"http://example.org/a?b".parse().expect("a URI")).expect("absolute");
        let method = method.parse().expect("a method");
        let targets = invalidated_by(&method, &target, &response);
        targets.iter().map(|target| target.path().to_owned()).collect()
    }

    #[test]
    fn origins_that_a_response_clears() {
        let (shared, private) = (Rules::shared(), Rules::private());
        for (rules, uri, value, expected) in [
            (&private, "https://a/b", "\"cache\"", true),
            (&private, "https://a/b", "\"cookies\", \"cache\"", true),
            (&private, "https://a/b", "\"*\"", true),
            (&private, "https://a/b", "\"cookies\"", false),
            (&private, "https://a/b", "cache", false),
            (&private, "http://a/b", "\"cache\"", false),
            (&shared, "https://a/b", "\"cache\"", false),
        ] {
            let response = Response::builder().header(CLEAR_SITE_DATA, value);
            let (response, ()) = response.body(()).expect("a response").into_parts();
            let target: Uri = uri.parse().expect("a URI");
            assert_eq!(clears_origin(rules, &target, &response), expected, "{uri} {value}");
        }
    }

    #[test]
    fn unsafe_methods_invalidate_their_target() {
        for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "UNKNOWN"] {
            for status in [200, 201, 204, 302, 303] {
                assert_eq!(invalidated(method, status, &[]), ["/a?b"], "{method} {status}");
            }
            for status in [400, 404, 500, 503] {
                assert!(invalidated(method, status, &[]).is_empty(), "{method} {status}");
            }
        }
        for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
            assert!(invalidated(method, 200, &[("location", "/x")]).is_empty(), "{method}");
        }
    }

    #[test]
    fn locations_of_the_same_origin_are_invalidated() {
        for (fields, expected) in [
            (&[("location", "/x"), ("content-location", "y#z")][..], &["/a?b", "/x", "/y"][..]),
            (&[("location", "http://EXAMPLE.org:80/x")], &["/a?b", "/x"]),
            (&[("location", "https://example.org/x")], &["/a?b"]),
            (&[("location", "http://other.example/x")], &["/a?b"]),
            (&[("location", "http://example.org:81/x")], &["/a?b"]),
            (&[("content-location", "")], &["/a?b"]),
        ] {
            assert_eq!(invalidated("POST", 201, fields), expected, "{fields:?}");
        }
    }
}
