//! `haypile schemes`

use std::fmt::Write;

use haypile::ByteSize;
use haypile::url::{OptionSpec, Place, Scheme, ValueKind};
use serde_json::{Value, json};

use crate::args::Schemes;
use crate::{cache, output};

/// Larger bounds count as none and are not printed.
const NO_LIMIT_BYTES: u64 = 1 << 40;

const LEVELS_SHAPE: &str = "LEVEL -> LEVEL";
const LEVELS_HELP: &str = "further options of a level that stands before another, as in \
                           memory://?stale=5s -> file:///tmp/app.haypile";

/// Executes `haypile schemes`: lists the URL schemes of caches and their options.
pub(crate) fn run(arguments: &Schemes) -> anyhow::Result<()> {
    let registry = cache::registry();
    let schemes = || registry.schemes();
    if arguments.json {
        return output::json(&json!({
            "schemes": schemes().map(value).collect::<Vec<_>>(),
            "levels": {
                "shape": LEVELS_SHAPE,
                "help": LEVELS_HELP,
                "options": options(OptionSpec::UPPER_LEVEL),
            },
        }));
    }
    if arguments.markdown {
        output::text(&markdown(schemes())?)?;
        return Ok(());
    }
    let mut texts = Vec::new();
    for scheme in schemes() {
        let shape = shape(scheme.place);
        let head = format!("{}:{shape}\n  {}\n", scheme.name, scheme.help);
        texts.push(head + &list(scheme.options)?);
    }
    texts.push(format!("{LEVELS_SHAPE}\n  {LEVELS_HELP}\n{}", list(OptionSpec::UPPER_LEVEL)?));
    output::text(&texts.join("\n"))?;
    Ok(())
}

fn list(options: &[OptionSpec]) -> anyhow::Result<String> {
    let mut text = String::new();
    for OptionSpec { name, kind, help } in options {
        writeln!(text, "    {name}={}\n        {help}", values(*kind))?;
    }
    Ok(text)
}

fn options(options: &[OptionSpec]) -> Value {
    let value = |OptionSpec { name, kind, help }: &OptionSpec| {
        let values = values(*kind);
        json!({ "name": name, "values": values, "help": help })
    };
    options.iter().map(value).collect()
}

fn value(scheme: &'static Scheme) -> Value {
    json!({
        "name": scheme.name,
        "shape": format!("{}:{}", scheme.name, shape(scheme.place)),
        "help": scheme.help,
        "options": options(scheme.options),
    })
}

/// Returns the text of docs/options.md.
fn markdown(schemes: impl Iterator<Item = &'static Scheme>) -> anyhow::Result<String> {
    let mut text = INTRODUCTION.to_owned();
    for scheme in schemes {
        let Scheme { name, help, options, .. } = scheme;
        write!(text, "\n## `{name}:{}`\n\n{}.\n", shape(scheme.place), capitalized(help))?;
        text += &table(options)?;
    }
    write!(text, "\n## Levels: `{LEVELS_SHAPE}`\n\n{}.\n", capitalized(LEVELS_HELP))?;
    Ok(text + &table(OptionSpec::UPPER_LEVEL)?)
}

const INTRODUCTION: &str = "\
# Options of cache URLs

`make options` writes this page from what `haypile schemes` lists; a test compares both. A URL has its
options after `?`, separated by `&`. The short form, which a shell needs no quotes for, has them after a
comma: `file:/tmp/app.haypile,size=64MiB,ttl=10m`. Sizes take KiB, MiB, GiB (of 1024) and KB, MB, GB (of
1000), durations ms, s, m, h and d.
";

fn table(options: &[OptionSpec]) -> anyhow::Result<String> {
    if options.is_empty() {
        return Ok("\nIt has no options.\n".to_owned());
    }
    let mut text = "\n| option | values | what it does |\n|---|---|---|\n".to_owned();
    for OptionSpec { name, kind, help } in options {
        writeln!(text, "| `{name}=` | {} | {help} |", values(*kind))?;
    }
    Ok(text)
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the part of a URL between its scheme and its options.
fn shape(place: Place) -> &'static str {
    match place {
        Place::Nowhere => "//",
        Place::Path => "///PATH",
        Place::Server => "//HOST:PORT",
        Place::ServerOrPath => "//HOST:PORT or ///PATH",
    }
}

/// Returns the values that an option takes.
fn values(kind: ValueKind) -> String {
    match kind {
        ValueKind::Size { min_bytes, max_bytes } if max_bytes > NO_LIMIT_BYTES => {
            format!("from {}", ByteSize(min_bytes))
        }
        ValueKind::Size { min_bytes, max_bytes } => {
            format!("{} to {}", ByteSize(min_bytes), ByteSize(max_bytes))
        }
        ValueKind::Count { min, max } => format!("{min} to {max}"),
        ValueKind::Duration => "DURATION".to_owned(),
        ValueKind::Policy => "POLICY".to_owned(),
        ValueKind::Compression => "lz4, zstd, zstd:LEVEL".to_owned(),
        ValueKind::Choice(words) => words.join(", "),
        ValueKind::Path => "PATH".to_owned(),
        ValueKind::Text => "TEXT".to_owned(),
        _ => "VALUE".to_owned(),
    }
}
