//! `PolicySpec`: names of policies as text.

use haypile_policy::{PolicyError, PolicyKind, PolicySpec};
use proptest::prelude::*;

fn error(text: &str) -> PolicyError {
    text.parse::<PolicySpec>().unwrap_err()
}

#[test]
fn every_policy_parses_under_its_name_and_shows_only_what_differs() {
    for kind in PolicySpec::kinds() {
        let spec: PolicySpec = kind.name.parse().unwrap();
        assert_eq!(spec.to_string(), kind.name);
        assert_eq!(spec.kind().name, kind.name);
        for param in kind.params {
            assert!((param.min..=param.max).contains(&param.default), "{}", param.name);
            assert_eq!(spec.value(param.name).to_bits(), param.default.to_bits());
            let explicit = format!("{}:{}={}", kind.name, param.name, param.default);
            assert_eq!(explicit.parse::<PolicySpec>().unwrap(), spec);
        }
    }
    assert_eq!(PolicySpec::default().to_string(), "s3fifo");
}

#[test]
fn commas_and_colons_separate_parameters() {
    let spec: PolicySpec = "s3fifo:small=20,threshold=2".parse().unwrap();
    assert_eq!(spec, "s3fifo:threshold=2:small=20".parse().unwrap());
    assert_eq!(spec.to_string(), "s3fifo:small=20,threshold=2");
    assert_ne!(spec, "s3fifo".parse().unwrap());
    assert_ne!("fifo".parse::<PolicySpec>().unwrap(), "lru".parse().unwrap());
}

#[test]
fn a_number_is_shown_in_one_way() {
    for zero in ["0", "-0", "0.0", "+0e5"] {
        let spec: PolicySpec = format!("s3fifo:ghost={zero}").parse().unwrap();
        assert_eq!(spec.to_string(), "s3fifo:ghost=0");
    }
    assert_eq!("arc:weighted=1e0".parse::<PolicySpec>().unwrap().to_string(), "arc");
}

#[test]
fn lists() {
    let show = |text| -> Vec<String> {
        PolicySpec::parse_list(text).unwrap().iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        show("lru,s3fifo:small=20,threshold=2,sieve"),
        ["lru", "s3fifo:small=20,threshold=2", "sieve"]
    );
    assert_eq!(
        show("s3fifo:small=20:threshold=2,clock:bits=2"),
        ["s3fifo:small=20,threshold=2", "clock:bits=2"]
    );
    assert_eq!(show("lru,,sieve,"), ["lru", "sieve"]);
    assert!(show("").is_empty());
    assert_eq!(
        PolicySpec::parse_list("lru,nosuch").unwrap_err(),
        PolicyError::UnknownPolicy { name: "nosuch".to_owned() }
    );
    assert_eq!(
        PolicySpec::parse_list("small=20,lru").unwrap_err(),
        PolicyError::UnknownPolicy { name: "small=20".to_owned() }
    );
    assert_eq!(PolicySpec::split_list("belady,x:y=1,z=2"), ["belady", "x:y=1:z=2"]);
}

#[test]
fn errors_say_what_is_allowed() {
    assert_eq!(
        error("LRU").to_string(),
        "unknown policy 'LRU', did you mean 'lru'? (known: fifo, lru, slru, slru4, clock, \
         sieve, s3fifo, wtinylfu, arc, lirs, segment)"
    );
    assert!(error("s3fif0").to_string().contains("did you mean 's3fifo'?"));
    let lfu = error("lfu").to_string();
    assert!(
        lfu.starts_with("unknown policy 'lfu'; 'wtinylfu' is the nearest of its kind (known:"),
        "{lfu}"
    );
    assert!(!error("nothing like it").to_string().contains("did you mean"));
    assert_eq!(
        error("s3fifo:big=1").to_string(),
        "policy 's3fifo' has no parameter 'big'; it takes small, threshold, ghost"
    );
    assert_eq!(
        error("lru:bits=1").to_string(),
        "policy 'lru' has no parameter 'bits'; it takes none"
    );
    assert_eq!(
        error("s3fifo:small").to_string(),
        "policy 's3fifo': 'small' is not of the form name=value; it takes small, threshold, ghost"
    );
    for value in ["8", "0.9", "1.5", "x", "", "nan", "inf", "-1", "1e9", "1 "] {
        assert_eq!(
            error(&format!("clock:bits={value}")).to_string(),
            format!(
                "policy 'clock': parameter 'bits' must be a whole number from 1 to 7, not '{value}'"
            )
        );
    }
}

#[test]
fn a_parameter_is_given_once() {
    assert_eq!(
        error("s3fifo:small=5,small=6").to_string(),
        "policy 's3fifo': parameter 'small' is given twice"
    );
}

/// A policy with some of its parameters set to values in their range.
fn specs() -> impl Strategy<Value = (&'static PolicyKind, Vec<Option<f64>>)> {
    prop::sample::select(PolicySpec::kinds().to_vec()).prop_flat_map(|kind| {
        let value = |param: &haypile_policy::Param| {
            let whole = param.whole;
            let any = param.min..=param.max;
            prop::option::of(any.prop_map(move |value| if whole { value.round() } else { value }))
        };
        let values: Vec<_> = kind.params.iter().map(value).collect();
        (Just(kind), values)
    })
}

proptest! {
    #[test]
    fn what_is_shown_parses_to_the_same((kind, values) in specs(), separator in "[,:]") {
        let params = kind.params.iter().zip(&values);
        let texts = params.filter_map(|(param, value)| Some(format!("{}={}", param.name, (*value)?)));
        let text = format!("{}:{}", kind.name, texts.collect::<Vec<_>>().join(&separator));
        let spec: PolicySpec = text.parse().unwrap();
        for (param, value) in kind.params.iter().zip(values) {
            let value = value.unwrap_or(param.default);
            prop_assert_eq!(spec.value(param.name).to_bits(), value.to_bits());
        }
        prop_assert_eq!(&spec.to_string().parse::<PolicySpec>().unwrap(), &spec);
        let list = format!("lru,{spec},fifo");
        prop_assert_eq!(&PolicySpec::parse_list(&list).unwrap()[1], &spec);
    }

    /// Any text is a policy, or an error that names some.
    #[test]
    fn garbage_is_an_error(text in "\\PC{0,20}", known in any::<bool>()) {
        let text = if known { format!("s3fifo:{text}") } else { text };
        if let Err(error) = text.parse::<PolicySpec>() {
            prop_assert!(!error.to_string().is_empty());
        }
        let _ = PolicySpec::parse_list(&text);
    }
}
