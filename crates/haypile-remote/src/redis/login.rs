//! The user and password of a connection.

use std::fmt;

use redis::io::tcp::TcpSettings;
use redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};

use crate::address::Address;

/// A user and a password, where they are needed.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Login {
    user: Option<String>,
    password: Option<String>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Login {
    /// Splits `USER:PASSWORD@` from the rest; `None` for a user without a password.
    pub(super) fn split(server: &str) -> Option<(Self, &str)> {
        let Some((login, rest)) = server.rsplit_once('@') else {
            return Some((Self::default(), server));
        };
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let login = Self { user: some(user), password: some(password) };
        (login.user.is_none() || login.password.is_some()).then_some((login, rest))
    }

    /// Returns a client of the server at an address. It does not connect yet.
    pub(super) fn client(&self, address: &Address, database: i64) -> redis::RedisResult<Client> {
        let address = match address {
            Address::Tcp { host, port } => ConnectionAddr::Tcp(host.clone(), *port),
            Address::Unix(path) => ConnectionAddr::Unix(path.clone()),
        };
        let mut login = RedisConnectionInfo::default().set_db(database).set_skip_set_lib_name();
        if let Some(user) = &self.user {
            login = login.set_username(user);
        }
        if let Some(password) = &self.password {
            login = login.set_password(password);
        }
        let info: ConnectionInfo = address.into_connection_info()?;
        // By default, the client holds back a small request until the server confirms the previous
        // one.
        let tcp = TcpSettings::default().set_nodelay(true);
        Client::open(info.set_redis_settings(login).set_tcp_settings(tcp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_passwords_are_read_and_not_shown() {
        let split = |text| {
            let (login, rest) = Login::split(text)?;
            assert!(!format!("{login:?}").contains("a@b"));
            Some((login.user, login.password, rest.to_owned()))
        };
        let (user, password) = (Some("ann".to_owned()), Some("a@b:c".to_owned()));
        assert_eq!(split("ann:a@b:c@h:7"), Some((user, password.clone(), "h:7".to_owned())));
        assert_eq!(split(":a@b:c@h"), Some((None, password, "h".to_owned())));
        assert_eq!(split("h:7,i:8"), Some((None, None, "h:7,i:8".to_owned())));
        assert_eq!(split("ann@h"), None);
    }
}
