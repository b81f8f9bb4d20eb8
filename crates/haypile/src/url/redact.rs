//! Names without passwords.

use super::{CacheUrl, Level};

/// The replacement of a password.
const REDACTED: &str = "xxxxx";

impl CacheUrl {
    /// Returns the same name with `xxxxx` in the place of each password: for logs, labels and
    /// messages.
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
}

impl Level {
    /// Returns the same level with `xxxxx` in the place of its password, if its server has one: the
    /// text in `USER:PASSWORD@HOST` between the first colon and the last `@`.
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
            ("redis://a:@h -> redis://h", "redis://a:xxxxx@h -> redis://h"),
            ("file:///a:b@c", "file:///a:b@c"),
            ("memory://?size=1MiB", "memory://?size=1MiB"),
        ] {
            let url: CacheUrl = given.parse().unwrap();
            assert_eq!(url.redacted().to_string(), shown);
        }
    }
}
