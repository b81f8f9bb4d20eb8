//! Windows that appear on an X server.

use std::os::fd::{AsFd, BorrowedFd};

use regex_lite::Regex;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ConnectionExt, EventMask, MapState, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;

/// The longest title or class that is compared, in units of four bytes.
const TEXT_UNITS: u32 = 256;

/// The last display with a port: they begin with 6000.
const LAST_DISPLAY: u64 = 65_535 - 6_000;

/// A watcher for new windows of a program on an X display, without menus and invisible windows.
#[derive(Debug)]
pub(super) struct Windows {
    server: RustConnection,
    title: Regex,
    /// The atom of titles in UTF-8.
    utf8_title: u32,
    /// Windows that were created since the start.
    new: Vec<Window>,
    is_seen: bool,
}

impl Windows {
    /// Starts to watch an X display for windows whose title or class matches.
    ///
    /// # Errors
    ///
    /// There is no display, or its server does not answer.
    pub(super) fn watch(display: Option<&str>, title: &str) -> Result<Self, String> {
        let Some(display) = display else {
            return Err(
                "--ready window needs an X server: DISPLAY is not set (xvfb-run starts one; \
                        --env DISPLAY=:99 names one)"
                    .to_owned(),
            );
        };
        let lost = |error: &dyn std::fmt::Display| {
            format!("--ready window: the X server of DISPLAY={display} does not answer: {error}")
        };
        // Its port would be above the last one, which the library adds up without a look.
        if number(display).is_some_and(|number| number > LAST_DISPLAY) {
            return Err(lost(&format!("displays end with {LAST_DISPLAY}")));
        }
        let (server, _) = x11rb::connect(Some(display)).map_err(|error| lost(&error))?;
        let own = ChangeWindowAttributesAux::new().event_mask(EventMask::SUBSTRUCTURE_NOTIFY);
        for screen in &server.setup().roots {
            let watched = server.change_window_attributes(screen.root, &own);
            watched.map_err(|error| lost(&error))?.check().map_err(|error| lost(&error))?;
        }
        let atom = server.intern_atom(false, b"_NET_WM_NAME").map_err(|error| lost(&error))?;
        let utf8_title = atom.reply().map_err(|error| lost(&error))?.atom;
        let title = Regex::new(title).map_err(|error| error.to_string())?;
        Ok(Self { server, title, utf8_title, new: Vec::new(), is_seen: false })
    }

    /// Whether a window with a matching title or class has appeared.
    pub(super) fn is_seen(&self) -> bool {
        self.is_seen
    }

    /// Processes the X server's pending events, without waiting.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    pub(super) fn look(&mut self) -> Result<(), String> {
        let lost = |error: &dyn std::fmt::Display| format!("the X server is lost: {error}");
        while let Some(event) = self.server.poll_for_event().map_err(|error| lost(&error))? {
            let window = match event {
                Event::CreateNotify(event) if !event.override_redirect => {
                    // A window manager takes it into a frame: from now on it tells of itself.
                    let mask = EventMask::STRUCTURE_NOTIFY | EventMask::PROPERTY_CHANGE;
                    let own = ChangeWindowAttributesAux::new().event_mask(mask);
                    let asked = self.server.change_window_attributes(event.window, &own);
                    // One that is gone already is not waited for.
                    asked.map_err(|error| lost(&error))?.ignore_error();
                    self.new.push(event.window);
                    event.window
                }
                Event::MapNotify(event) => event.window,
                Event::PropertyNotify(event) => event.window,
                _ => continue,
            };
            if !self.is_seen && self.new.contains(&window) {
                self.is_seen = self.is_it(window).unwrap_or(false);
            }
        }
        Ok(())
    }

    /// Whether a window is mapped and is the one that is waited for; `None` if it is gone.
    fn is_it(&self, window: Window) -> Option<bool> {
        let state = self.server.get_window_attributes(window).ok()?.reply().ok()?;
        if state.map_state == MapState::UNMAPPED || state.class == WindowClass::INPUT_ONLY {
            return Some(false);
        }
        if self.title.as_str().is_empty() {
            return Some(true);
        }
        let names = [self.utf8_title, AtomEnum::WM_NAME.into(), AtomEnum::WM_CLASS.into()];
        let matches = |name: u32| {
            let asked = self.server.get_property(false, window, name, AtomEnum::ANY, 0, TEXT_UNITS);
            let value = asked.ok()?.reply().ok()?.value;
            // A class is two texts, each with a zero at its end.
            let mut texts = value.split(|byte| *byte == 0);
            Some(texts.any(|text| {
                !text.is_empty() && self.title.is_match(&String::from_utf8_lossy(text))
            }))
        };
        Some(names.into_iter().any(|name| matches(name).unwrap_or(false)))
    }
}

/// Returns the number of a display: of `host:number.screen`.
fn number(display: &str) -> Option<u64> {
    display.rsplit_once(':')?.1.split('.').next()?.parse().ok()
}

impl AsFd for Windows {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.server.stream().as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_or_silent_server_is_an_error_that_says_how_to_get_one() {
        let missing = Windows::watch(None, "").unwrap_err();
        assert!(missing.contains("xvfb-run"), "{missing}");
        for display in [":59000", ":64999", "host:99999999999.1", "", "x"] {
            let silent = Windows::watch(Some(display), "").unwrap_err();
            assert!(silent.contains(&format!("DISPLAY={display} does not answer")), "{silent}");
        }
    }

    /// An X server without a screen, which ends with this; `None` where Xvfb is not installed.
    struct Server {
        child: std::process::Child,
        display: String,
    }

    impl Server {
        fn begin() -> Option<Self> {
            use std::io::{BufRead, BufReader};
            use std::process::{Command, Stdio};

            let mut command = Command::new("Xvfb");
            command.args(["-displayfd", "1", "-nolisten", "tcp", "-screen", "0", "640x480x24"]);
            command.stdout(Stdio::piped()).stderr(Stdio::null());
            let Ok(mut child) = command.spawn() else {
                assert!(std::env::var_os("HAYPILE_REQUIRE_RIVALS").is_none(), "Xvfb is missing");
                eprintln!("skipped: install xvfb");
                return None;
            };
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            Some(Self { child, display: format!(":{}", line.trim()) })
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    #[test]
    fn a_window_counts_when_it_is_mapped_and_menus_never_do() {
        use x11rb::protocol::xproto::{CreateWindowAux, PropMode};
        use x11rb::wrapper::ConnectionExt as _;

        let Some(server) = Server::begin() else { return };
        let (client, screen) = x11rb::connect(Some(&server.display)).unwrap();
        let root = client.setup().roots[screen].root;
        let create = |is_menu: bool| {
            let window = client.generate_id().unwrap();
            let own = CreateWindowAux::new().override_redirect(u32::from(is_menu));
            let class = WindowClass::INPUT_OUTPUT;
            client.create_window(0, window, root, 0, 0, 50, 50, 0, class, 0, &own).unwrap();
            window
        };
        let title = |window, text: &str| {
            let kind = AtomEnum::STRING;
            client
                .change_property8(
                    PropMode::REPLACE,
                    window,
                    AtomEnum::WM_NAME,
                    kind,
                    text.as_bytes(),
                )
                .unwrap();
        };
        // The server has done all of it when it answers.
        let map = |window| {
            client.map_window(window).unwrap();
            client.get_input_focus().unwrap().reply().unwrap();
        };
        let earlier = create(false);
        map(earlier);
        let mut any = Windows::watch(Some(&server.display), "").unwrap();
        let mut named = Windows::watch(Some(&server.display), "^Mouse").unwrap();
        let mut look = || {
            any.look().unwrap();
            named.look().unwrap();
            (any.is_seen(), named.is_seen())
        };
        map(create(true));
        assert_eq!(look(), (false, false), "a menu");
        client.unmap_window(earlier).unwrap();
        map(earlier);
        assert_eq!(look(), (false, false), "it was there before");
        let splash = create(false);
        title(splash, "Loading");
        client.get_input_focus().unwrap().reply().unwrap();
        assert_eq!(look(), (false, false), "not mapped");
        map(splash);
        assert_eq!(look(), (true, false));
        title(splash, "Mousepad");
        client.get_input_focus().unwrap().reply().unwrap();
        assert_eq!(look(), (true, true), "it has its title later");
        drop(server);
        assert!(any.look().is_err() || any.look().is_err());
    }
}
