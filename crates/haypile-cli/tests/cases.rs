//! Output, errors and exit status of every command, word by word.
//!
//! `cases/` has a file per command. After an intended change,
//! `TRYCMD=overwrite cargo test -p haypile-cli --test cases` writes the new outputs; read the
//! difference before you commit it. `[..]` and `...` stand for parts that differ from run to run.

#[test]
fn commands_print_what_the_cases_say() {
    trycmd::TestCases::new()
        .register_bin("haypile", std::path::Path::new(env!("CARGO_BIN_EXE_haypile")))
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .env("HAYPILE_CHECKOUT", "no-checkout")
        .case("tests/cases/*.trycmd");
}
