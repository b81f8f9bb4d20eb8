//! The table of Perl's Benchmark.pm.

/// Returns the cells of the table that `cmpthese` of Perl's Benchmark.pm 1.23 prints, headings
/// first: rates per second from the lowest to the highest, and the change from each to each in per
/// cent.
pub(super) fn cells(rates: &[(String, f64)]) -> Vec<Vec<String>> {
    let mut sorted: Vec<&(String, f64)> = rates.iter().collect();
    sorted.sort_by(|one, other| one.1.total_cmp(&other.1));
    let mut rows = vec![vec![String::new(), "Rate".to_owned()]];
    rows[0].extend(sorted.iter().map(|(name, _)| name.clone()));
    for (at, (name, rate)) in sorted.iter().enumerate() {
        let mut row = vec![name.clone(), format!("{}/s", rounded(*rate))];
        row.extend(sorted.iter().enumerate().map(|(other_at, (_, other))| {
            if at == other_at {
                "--".to_owned()
            } else {
                format!("{:.0}%", 100.0 * rate / other - 100.0)
            }
        }));
        rows.push(row);
    }
    rows
}

/// Returns these rates as the table, in text, that `cmpthese` of Perl's Benchmark.pm prints.
pub fn cmpthese(rates: &[(String, f64)]) -> String {
    let rows = cells(rates);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..rows[0].len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join(" ").trim_end());
        text.push('\n');
    }
    text
}

/// Benchmark.pm's digits: fewer where there are more before the point.
fn rounded(rate: f64) -> String {
    match rate {
        _ if rate >= 100.0 => format!("{rate:.0}"),
        _ if rate >= 10.0 => format!("{rate:.1}"),
        _ if rate >= 1.0 => format!("{rate:.2}"),
        _ => format!("{rate:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The source's own first table, from its rates.
    #[test]
    fn it_is_the_table_of_the_source() {
        let rates = [("C:FMmap", 11_498.0), ("CHI:Mc:lIP", 5_107.0), ("CHI:Mc:l", 5_219.0)];
        let rates = rates.map(|(name, rate)| (name.to_owned(), rate));
        let expected = "              Rate CHI:Mc:lIP CHI:Mc:l C:FMmap\n\
                        CHI:Mc:lIP  5107/s         --      -2%    -56%\n\
                        CHI:Mc:l    5219/s         2%       --    -55%\n\
                        C:FMmap    11498/s       125%     120%      --\n";
        assert_eq!(cmpthese(&rates), expected);
    }

    #[test]
    fn small_rates_have_more_digits() {
        let texts = [12_345.6, 99.96, 12.34, 1.234, 0.1234].map(rounded);
        assert_eq!(texts, ["12346", "100.0", "12.3", "1.23", "0.123"]);
        assert_eq!(cmpthese(&[]), " Rate\n");
    }
}
