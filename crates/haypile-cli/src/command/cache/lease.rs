//! Leases in files, between `haypile get` and `haypile set`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;
use haypile::Lease;

/// Writes a lease (the right to set a missing key) to a file, as a line of hexadecimal digits.
pub(super) fn write(path: &Path, lease: Lease) -> anyhow::Result<()> {
    let mut line = String::new();
    for byte in lease.to_bytes() {
        write!(line, "{byte:02x}").expect("a string takes text");
    }
    line.push('\n');
    fs::write(path, line)
        .with_context(|| format!("the lease cannot be written to {}", path.display()))
}

/// Reads a lease (the right to set a missing key) from a file that `haypile get --lease` wrote.
pub(super) fn read(path: &Path) -> anyhow::Result<Lease> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("the lease cannot be read from {}", path.display()))?;
    let lease = parse(text.trim()).with_context(|| {
        format!(
            "{} has no lease: {} hexadecimal digits, as `haypile get --lease {}` writes them",
            path.display(),
            2 * Lease::BYTES,
            path.display()
        )
    })?;
    Ok(lease)
}

fn parse(text: &str) -> Option<Lease> {
    let (digits, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let byte = |pair: &[u8; 2]| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| !pair.starts_with('+'))?;
        u8::from_str_radix(pair, 16).ok()
    };
    let bytes: Vec<u8> = digits.iter().map(byte).collect::<Option<_>>()?;
    Some(Lease::from_bytes(bytes.try_into().ok()?))
}
