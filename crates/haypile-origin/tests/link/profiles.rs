//! Links as texts.

use std::net::SocketAddr;
use std::time::Duration;

use haypile_origin::link::{Link, LinkEmulator, LinkProfile};
use proptest::prelude::*;

fn parse(text: &str) -> LinkProfile {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn named_links() {
    let names = ["unshaped", "broadband", "umts", "gsm", "cable", "4g", "3g", "wifi"];
    assert_eq!(LinkProfile::NAMES, names);
    for name in names {
        let profile = LinkProfile::named(name).expect("it is there");
        assert_eq!((parse(name), profile.to_string()), (profile, name.to_owned()));
    }
    assert_eq!(LinkProfile::named("5g"), None);
    let umts = parse("umts");
    assert_eq!(
        (umts.down_bits_per_second, umts.up_bits_per_second),
        (Some(1_000_000), Some(1_000_000))
    );
    assert_eq!(
        (umts.round_trip, umts.jitter),
        (Duration::from_millis(150), Duration::from_millis(20))
    );
    assert_eq!(parse("3g").up_bits_per_second, Some(768_000));
    assert_eq!(LinkProfile::unshaped().down_bits_per_second, None);
}

#[test]
fn links_of_properties() {
    let text = "down=1.6Mbit/s,up=768kbit/s,rtt=150ms,jitter=20ms,loss=1%";
    let profile = parse(text);
    let expected = LinkProfile {
        name: text.to_owned(),
        down_bits_per_second: Some(1_600_000),
        up_bits_per_second: Some(768_000),
        round_trip: Duration::from_millis(150),
        jitter: Duration::from_millis(20),
        loss: 0.01,
    };
    assert_eq!((&profile, profile.to_string()), (&expected, text.to_owned()));
    for (text, normal) in [
        ("rtt=1.5s", "down=unlimited,up=unlimited,rtt=1500ms"),
        (" up=8bit/s , rtt=500us", "down=unlimited,up=8bit/s,rtt=0.5ms"),
        ("3g,loss=0.25%", "down=1.6Mbit/s,up=768kbit/s,rtt=150ms,loss=0.25%"),
        ("umts,jitter=0,up=unlimited", "down=1Mbit/s,up=unlimited,rtt=150ms"),
        ("down=1234567bit/s", "down=1.234567Mbit/s,up=unlimited,rtt=0ms"),
    ] {
        let profile = parse(text);
        assert_eq!((profile.to_string(), &profile.name[..]), (normal.to_owned(), normal), "{text}");
        assert_eq!(parse(normal), profile, "{text}");
    }
    // A name that stands for something else is not shown.
    let changed = LinkProfile { loss: 0.5, ..parse("3g") };
    assert_eq!(changed.to_string(), "down=1.6Mbit/s,up=768kbit/s,rtt=150ms,loss=50%");
}

#[test]
fn errors_name_what_is_allowed() {
    let units = "is not 'unlimited' or a number of bit/s, kbit/s, Mbit/s or Gbit/s, from 1bit/s to \
                 1000Gbit/s";
    let known = "known: unshaped, broadband, umts, gsm, cable, 4g, 3g, wifi, or properties such as \
                 'down=1.6Mbit/s,up=768kbit/s,rtt=150ms,jitter=20ms,loss=1%'";
    let property = "(known: down, up, rtt, jitter, loss)";
    for (text, error) in [
        ("5g", format!("unknown link '5g' ({known})")),
        ("", format!("unknown link '' ({known})")),
        ("3g,wifi", format!("unknown property 'wifi' of a link {property}")),
        ("delay=1ms", format!("unknown property 'delay' of a link {property}")),
        ("up=1Mbit/s,up=2Mbit/s", "the link has 'up' twice; name each property once".to_owned()),
    ] {
        assert_eq!(text.parse::<LinkProfile>().expect_err(text).to_string(), error);
    }
    for rate in [
        "0bit/s",
        "1",
        "1mbit/s",
        "-1Mbit/s",
        "1e3bit/s",
        "0.5bit/s",
        ".5Mbit/s",
        "1001Gbit/s",
        "Mbit/s",
        "1 Mbit/s",
        "99999999999999999999bit/s",
    ] {
        for key in ["down", "up"] {
            let error = format!("{key}={rate}").parse::<LinkProfile>().expect_err(rate).to_string();
            assert_eq!(error, format!("the rate '{key}' of the link {units}"));
        }
    }
    for (text, error) in [
        ("rtt=61s", "'rtt' of the link is not a number of us, ms or s, at most 60s"),
        ("rtt=1", "'rtt' of the link is not a number of us, ms or s, at most 60s"),
        ("jitter=1ms", "'jitter' of the link is not a number of us, ms or s, at most 'rtt'"),
        ("rtt=2ms,jitter=x", "'jitter' of the link is not a number of us, ms or s, at most 'rtt'"),
        (
            "loss=51%",
            "'loss' of the link is not a number with % and at most 6 decimals, from 0% to 50%",
        ),
        (
            "loss=0.01",
            "'loss' of the link is not a number with % and at most 6 decimals, from 0% to 50%",
        ),
        (
            "loss=NaN%",
            "'loss' of the link is not a number with % and at most 6 decimals, from 0% to 50%",
        ),
    ] {
        assert_eq!(text.parse::<LinkProfile>().expect_err(text).to_string(), error);
    }
    let profile = LinkProfile { loss: f64::NAN, ..LinkProfile::unshaped() };
    let origin: SocketAddr = ([127, 0, 0, 1], 9).into();
    let started = LinkEmulator::start_in_thread(profile.clone(), 1, origin).map(drop);
    for started in [Link::new(profile, 1).map(drop), started] {
        assert_eq!(started.expect_err("no loss").kind(), std::io::ErrorKind::InvalidInput);
    }
}

proptest! {
    #[test]
    fn texts_are_read_as_the_same_link(
        down in prop::option::of(1_u64..=1_000_000_000_000),
        up in prop::option::of(1_u64..2_000_000),
        round_trip in 0_u64..=60_000_000_000,
        jitter in 0_u64..=60_000_000_000,
        loss in 0_u32..=50_000_000,
    ) {
        let profile = LinkProfile {
            name: String::new(),
            down_bits_per_second: down,
            up_bits_per_second: up,
            round_trip: Duration::from_nanos(round_trip),
            jitter: Duration::from_nanos(jitter.min(round_trip)),
            loss: f64::from(loss) / 1e8,
        };
        let text = profile.to_string();
        let read = parse(&text);
        assert_eq!(LinkProfile { name: text, ..profile }, read);
    }

    #[test]
    fn any_text_is_a_link_or_an_error(text in "((down|up|rtt|jitter|loss)=)?[0-9.]{0,24}([GMk]?bit/s|[mu]?s|%)?(,.*)?") {
        let _ = text.parse::<LinkProfile>();
    }
}
