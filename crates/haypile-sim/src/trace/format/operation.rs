//! Operations as text.

use super::super::Op;

/// The longest word of [`operation`].
const LONGEST_WORD_BYTES: usize = 9;

/// A description of the operations that may be written in a trace, for error messages.
pub(super) const EXPECTED: &str =
    "an operation (r, read, get, load, 28; w, write, set, put, store, 2a; d, delete, ...)";

/// Parses the name of a trace's operation in upper or lower case: words, letters, verbs of memcached, and SCSI commands
/// known to [`scsi`] as two hexadecimal digits, with or without `0x`.
///
/// What changes a value in place (`incr`, `append`, ...) counts as a write, `gat` as a read.
pub(super) fn operation(text: &[u8]) -> Option<Op> {
    let mut lower = [0; LONGEST_WORD_BYTES];
    let word = lower.get_mut(..text.len())?;
    word.copy_from_slice(text);
    word.make_ascii_lowercase();
    Some(match &*word {
        b"r" | b"read" | b"get" | b"gets" | b"get_lease" | b"gat" | b"gats" | b"l" | b"load"
        | b"head" => Op::Read,
        b"w" | b"write" | b"set" | b"set_lease" | b"put" | b"post" | b"patch" | b"add"
        | b"replace" | b"s" | b"store" | b"cas" | b"append" | b"prepend" | b"incr" | b"decr"
        | b"update" | b"insert" => Op::Write,
        b"d" | b"del" | b"delete" | b"remove" => Op::Delete,
        other => {
            let hex = other.strip_prefix(b"0x").unwrap_or(other);
            let [high, low] = hex else { return None };
            let digit = |byte: &u8| char::from(*byte).to_digit(16);
            return scsi((digit(high)? * 16 + digit(low)?).try_into().ok()?);
        }
    })
}

/// A description of the SCSI commands that may be written in a trace, for error messages.
pub(super) const EXPECTED_SCSI: &str =
    "a SCSI read (08, 28, 88, a8) or write (0a, 2a, 8a, aa) command";

/// Returns the operation (read or write) of a SCSI command number; `None` if it is neither a READ nor a WRITE of 6, 10,
/// 12 or 16 bytes.
pub(super) fn scsi(command: u16) -> Option<Op> {
    match command {
        0x08 | 0x28 | 0x88 | 0xa8 => Some(Op::Read),
        0x0a | 0x2a | 0x8a | 0xaa => Some(Op::Write),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_letters_verbs_and_commands() {
        for (op, words) in [
            (Op::Read, "r R read GET gets l load 28 0x28 08 88 A8 0XA8 get_lease"),
            (Op::Write, "w Write SET put add replace s store 2a 0x2A 0a 8a aa incr decr cas"),
            (Op::Write, "append prepend set_lease"),
            (Op::Delete, "d del DELETE remove"),
        ] {
            for word in words.split(' ') {
                assert_eq!(operation(word.as_bytes()), Some(op), "{word}");
            }
        }
        for word in ["", "x", "35", "0x", "2", "0x028", "readreadread", "\u{e9}"] {
            assert_eq!(operation(word.as_bytes()), None, "{word}");
        }
    }
}
