//! Behaviour that is particular to a Redis Cluster.

use haypile::{Cursor, SetOptions, Store};

use crate::daemon::{Daemon, Kind};
use crate::nodes::Nodes;
use crate::redis::keys;
use crate::{open, put};

fn names(number: usize) -> Vec<Vec<u8>> {
    (0..number).map(|number| format!("key {number}").into_bytes()).collect()
}

fn set_all(store: &dyn Store, keys: &[Vec<u8>], value: &[u8]) {
    let entries: Vec<_> =
        keys.iter().map(|key| (key.as_slice(), value, SetOptions::set())).collect();
    assert!(store.set_many(&entries).into_iter().all(|written| written.unwrap().is_stored()));
}

fn hits(store: &dyn Store, keys: &[Vec<u8>]) -> usize {
    let borrowed: Vec<_> = keys.iter().map(Vec::as_slice).collect();
    store.get_many(&borrowed).unwrap().into_iter().flatten().count()
}

/// A cluster takes seconds to agree, so this test does everything that leaves it intact.
#[test]
fn a_whole_cluster_is_one_cache() {
    let Some(cluster) = Nodes::start(&[]) else { return };
    many_keys_of_all_slots(&cluster);
    a_namespace_is_cleared_counted_and_listed_alone(&cluster);
    counting_goes_to_the_node_of_the_key(&cluster);
    a_node_alone_names_the_url_of_its_cluster(&cluster);
    a_user_needs_the_commands_that_the_documents_list(&cluster);
}

fn many_keys_of_all_slots(cluster: &Nodes) {
    let store = open(&cluster.url("timeout=30s")).unwrap();
    let names = names(3_000);
    set_all(&*store, &names, b"value");
    assert_eq!((hits(&*store, &names), store.len().unwrap()), (3_000, 3_000));
    for number in 0..3 {
        let own: u64 = cluster.ask(number, "DBSIZE");
        assert!((800..1_200).contains(&own), "{own}");
    }
    assert!(names.iter().all(|key| store.get(key).unwrap().as_deref() == Some(b"value")));
    assert_eq!(keys(&*store), names.iter().cloned().collect());
    let borrowed: Vec<_> = names[..2_000].iter().map(Vec::as_slice).collect();
    assert!(store.delete_many(&borrowed).into_iter().all(Result::unwrap));
    assert_eq!(store.stats().unwrap().entries, 1_000);
    store.clear().unwrap();
    assert!(store.is_empty().unwrap());
    // Keys with the same braces belong to one node, by the protocol.
    for number in 0..20 {
        put(&*store, format!("{{a}}{number}").as_bytes(), b"");
    }
    assert!((0..3).any(|number| cluster.ask::<u64>(number, "DBSIZE") == 20));
    assert_eq!(store.stats().unwrap().unreachable, 0, "{:?}", store.warnings());
    store.clear().unwrap();
}

fn a_namespace_is_cleared_counted_and_listed_alone(cluster: &Nodes) {
    let store = open(&cluster.url("timeout=30s&namespace=a*")).unwrap();
    let other = open(&cluster.url("timeout=30s&namespace=ab")).unwrap();
    let whole = open(&cluster.url("timeout=30s")).unwrap();
    let names = names(500);
    set_all(&*store, &names, b"1");
    put(&*other, b"k", b"2");
    assert_eq!(keys(&*store), names.iter().cloned().collect());
    assert_eq!((store.len().unwrap(), other.len().unwrap(), whole.len().unwrap()), (500, 1, 501));
    store.clear().unwrap();
    assert_eq!((store.len().unwrap(), other.len().unwrap()), (0, 1));
    whole.clear().unwrap();
    assert!(other.is_empty().unwrap());
    // Positions in nodes that do not exist.
    for cursor in [Cursor::new(1, 77), Cursor::new(1, 0), Cursor::new(u64::MAX, 0)] {
        let error = store.keys(cursor, 10).unwrap_err();
        assert!(error.to_string().contains("start from the first page"), "{error}");
    }
}

fn counting_goes_to_the_node_of_the_key(cluster: &Nodes) {
    let store = open(&cluster.url("timeout=30s")).unwrap();
    let names = names(20);
    set_all(&*store, &names, b"1");
    let count = || {
        for key in &names {
            (0..10).for_each(|_| assert!(store.incr(key, 1).unwrap().is_some()));
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(count))));
    assert!(names.iter().all(|key| store.get(key).unwrap().as_deref() == Some(b"41")));
    assert_eq!(store.decr(b"no", 1).unwrap(), None);
}

fn a_node_alone_names_the_url_of_its_cluster(cluster: &Nodes) {
    let alone = open(&cluster.daemons[0].url("timeout=30s")).unwrap();
    let elsewhere = cluster.key(1, 0);
    let error = alone.get(&elsewhere).unwrap_err().to_string();
    assert!(error.contains("redis+cluster://HOST:PORT"), "{error}");
    let error = alone.set(&elsewhere, b"v", &SetOptions::set()).unwrap_err().to_string();
    assert!(error.contains("redis+cluster://HOST:PORT"), "{error}");
}

fn a_user_needs_the_commands_that_the_documents_list(cluster: &Nodes) {
    assert!(include_str!("../../../../docs/engine.md").contains(
        "| `redis+cluster` in addition | `cluster\\|slots`, `asking`, and `cluster\\|nodes` for \
         `clear` and `len` while slots move |\n"
    ));
    let url = format!(
        "redis+cluster://ann:secret@127.0.0.1:{}?timeout=30s&namespace=n",
        cluster.ports[0]
    );
    let permit = |commands: &str| {
        (0..3).for_each(|number| {
            cluster.tell(number, &format!("ACL SETUSER ann reset on >secret ~n:* {commands}"));
        });
    };
    permit("+ping +set +get +pttl +scan +unlink");
    assert!(open(&url).is_err());
    permit("+ping +cluster|slots +set +get +pttl +scan +unlink");
    let store = open(&url).unwrap();
    set_all(&*store, &names(100), b"value");
    assert_eq!((hits(&*store, &names(100)), store.len().unwrap()), (100, 100));
    store.clear().unwrap();
    assert_eq!(store.len().unwrap(), 0);
}

#[test]
fn what_is_no_cluster_is_an_error_that_says_so() {
    let mut lonely = Nodes::none();
    if lonely.add(&[]).is_none() {
        return;
    }
    let error = open(&lonely.url("timeout=30s")).unwrap_err().to_string();
    assert!(error.contains("knows of no node with slots"), "{error}");
    let Some(daemon) = Daemon::start(Kind::Redis) else { return };
    let port = crate::memcached::forward(&daemon);
    let error = open(&format!("redis+cluster://127.0.0.1:{port}?timeout=30s")).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("cluster support disabled"), "{error}");
    assert!(error.contains("has the URL redis://HOST:PORT"), "{error}");
}

#[test]
fn a_password_is_given_to_all_nodes() {
    let secret = ["--requirepass", "a:b", "--masterauth", "a:b"];
    let Some(cluster) = Nodes::start_with_password(&secret, "a:b") else { return };
    let port = cluster.ports[1];
    let url = |login: &str| format!("redis+cluster://{login}127.0.0.1:{port}?timeout=30s");
    let store = open(&url(":a%3Ab@")).unwrap();
    assert!(!store.describe().contains("a:b") && !store.describe().contains("a%3Ab"));
    let names = names(100);
    set_all(&*store, &names, b"value");
    assert_eq!(hits(&*store, &names), 100);
    for login in ["", ":wrong@", "ann:a%3Ab@"] {
        let error = open(&url(login)).unwrap_err().to_string();
        assert!(error.contains("Auth") || error.contains("auth"), "{error}");
        assert!(!error.contains("a:b") && !error.contains(":wrong"), "{error}");
    }
}
