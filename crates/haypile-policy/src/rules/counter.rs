//! Counters: values that are decimal digits, as in memcached.

/// Parses the value of a counter as memcached does: up to 20 decimal digits that fit into 64 bits.
#[inline]
pub fn parse(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 20 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn counters_are_decimal_digits() {
        assert_eq!(parse(b"0"), Some(0));
        assert_eq!(parse(b"0042"), Some(42));
        assert_eq!(parse(b"18446744073709551615"), Some(u64::MAX));
        for text in ["", "+1", "-1", " 1", "1 ", "1.0", "x", "18446744073709551616"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(&[b'0'; 21]), None);
        assert_eq!(parse(&[0xff]), None);
    }
}
