//! Every command's output, errors and exit status, word by word.
//!
//! `cases/` has a file per command. After a change that is meant,
//! `TRYCMD=overwrite cargo test -p haypile-cli --test cases` writes what is printed now; read the
//! difference before it is committed. `[..]` and `...` stand for what differs from run to run.

#[test]
fn commands_print_what_the_cases_say() {
    trycmd::TestCases::new()
        .register_bin("haypile", std::path::Path::new(env!("CARGO_BIN_EXE_haypile")))
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .env("HAYPILE_CHECKOUT", "no-checkout")
        .case("tests/cases/*.trycmd");
}
