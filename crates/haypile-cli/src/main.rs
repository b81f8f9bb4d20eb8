//! The `haypile` program.

mod args;
mod cache;
mod command;
mod dump;
mod input;
mod interrupt;
mod location;
mod notation;
mod output;

use std::io::ErrorKind;
use std::process::ExitCode;

use anyhow::Error;
use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue};
use haypile::url::CacheUrl;
use haypile_sim::trace::TraceError;

use args::{Arguments, Command, TraceCommand};
use output::note;

/// Exit status of a failure or of wrong arguments.
const FAILURE: u8 = 2;
/// Exit status of a negative answer, such as that a result became slower.
const NEGATIVE: u8 = 1;

fn main() -> ExitCode {
    match run(arguments().command) {
        Ok(status) => status,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            note!("haypile: {}", describe(&error));
            ExitCode::from(interrupt::status().unwrap_or(FAILURE))
        }
    }
}

/// Parses the command line; wrong arguments and requests for help end the program.
fn arguments() -> Arguments {
    let matches = args::command().try_get_matches();
    let arguments = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    arguments.unwrap_or_else(|error| args::meant::with_tip(without_passwords(error)).exit())
}

/// Hides what could be a password in an error that quotes a cache's URL in the wrong place.
fn without_passwords(mut error: clap::Error) -> clap::Error {
    let schemes: Vec<_> = cache::registry().schemes().map(|scheme| scheme.name).collect();
    // The patterns of a trace have '@' before their weights.
    let is_pattern = matches!(
        error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(argument)) if argument == "<PATTERN>"
    );
    let is_url = |text: &str| {
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
        text.contains('@') && !is_pattern || text.contains("://") || schemes.contains(&scheme)
    };
    for kind in [ContextKind::InvalidArg, ContextKind::InvalidSubcommand, ContextKind::InvalidValue]
    {
        if let Some(ContextValue::String(text)) = error.get(kind)
            && is_url(text)
        {
            let shown = ContextValue::String(CacheUrl::redacted_text(text));
            error.insert(kind, shown);
            // A tip repeats the text.
            if error.get(ContextKind::Suggested).is_some() {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(Vec::new()));
            }
        }
    }
    error
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Simulate(arguments) => command::simulate::run(&arguments),
        Command::Advise(arguments) => command::advise::run(&arguments),
        Command::Trace { command } => match command {
            TraceCommand::Info(arguments) => command::trace::info::run(&arguments),
            TraceCommand::Convert(arguments) => command::trace::convert::run(&arguments),
            TraceCommand::Generate(arguments) => command::trace::generate::run(&arguments),
            TraceCommand::Example(arguments) => command::trace::example::run(&arguments),
        },
        Command::Lab { command } => return command::lab::run(&command),
        Command::Bench(args::lab::Bench(arguments)) => {
            return command::lab::experiment::run(&arguments);
        }
        Command::Rivals { command } => return command::rivals::run(&command),
        Command::Proxy(arguments) => return command::proxy::run(&arguments),
        Command::Icons { command } => return command::icons::run(&command),
        Command::Get(arguments) => return command::cache::get::run(&arguments),
        Command::Set(arguments) => return command::cache::set::run(&arguments),
        Command::Add(arguments) => return command::cache::set::add(&arguments),
        Command::Delete(arguments) => return command::cache::delete::run(&arguments),
        Command::Invalidate(arguments) => command::cache::invalidate::run(&arguments),
        Command::Incr(arguments) => return command::cache::incr::run(&arguments),
        Command::Keys(arguments) => command::cache::keys::run(&arguments),
        Command::Dump(arguments) => command::cache::dump::run(&arguments),
        Command::Load(arguments) => command::cache::load::run(&arguments),
        Command::Clear(arguments) => command::cache::clear::run(&arguments),
        Command::Stat(arguments) => command::file::stat::run(&arguments),
        Command::Check(arguments) => return command::file::check::run(&arguments),
        Command::Policies(arguments) => command::policies::run(&arguments),
        Command::Schemes(arguments) => command::schemes::run(&arguments),
        Command::Completions { shell } => command::completions::run(shell),
        Command::Man { directory } => command::man::run(&directory),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the reader of the output has closed its pipe, as in `haypile simulate ... | head`. A
/// cache's server that closes its connection does not count.
fn is_broken_pipe(error: &Error) -> bool {
    if error.chain().any(|cause| cause.is::<haypile::Error>() || cause.is::<haypile::OpenError>()) {
        return false;
    }
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    kinds.map(std::io::Error::kind).any(|kind| kind == ErrorKind::BrokenPipe)
}

/// Returns the text of an error and of its causes, and the option that helps. A cause that the
/// error's own text contains, as the library's do, is not repeated.
fn describe(error: &Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    match error.chain().find_map(|cause| hint(cause.downcast_ref()?)) {
        Some(hint) => format!("{text} ({hint})"),
        None => text,
    }
}

/// Returns the option that helps where a trace cannot be read.
fn hint(error: &TraceError) -> Option<&'static str> {
    match error {
        TraceError::Unrecognised { .. } | TraceError::MixedFormats { .. } => Some("--format NAME"),
        TraceError::Columns { .. } => Some("--columns key=...,size=..."),
        TraceError::Bad(_) => Some("--skip-bad skips and counts such entries"),
        _ => None,
    }
}
