//! Each option of each command is given once: only then does clap notice that a value's parser and its field have different
//! types, and panics.

use std::collections::VecDeque;

use clap::error::ErrorKind;
use clap::{Arg, Command, CommandFactory, Parser};

use super::Arguments;

/// Values of which every option takes one, or names one in its error.
const SAMPLES: &[&str] = &[
    "name",
    "1",
    "2",
    "200",
    "1MiB",
    "10s",
    "none:",
    "a=1",
    "key=1",
    "fixed=1ms",
    "x-real-ip",
    "127.0.0.1:0",
    "http://127.0.0.1:1",
    "zipf:keys=10,exponent=1",
    "uniform",
    "twitter",
    "16,32",
    "fixed:bytes=100",
];

/// Returns the words that give an argument a value.
fn given(argument: &Arg, value: &str) -> Vec<String> {
    let name = argument.get_long().map(|long| format!("--{long}"));
    let name = name.or_else(|| argument.get_short().map(|short| format!("-{short}")));
    let value = argument.get_action().takes_values().then(|| value.to_owned());
    name.into_iter().chain(value).collect()
}

/// Returns the first value that the parser of an argument takes after these words.
fn accepted(command: &Command, words: &[String], argument: &Arg) -> Option<Vec<String>> {
    let known = argument.get_possible_values();
    let mut values: VecDeque<String> = known.iter().map(|value| value.get_name().into()).collect();
    values.extend(SAMPLES.iter().map(|value| (*value).to_owned()));
    while let Some(value) = values.pop_front() {
        let option = given(argument, &value);
        let Err(error) = command.clone().try_get_matches_from([words, &option].concat()) else {
            return Some(option);
        };
        if !matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) {
            return Some(option);
        }
        // Of "unknown case 'name' (known: small, large)", the first is as good as any.
        if let Some((_, known)) = error.to_string().split_once("(known: ")
            && let Some(first) = known.split([',', ')']).next()
            && value == SAMPLES[0]
        {
            values.push_back(first.to_owned());
        }
    }
    None
}

/// Gives each option of a command and of those below it, and collects those for which there is no sample.
fn give_all(command: &Command, path: &[String], without: &mut Vec<String>, tried: &mut usize) {
    let path = [path, &[command.get_name().to_owned()]].concat();
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        give_all(below, &path, without, tried);
    }
    let mut required = vec![command.get_name().to_owned()];
    for argument in command.get_arguments().filter(|argument| argument.is_required_set()) {
        required.extend(accepted(command, &required, argument).unwrap_or_default());
    }
    for argument in command.get_arguments().filter(|argument| !argument.is_required_set()) {
        let Some(option) = accepted(command, &required, argument) else {
            without.push(format!("{} {argument}", path.join(" ")));
            continue;
        };
        let words = [&path[..], &required[1..], &option].concat();
        *tried += usize::from(Arguments::try_parse_from(words).is_ok());
    }
}

#[test]
fn every_option_of_every_command_can_be_given() {
    let mut command = Arguments::command();
    command.build();
    let (mut without, mut tried) = (Vec::new(), 0);
    give_all(&command, &[], &mut without, &mut tried);
    assert!(without.is_empty(), "no sample is a value of these: {without:#?}");
    assert!(tried > 300, "{tried}");
}
