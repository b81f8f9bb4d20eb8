//! Is the header that is committed the one of these sources?

use std::env;
use std::fs;
use std::path::Path;

use cbindgen::{Builder, Config};

/// `make header` sets it: write the header instead of comparing it.
const WRITE: &str = "HAYPILE_WRITE_HEADER";

#[test]
fn the_header_is_current() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = crate_dir.join("include/haypile.h");
    let config = Config::from_file(crate_dir.join("cbindgen.toml")).unwrap();
    let bindings = Builder::new().with_crate(crate_dir).with_config(config).generate().unwrap();
    let mut header = Vec::new();
    bindings.write(&mut header);
    let header = String::from_utf8(header).unwrap();
    if env::var_os(WRITE).is_some() {
        fs::write(&path, header).unwrap();
        return;
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == header, "{} is not current: run `make header`", path.display());
}
