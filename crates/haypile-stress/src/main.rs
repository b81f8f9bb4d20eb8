//! The program `haypile-stress`.

use std::process::ExitCode;

fn main() -> ExitCode {
    haypile_stress::run()
}
