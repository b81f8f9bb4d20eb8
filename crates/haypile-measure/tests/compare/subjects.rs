//! Which subjects are compared.

use haypile_measure::compare::{CompareError, Selector, compare};
use haypile_measure::result::Sample;

use crate::samples::{question, sample, with_program};

/// Two subjects with commas in their names under two programs.
fn samples() -> Vec<Sample> {
    let names = ["memory:policy=lru,size=1MiB", "memory:policy=sieve,size=1MiB"];
    let programs = ["main", "branch"];
    let pairs = names.into_iter().flat_map(|name| programs.map(|program| (name, program)));
    pairs.map(|(name, program)| with_program(sample(name, "r", 0, 100), program)).collect()
}

fn rows(list: &str) -> Result<Vec<[String; 4]>, CompareError> {
    let samples = samples();
    let mut question = question();
    question.subjects = Some(Selector::pair(list, &samples, &samples)?);
    let rows = compare(&samples, &samples, &question)?.rows.into_iter();
    Ok(rows.map(|it| [it.old.subject, it.old.program, it.new.subject, it.new.program]).collect())
}

#[test]
fn names_with_commas_are_told_apart_by_what_there_is() {
    let list = "memory:policy=lru,size=1MiB@main,memory:policy=sieve,size=1MiB@branch";
    let (lru, sieve) = ("memory:policy=lru,size=1MiB", "memory:policy=sieve,size=1MiB");
    assert_eq!(rows(list).unwrap(), [[lru, "main", sieve, "branch"].map(str::to_owned)]);
}

#[test]
fn programs_compare_every_subject_with_itself() {
    let rows = rows("@main,@branch").unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|[old, from, new, to]| old == new && from == "main" && to == "branch"));
}

#[test]
fn programs_are_not_mixed() {
    let error = rows("memory:policy=lru,size=1MiB,memory:policy=sieve,size=1MiB").unwrap_err();
    assert!(matches!(error, CompareError::SeveralPrograms { .. }), "{error}");
    assert!(error.to_string().contains("as in memory:policy=lru,size=1MiB@main"), "{error}");
    // Without a selection each is compared with itself.
    let samples = samples();
    assert_eq!(compare(&samples, &samples, &question()).unwrap().rows.len(), 4);
}

#[test]
fn subjects_that_are_not_there_are_an_error_that_lists_those_that_are() {
    for list in ["@main,@brunch", "@brunch", "", ",", "memory:policy=lru,size=1MiB@main,none"] {
        let error = rows(list).unwrap_err().to_string();
        assert!(error.contains("old has memory:policy=lru,size=1MiB@branch"), "{list}: {error}");
    }
}

#[test]
fn one_subject_is_told_that_two_are_needed() {
    for one in ["@main", "memory:policy=lru,size=1MiB", "memory:policy=lru,size=1MiB@main"] {
        let error = rows(one).unwrap_err();
        assert!(matches!(error, CompareError::OneSubject { .. }), "{one}: {error}");
        let told = format!("--subjects {one} names one subject");
        assert!(error.to_string().starts_with(&told), "{error}");
    }
}

/// `a,b` can be parted before and after `b` if there are subjects `a,b`, `b,c`, `a` and `c`.
#[test]
fn what_can_be_read_twice_is_refused() {
    let samples = ["a", "a,b", "b,c", "c"].map(|name| sample(name, "r", 0, 1));
    let error = Selector::pair("a,b,c", &samples, &samples).unwrap_err();
    assert!(error.to_string().contains("more than one way"), "{error}");
}
