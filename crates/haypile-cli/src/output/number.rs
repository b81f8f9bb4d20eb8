//! Numbers as people read them.

use std::time::Duration;

use bytesize::ByteSize;

/// A number with its digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// About so many bytes.
pub(crate) fn bytes(bytes: u64) -> String {
    ByteSize(bytes).display().iec().to_string()
}

/// A share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A ratio with three decimals, as the literature prints hit ratios.
pub(crate) fn ratio(ratio: f64) -> String {
    format!("{ratio:.3}")
}

/// A time with about three digits.
pub(crate) fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        0.0..0.01 => format!("{:.0} µs", seconds * 1e6),
        0.01..1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}
