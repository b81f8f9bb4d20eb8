//! Numbers of steps as text: `3,17-20`.

/// Numbers of a run's steps (operations), in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ranges(pub(crate) Vec<u64>);

/// Returns numbers of steps as text, with consecutive ones as ranges, such as `1,4-7`.
pub(crate) fn format(numbers: &[u64]) -> String {
    let runs = numbers.chunk_by(|one, next| one + 1 == *next);
    let texts: Vec<String> = runs
        .map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            _ => run[0].to_string(),
        })
        .collect();
    texts.join(",")
}

/// Parses a list of numbers and ranges of steps, such as `1,4-7`.
///
/// # Errors
///
/// A text for the user.
pub(crate) fn parse(text: &str) -> Result<Ranges, String> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number =
            |text: &str| text.parse::<u64>().map_err(|_| format!("'{text}' is not a step"));
        numbers.extend(number(first)?..=number(last)?);
    }
    Ok(Ranges(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_formatted_is_parsed() {
        for (numbers, text) in
            [(vec![3], "3"), (vec![3, 4], "3-4"), (vec![1, 3, 4, 5, 9], "1,3-5,9")]
        {
            assert_eq!(format(&numbers), text);
            assert_eq!(parse(text), Ok(Ranges(numbers)));
        }
        assert_eq!(parse("1-x").unwrap_err(), "'x' is not a step");
    }
}
