//! URLs with their passwords removed.
//!
//! A URL that parses has its password in one place. In a text that does not parse, or not as its author
//! meant it, a password may be anywhere between the first colon that could follow a user and the last `@`:
//! it can contain a separator that its author did not escape. Errors hide all of that.

use std::fmt;
use std::ops::Range;

use super::{CacheUrl, Level, UrlError};

/// The text that replaces a password in messages.
pub(super) const REDACTED: &str = "xxxxx";

impl CacheUrl {
    /// Returns this URL with `xxxxx` in the place of each password: for logs, labels and messages.
    ///
    /// ```
    /// use haypile::url::CacheUrl;
    ///
    /// let url: CacheUrl = "redis://ann:secret@127.0.0.1:6379/0".parse().unwrap();
    /// assert_eq!(url.redacted().to_string(), "redis://ann:xxxxx@127.0.0.1:6379/0");
    /// ```
    #[must_use]
    pub fn redacted(&self) -> Self {
        Self { levels: self.levels.iter().map(Level::redacted).collect() }
    }

    /// Returns the text of a URL for messages, with `xxxxx` in the place of all parts that could be a
    /// password, whether or not the text is a URL.
    ///
    /// ```
    /// use haypile::url::CacheUrl;
    ///
    /// let shown = CacheUrl::redacted_text;
    /// assert_eq!(shown("redis://ann:se/cr?et@h/0,ttl=1m"), "redis://ann:xxxxx@h/0,ttl=1m");
    /// assert_eq!(shown("redis://ann:secret"), "redis://ann:xxxxx");
    /// assert_eq!(shown("memory:size=64MiB"), "memory:size=64MiB");
    /// ```
    pub fn redacted_text(text: &str) -> String {
        Quoted::new(text).part(text)
    }

    /// Returns an error about one level of this URL, counted from zero, without any text that could
    /// be a part of a password. The password of this level, or of an earlier level, may have been
    /// split at a separator.
    pub(crate) fn without_secrets(&self, level: usize, error: UrlError) -> UrlError {
        let Some(first) = self.levels[..=level].iter().position(Level::may_have_login) else {
            return error;
        };
        let is_split = self.levels[first].continues_a_login()
            || self.levels[first + 1..].iter().any(|level| level.to_string().contains('@'));
        if is_split { error.redacted() } else { error }
    }
}

impl Level {
    /// Returns this level of a URL with `xxxxx` in the place of its password, if its server has
    /// one: the text in `USER:PASSWORD@HOST` between the first colon and the last `@`.
    #[must_use]
    pub fn redacted(&self) -> Self {
        let mut level = self.clone();
        if let Some((user, host)) = self.server.rsplit_once('@')
            && let Some((user, _)) = user.split_once(':')
        {
            level.server = format!("{user}:{REDACTED}@{host}");
        }
        level
    }

    /// Whether a login can begin in this level: in its server, in its path, or in a part
    /// that looks as if it had swallowed another level.
    fn may_have_login(&self) -> bool {
        let path = self.path_text();
        let mut others = self.options().map(|(_, value)| value).chain([&*path]);
        self.server.contains('@')
            || open_login_in(&self.server).is_some()
            || path.contains(':')
            || others.any(|text| text.contains(':') && text.contains(['+', '>']))
    }

    /// Whether an `@` follows the server.
    fn continues_a_login(&self) -> bool {
        self.path_text().contains('@') || self.options().any(|(_, value)| value.contains('@'))
    }
}

/// Prints the level without its password.
impl fmt::Debug for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Level").field(&CacheUrl::redacted_text(&self.to_string())).finish()
    }
}

/// The text of a URL, whose parts are quoted in messages without passwords.
pub(super) struct Quoted<'a> {
    text: &'a str,
}

impl<'a> Quoted<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text }
    }

    /// Returns a part of the URL's text, with `xxxxx` in place of any text that could be a
    /// password.
    pub(super) fn part(&self, part: &str) -> String {
        // Anything else than a part of the text is not known to be free of passwords.
        let start = part.as_ptr().addr().checked_sub(self.text.as_ptr().addr());
        let Some(start) = start.filter(|start| start + part.len() <= self.text.len()) else {
            return REDACTED.to_owned();
        };
        let end = start + part.len();
        let secret = secret(self.text);
        if secret.is_empty() || end <= secret.start || secret.end <= start {
            return part.to_owned();
        }
        // Both are next to an ASCII character, or at an end of the part.
        let before = &part[..secret.start.saturating_sub(start)];
        let after = &part[part.len() - end.saturating_sub(secret.end)..];
        format!("{before}{REDACTED}{after}")
    }
}

/// Returns the bytes of a text that could be a password.
fn secret(text: &str) -> Range<usize> {
    let mut pieces = pieces(text);
    match text.rfind('@') {
        Some(end) => pieces.find_map(|piece| piece.login_start(end)).unwrap_or(0)..end,
        None => pieces.find_map(|piece| piece.open_login_start()).unwrap_or(text.len())..text.len(),
    }
}

/// Text between two characters that could separate levels.
struct Piece<'a> {
    text: &'a str,
    end: usize,
    /// The place behind a scheme and its slashes; the start of the piece if it has no scheme.
    body: usize,
    kind: PieceKind,
    slashes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceKind {
    /// The piece does not begin with a scheme.
    NoScheme,
    /// The piece begins with a scheme that has no servers.
    Local,
    /// The piece begins with another scheme, or with a user that looks like one.
    Remote,
}

fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut start = 0;
    let ends = text.match_indices(['+', '>']).map(|(at, _)| at).chain([text.len()]);
    ends.map(move |end| Piece::new(text, std::mem::replace(&mut start, end + 1)..end))
}

impl<'a> Piece<'a> {
    fn new(text: &'a str, range: Range<usize>) -> Self {
        let (end, piece) = (range.end, &text[range.clone()]);
        let scheme = piece.split_once(':').filter(|(scheme, _)| {
            let scheme = scheme.trim_start().as_bytes();
            let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-.".contains(byte);
            scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(allowed)
        });
        let Some((scheme, rest)) = scheme else {
            return Self { text, end, body: range.start, kind: PieceKind::NoScheme, slashes: 0 };
        };
        let slashes = rest.len() - rest.trim_start_matches('/').len();
        let body = range.start + scheme.len() + 1 + slashes;
        let is_local = ["file", "memory", "none"].contains(&scheme.trim_start());
        let kind = if is_local { PieceKind::Local } else { PieceKind::Remote };
        Self { text, end, body, kind, slashes }
    }

    /// Returns where a password can begin that ends at the `@` at `end`; `None` if this piece has no
    /// part of a login.
    fn login_start(&self, end: usize) -> Option<usize> {
        let body = &self.text[self.body..self.end];
        let colon = body.find(':').filter(|at| self.body + at < end);
        let may_have_user = match (self.kind, colon) {
            (PieceKind::Remote, _) if self.slashes < 2 => !body.is_empty(),
            (_, None) => false,
            (PieceKind::NoScheme, Some(_)) => true,
            (PieceKind::Local | PieceKind::Remote, Some(at)) => {
                !body[..at].contains(['?', '/', '='])
            }
        };
        if !body.contains('@') && !may_have_user {
            return None;
        }
        // Without slashes, the scheme may be the user.
        let after_user = colon.filter(|_| self.slashes > 1).map_or(0, |at| at + 1);
        Some(self.body + after_user)
    }

    /// Returns where a password begins that no `@` ends: after a colon where a port would be.
    fn open_login_start(&self) -> Option<usize> {
        let is_path = self.slashes == 1 || self.slashes > 2;
        let body = &self.text[self.body..self.end];
        let (server, _) = body.split_at(body.find(['/', '?']).unwrap_or(body.len()));
        if is_path { None } else { open_login_in(server).map(|at| self.body + at) }
    }
}

/// Returns where something begins in a list of servers that stands in the place of a port and is not
/// one.
fn open_login_in(servers: &str) -> Option<usize> {
    let mut start = 0;
    for server in servers.split(',') {
        let address = if server.starts_with('[') { server.find(']').unwrap_or(0) } else { 0 };
        let colon = server[address..].find(':').map(|at| address + at);
        if let Some(at) = colon.filter(|at| !server[..*at].contains('='))
            && server[at + 1..].parse::<u16>().is_err()
        {
            return Some(start + at + 1);
        }
        start += server.len() + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passwords_are_replaced() {
        for (given, shown) in [
            ("redis://:a:b%40c@h:1/0", "redis://:xxxxx@h:1/0"),
            ("redis://ann@h:1", "redis://ann@h:1"),
            ("redis://[::1]:6379", "redis://[::1]:6379"),
            ("redis://h:0", "redis://h:0"),
            ("redis://a:@h -> redis://h", "redis://a:xxxxx@h -> redis://h"),
            ("file:///a:b@c", "file:///a:b@c"),
            ("memory://?size=1MiB", "memory://?size=1MiB"),
        ] {
            let url: CacheUrl = given.parse().unwrap();
            assert_eq!(url.redacted().to_string(), shown);
        }
    }

    #[test]
    fn a_text_that_is_no_url_is_hidden_as_far_as_it_could_be_a_password() {
        for (given, shown) in [
            ("redis://u:hunter2@h/0,timeout=1s", "redis://u:xxxxx@h/0,timeout=1s"),
            ("redis://:hunter2@h", "redis://:xxxxx@h"),
            ("redis://hunter2@h:1", "redis://xxxxx@h:1"),
            ("redis:u:hunter2@h", "redis:xxxxx@h"),
            ("u:hunter2@h", "u:xxxxx@h"),
            ("://:hunter2@h", "xxxxx@h"),
            ("redis//u:hunter2@h", "xxxxx@h"),
            ("redis:/u:hunter2@h", "redis:/xxxxx@h"),
            ("redis:///u:hunter2@h", "redis:///u:xxxxx@h"),
            ("redis://u:hun?ter/2@h?x", "redis://u:xxxxx@h?x"),
            ("redis:u:hun+ter2@h/0", "redis:xxxxx@h/0"),
            ("memory:size=1MiB+redis:u:hun+t@er2@h/0", "memory:size=1MiB+redis:xxxxx@h/0"),
            (
                "memory://?policy=s3fifo:small=1 -> redis://u:p@h",
                "memory://?policy=s3fifo:small=1 -> redis://u:xxxxx@h",
            ),
            ("redis://u:hun -> ter2@h", "redis://u:xxxxx@h"),
            ("redis://u:hunter2", "redis://u:xxxxx"),
            ("redis://u:1234567/0", "redis://u:xxxxx"),
            ("redis:u:hunter2,timeout=1s", "redis:u:xxxxx"),
            ("memcached://a:1,b:hunter2", "memcached://a:1,b:xxxxx"),
            ("memcached://a:1,[::1]:2", "memcached://a:1,[::1]:2"),
            ("memory:policy=s3fifo:small=1,x", "memory:policy=s3fifo:small=1,x"),
            ("file:/tmp/a:b?size=1", "file:/tmp/a:b?size=1"),
            ("/tmp/a:b", "/tmp/a:b"),
            ("é:ü@ö", "xxxxx@ö"),
            ("", ""),
            ("@", "@"),
        ] {
            assert_eq!(CacheUrl::redacted_text(given), shown, "{given}");
        }
    }

    #[test]
    fn parts_are_hidden_where_they_overlap_with_a_password() {
        let text = "redis:a:b,c=d@e,f=g";
        let quoted = Quoted::new(text);
        let part = |part: &str| quoted.part(&text[text.find(part).unwrap()..][..part.len()]);
        assert_eq!(part("redis"), "redis");
        assert_eq!(part("b"), REDACTED);
        assert_eq!(part("redis:a"), "redis:xxxxx");
        assert_eq!(part("c=d@e"), "xxxxx@e");
        assert_eq!(part("f=g"), "f=g");
        assert_eq!(quoted.part("of another text"), REDACTED);
    }

    #[test]
    fn a_level_is_debugged_without_its_password() {
        let url: CacheUrl = "memory: -> redis://u:hunter2@h".parse().unwrap();
        let text = format!("{url:?}");
        assert!(text.contains("redis://u:xxxxx@h") && !text.contains("hunter2"), "{text}");
    }
}
