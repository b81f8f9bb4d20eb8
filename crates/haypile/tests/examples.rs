//! The example does what it says. `cargo test` builds it; those with more dependencies are run by the tests of
//! `haypile-http` and `haypile-remote`.

#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod example;

#[test]
fn of_two_processes_one_computes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a file, shared.haypile");
    let text = example::output(example::program("two_processes").arg(path));
    assert_eq!(text.matches("computes").count(), 1, "{text}");
    assert_eq!(text.matches("has 42").count(), 2, "{text}");
}
