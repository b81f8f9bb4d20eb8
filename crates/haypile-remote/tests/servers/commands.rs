//! Commands that a user of Redis needs for each operation, as docs/engine.md lists them.

use haypile::{Cursor, Error, SetOptions, Store, Ttl};

use crate::daemon::{Daemon, Kind};
use crate::memcached::forward;
use crate::open;

const DOCS: &str = include_str!("../../../../docs/engine.md");

/// An operation that fails if a command is refused.
type Operation = fn(&dyn Store) -> Result<(), Error>;

/// A line of the documents, and what has to work with its commands.
struct Row {
    line: &'static str,
    namespace: bool,
    operations: &'static [Operation],
}

fn set(store: &dyn Store, options: SetOptions) -> Result<(), Error> {
    store.set(b"k", b"1", &options).map(drop)
}

const ROWS: [Row; 13] = [
    Row {
        line: "| `get`, `get_many` | `get`, `pttl` |",
        namespace: true,
        operations: &[
            |store| store.get(b"k").map(drop),
            |store| store.get_many(&[b"k", b"l"]).map(drop),
        ],
    },
    Row {
        line: "| `add`, `replace` | `eval`, `exists`, `getrange`, `set` |",
        namespace: true,
        operations: &[
            |store| set(store, SetOptions::add()),
            |store| set(store, SetOptions::replace()),
        ],
    },
    Row {
        line: "| leases, and computations without `leases=no` | `eval`, `get`, `getrange`, `set` |",
        namespace: true,
        operations: &[
            |store| store.lease(b"k").map(drop),
            |store| store.lease(b"of nothing").map(drop),
            |store| {
                let lease = store.lease(b"k")?;
                assert!(store.check_lease(b"k", lease, &[])?);
                set(store, SetOptions::leased(lease))
            },
        ],
    },
    Row {
        line: "| `set`, `set_many`, reservations | `set` |",
        namespace: true,
        operations: &[
            |store| set(store, SetOptions::set()),
            |store| store.set_many(&[(b"k", b"1", SetOptions::set())]).remove(0).map(drop),
            |store| store.reserve(b"k", 1, &SetOptions::set())?.commit().map(drop),
        ],
    },
    Row {
        line: "| `delete`, `delete_many` | `unlink`, `getrange` |",
        namespace: true,
        operations: &[
            |store| store.delete(b"k").map(drop),
            |store| store.delete_many(&[b"k"]).remove(0).map(drop),
        ],
    },
    Row {
        line: "| `contains` | `exists`, `getrange` |",
        namespace: true,
        operations: &[|store| store.contains(b"k").map(drop)],
    },
    Row {
        line: "| `touch` | `eval`, `exists`, `getrange`, `pexpire`, `persist` |",
        namespace: true,
        operations: &[
            |store| store.touch(b"k", Ttl::After(std::time::Duration::from_secs(9))).map(drop),
            |store| store.touch(b"k", Ttl::Never).map(drop),
        ],
    },
    Row {
        line: "| `incr`, `decr` | `get`, `set`, `eval` |",
        namespace: true,
        operations: &[|store| store.incr(b"k", 2).map(drop), |store| store.decr(b"k", 1).map(drop)],
    },
    Row {
        line: "| `keys` | `scan`, `getrange` |",
        namespace: true,
        operations: &[|store| store.keys(Cursor::default(), 9).map(drop)],
    },
    Row {
        line: "| `len` of a namespace | `scan` |",
        namespace: true,
        operations: &[|store| store.len().map(drop)],
    },
    Row {
        line: "| `len` and statistics without a namespace | `dbsize` |",
        namespace: false,
        operations: &[|store| store.len().map(drop), |store| store.stats().map(drop)],
    },
    Row {
        line: "| `clear` of a namespace | `scan`, `unlink` |",
        namespace: true,
        operations: &[|store| store.clear()],
    },
    Row {
        line: "| `clear` without a namespace | `flushdb` |",
        namespace: false,
        operations: &[|store| store.clear()],
    },
];

#[test]
fn each_operation_needs_the_commands_that_the_documents_list() {
    let Some(daemon) = Daemon::start(Kind::Redis) else { return };
    let url = format!("redis+unix://{}", daemon.socket().display());
    let mut admin = redis::Client::open(url).unwrap().get_connection().unwrap();
    let port = forward(&daemon);
    for (command, is_open) in [("+get", false), ("+select", true)] {
        let mut user = redis::cmd("ACL");
        user.arg("SETUSER").arg("ann").arg("reset").arg("on").arg(">secret").arg("+ping");
        user.arg(command).exec(&mut admin).unwrap();
        let opened = open(&format!("redis://ann:secret@127.0.0.1:{port}/1?timeout=30s"));
        assert_eq!(opened.is_ok(), is_open, "{command} {:?}", opened.err());
        assert!(DOCS.contains("| a database other than 0 | `select` |\n"));
    }
    for Row { line, namespace, operations } in ROWS {
        assert!(DOCS.contains(&format!("{line}\n")), "{line}");
        let commands: Vec<_> = line.split('|').nth(2).unwrap().split('`').collect();
        let commands: Vec<_> = commands.into_iter().skip(1).step_by(2).collect();
        let options = if namespace { "&namespace=n" } else { "" };
        let url = format!("redis://ann:secret@127.0.0.1:{port}?timeout=30s{options}");
        // The first time with all commands, then without each of them.
        for left_out in 0..=commands.len() {
            let without = left_out.checked_sub(1).map(|at| commands[at]);
            redis::cmd("SET").arg("n:k").arg("1").exec(&mut admin).unwrap();
            let mut user = redis::cmd("ACL");
            user.arg("SETUSER").arg("ann").arg("reset").arg("on").arg(">secret").arg("~*");
            user.arg("+ping");
            for command in commands.iter().filter(|command| Some(**command) != without) {
                user.arg(format!("+{command}"));
            }
            user.exec(&mut admin).unwrap();
            let store = open(&url).unwrap();
            let results: Vec<_> = operations.iter().map(|operation| operation(&*store)).collect();
            match without {
                None => assert!(results.iter().all(Result::is_ok), "{line}: {results:?}"),
                Some(command) => {
                    let refused = results.iter().filter_map(|result| result.as_ref().err());
                    let refused: Vec<_> = refused.map(Error::to_string).collect();
                    assert!(!refused.is_empty(), "{line}: {command} is not needed");
                    // The second is what a script says.
                    let says = ["permission", "can't run this command"];
                    let is_said = |text: &String| says.iter().any(|says| text.contains(says));
                    assert!(refused.iter().all(is_said), "{refused:?}");
                }
            }
        }
    }
}
