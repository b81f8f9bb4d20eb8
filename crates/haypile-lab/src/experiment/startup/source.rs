//! The figures of the source: KDE's start with and without its icon cache, in 2007.

/// A session that the source measured.
struct Session {
    /// The case here that starts as many programs.
    case: &'static str,
    name: &'static str,
    /// Milliseconds without and with the cache: processor and start-up time of the desktop, then of the
    /// laptop.
    times: [(u32, u32); 4],
}

const SESSIONS: [Session; 2] = [
    Session {
        case: "icons-bare",
        name: "bare KDE",
        times: [(9_985, 8_933), (13_810, 12_572), (6_717, 6_088), (9_889, 9_075)],
    },
    Session {
        case: "icons-full",
        name: "full KDE",
        times: [(20_636, 19_525), (24_905, 23_690), (9_722, 8_968), (13_138, 11_965)],
    },
];

/// Returns the source's figures for the session that a case stands for.
pub(super) fn note(case: &str) -> Option<String> {
    let session = SESSIONS.iter().find(|session| session.case == case)?;
    let names = ["CPU, desktop", "start-up, desktop", "CPU, laptop", "start-up, laptop"];
    let each = names.iter().zip(session.times).map(|(name, (without, with))| {
        let win = f64::from(without - with);
        // The source divides by the time with the cache.
        let part = 100.0 * win / f64::from(with);
        format!("{name} {without} to {with} ms, {win:.0} ms less ({part:.1} % of the time with it)")
    });
    let each: Vec<String> = each.collect();
    Some(format!("The source, {}, cold: {}.", session.name, each.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wins_are_those_that_the_source_states() {
        let bare = note("icons-bare").unwrap();
        for part in ["1052 ms or 10.5 %", "1238 ms or 9.0 %", "629 ms or 9.4 %", "814 ms or 8.2 %"]
        {
            assert!(bare.contains(part), "{part}: {bare}");
        }
        assert!(note("icons-full").unwrap().contains("1111 ms or 5.4 %"));
        assert_eq!(note("python"), None);
    }
}
