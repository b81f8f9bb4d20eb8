//! Decimal numbers in place: each hit writes some, for which a formatter takes several times as long.

use http::HeaderValue;

/// The length of the longest number, in digits.
const MOST: usize = 20;

/// A decimal number that is not on the heap.
pub(crate) struct Digits {
    digits: [u8; MOST],
    begin: usize,
}

impl Digits {
    /// Returns the digits of a number.
    pub(crate) fn of(mut number: u64) -> Self {
        let (mut digits, mut begin) = ([b'0'; MOST], MOST);
        loop {
            begin -= 1;
            digits[begin] += u8::try_from(number % 10).expect("less than ten");
            number /= 10;
            if number == 0 {
                return Self { digits, begin };
            }
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.digits[self.begin..]
    }

    pub(crate) fn as_str(&self) -> &str {
        str::from_utf8(self.as_bytes()).expect("digits are ASCII")
    }

    /// Returns the number as the value of a field, in one allocation, where `HeaderValue::from` needs two.
    pub(crate) fn value(&self) -> HeaderValue {
        HeaderValue::from_bytes(self.as_bytes()).expect("digits are visible characters")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_number() {
        for number in [0, 9, 10, 1_024, 1 << 40, u64::MAX] {
            let digits = Digits::of(number);
            assert_eq!(digits.as_str(), number.to_string());
            assert_eq!(digits.value(), HeaderValue::from(number));
        }
    }
}
