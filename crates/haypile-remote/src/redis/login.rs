//! The user and password of a connection.

use std::fmt;

use redis::cmd;

use super::connection::{Connection, ask_all};
use super::wire::lenient;
use crate::deadline::{Deadline, Lost};

/// The user and the password with which to log in to a Redis server; either may be missing.
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
    /// Splits `USER:PASSWORD@` from the rest of a URL's server; returns `None` if there is a user without a password.
    pub(super) fn split(server: &str) -> Option<(Self, &str)> {
        let Some((login, rest)) = server.rsplit_once('@') else {
            return Some((Self::default(), server));
        };
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let login = Self { user: some(user), password: some(password) };
        (login.user.is_none() || login.password.is_some()).then_some((login, rest))
    }

    /// Logs in on a new connection to a Redis server and selects its database.
    pub(super) fn log_in(
        &self,
        connection: &mut Connection,
        database: i64,
        deadline: Deadline,
    ) -> Result<(), Lost> {
        let (mut pipeline, mut purposes) = (lenient(), Vec::new());
        if let Some(password) = &self.password {
            let mut command = cmd("AUTH");
            command.arg(self.user.as_ref()).arg(password);
            pipeline.add_command(command);
            purposes.push("authentication failed");
        }
        if database != 0 {
            pipeline.cmd("SELECT").arg(database);
            purposes.push("the database cannot be selected");
        }
        if purposes.is_empty() {
            return Ok(());
        }
        for (reply, purpose) in ask_all(&pipeline, connection, deadline)?.into_iter().zip(purposes)
        {
            reply.map_err(|error| Lost::because(format!("{purpose}: {error}")))?;
        }
        Ok(())
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
