//! Every command of `haypile` that a page or a help text shows is one that the program takes.
//!
//! The parser of the program parses it, and does nothing else: neither must its files be there nor its caches be
//! installed. So this covers the commands that no test runs, because they measure for minutes or install packages.

use std::fs;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, FromArgMatches};

#[path = "../../tests/process/documents/page.rs"]
mod page;
mod words;

use super::Arguments;
use crate::cache::registry;
use page::Block;
use words::Variables;

const CHECKOUT: &str = "../..";
/// The name of the program.
const PROGRAM: &str = "haypile";
/// Programs that run the command after their own options.
const WRAPPERS: [&str; 2] = ["xvfb-run", XARGS];
const XARGS: &str = "xargs";
/// Programs to which the name is a folder or a library.
const OTHERS: [&str; 2] = ["cd", "pkg-config"];
/// Folders whose programs pages call by their paths.
const FOLDERS: [&str; 4] = ["scripts/", "traces/", "rivals/", "python/"];
/// Folders and files in these that a page creates.
const CREATED: &str = "rivals/shelf/";

/// The words of a command, which are those of a synopsis or of a command that somebody runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `haypile lab compare OLD NEW`, or `haypile simulate`: values may be names, or missing.
    Synopsis,
    Command,
}

/// Returns what is wrong with the words after `haypile`.
fn wrong(words: &[String], form: Form) -> Option<String> {
    let mut command = super::command();
    command.build();
    if form == Form::Synopsis
        && let Some(wrong) = unknown_option(&command, words)
    {
        return Some(wrong);
    }
    let line = [PROGRAM.to_owned()].into_iter().chain(words.iter().cloned());
    let matches = command.try_get_matches_from(line);
    let error = matches.and_then(|matches| Arguments::from_arg_matches(&matches)).err()?;
    let is_left_open = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => form == Form::Synopsis,
        ErrorKind::ValueValidation | ErrorKind::InvalidValue | ErrorKind::InvalidSubcommand => {
            let given = [ContextKind::InvalidValue, ContextKind::InvalidSubcommand];
            let given = given.into_iter().find_map(|kind| match error.get(kind) {
                Some(ContextValue::String(text)) => Some(text.as_str()),
                _ => None,
            });
            form == Form::Synopsis && given.is_some_and(is_placeholder)
        }
        _ => false,
    };
    let text = error.to_string();
    let first: Vec<&str> =
        text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    (!is_left_open).then(|| first.join(" "))
}

/// Whether a word of a synopsis stands for others: it has no small letters, or brackets or dots.
fn is_placeholder(word: &str) -> bool {
    !word.chars().any(char::is_lowercase) || word.starts_with('[') || word.contains("...")
}

/// Returns an option in these words that their command does not have. The parser stops at the first name of a
/// value, and would not see it.
fn unknown_option(program: &Command, words: &[String]) -> Option<String> {
    let mut command = program;
    for word in words.iter().take_while(|word| *word != "--") {
        let name = word.split('=').next().unwrap_or_default();
        let is_known = match (name.strip_prefix("--"), name.strip_prefix('-')) {
            (Some(long), _) => command.get_arguments().any(|argument| {
                argument.get_long_and_visible_aliases().is_some_and(|all| all.contains(&long))
            }),
            (None, Some(short)) if short.starts_with(char::is_alphabetic) => {
                let short = short.chars().next();
                command.get_arguments().any(|argument| argument.get_short() == short)
            }
            _ => {
                command = command.find_subcommand(word).unwrap_or(command);
                true
            }
        };
        if !is_known {
            return Some(format!("'{}' has no option '{name}'", command.get_name()));
        }
    }
    None
}

/// The commands that pages show, counted while they are checked.
#[derive(Default)]
struct Checked {
    commands: usize,
    wrong: Vec<String>,
}

impl Checked {
    fn check(&mut self, place: &str, words: &[String], form: Form) {
        self.commands += 1;
        if let Some(wrong) = wrong(words, form) {
            self.wrong.push(format!("{place}: {PROGRAM} {}: {wrong}", words.join(" ")));
        }
    }

    /// Checks a block that a reader pastes into a shell.
    fn shell(&mut self, place: &str, block: &Block, variables: &mut Variables, makefile: &str) {
        let is_command = |line: &String| block.kind != "console" || line.starts_with("$ ");
        let lines = block.lines.iter().filter(|line| is_command(line));
        let lines: Vec<&str> = lines.map(|line| line.strip_prefix("$ ").unwrap_or(line)).collect();
        for words in words::commands(&lines.join("\n"), variables) {
            let at = words.iter().position(|word| word == PROGRAM);
            match at {
                Some(at) if at == 0 || WRAPPERS.contains(&words[0].as_str()) => {
                    let mut arguments = words[at + 1..].to_vec();
                    // It appends what it reads.
                    arguments.extend((words[0] == XARGS).then(|| "WORD".to_owned()));
                    self.check(place, &arguments, Form::Command);
                }
                Some(_) if OTHERS.contains(&words[0].as_str()) => {}
                Some(_) => {
                    self.wrong.push(format!("{place}: unknown wrapper: {}", words.join(" ")));
                }
                None => self.wrong.extend(
                    wrong_path(&words)
                        .or_else(|| wrong_target(&words, makefile))
                        .map(|wrong| format!("{place}: {}: {wrong}", words.join(" "))),
                ),
            }
        }
    }

    /// Checks a line, if it begins with the name of the program.
    fn line(&mut self, place: &str, line: &str) {
        let begins =
            line.trim_start().strip_prefix(PROGRAM).is_some_and(|rest| rest.starts_with(' '));
        if begins {
            // In a table a bar is escaped, and stands between names of which one is written.
            let first = |word: &str| match word.split_once("\\|") {
                Some((first, _)) => first.trim_start_matches('[').to_owned(),
                None => word.to_owned(),
            };
            let line = line.split(' ').map(first).collect::<Vec<_>>().join(" ");
            for words in words::commands(&line, &mut Variables::new()) {
                if words[0] == PROGRAM {
                    self.check(place, &words[1..], Form::Synopsis);
                }
            }
        }
    }
}

/// Returns why a program of this checkout does not take these words: it is not there, or its text does not contain
/// an option.
fn wrong_path(words: &[String]) -> Option<String> {
    let program = words[0].as_str();
    let is_ours = FOLDERS.iter().any(|folder| program.starts_with(folder));
    if !is_ours || program.starts_with(CREATED) {
        return None;
    }
    let Ok(text) = fs::read_to_string(Path::new(CHECKOUT).join(program)) else {
        return Some("no such program".to_owned());
    };
    let options =
        words.iter().take_while(|word| *word != "--").filter(|word| word.starts_with("--"));
    let mut names = options.map(|word| word.split('=').next().unwrap_or_default());
    names
        .find(|name| !text.split(ends_option).any(|word| word == *name))
        .map(|name| format!("it has no option {name}"))
}

/// Returns why `make` does not take these words: a target that its file does not have.
fn wrong_target(words: &[String], makefile: &str) -> Option<String> {
    let targets = words.strip_prefix(&["make".to_owned()])?;
    let has = |target: &str| makefile.lines().any(|line| line.starts_with(&format!("{target}:")));
    let mut targets = targets.iter().filter(|word| !word.contains(['=', '/']));
    targets.find(|target| !has(target)).map(|target| format!("there is no target {target}"))
}

/// Options of other programs that pages mention without the program: of Chromium, gunicorn, Redis, rustc and valgrind.
const FOREIGN: [&str; 10] = [
    "--appendonly",
    "--cfg",
    "--disable-back-forward-cache",
    "--disable-background-networking",
    "--disk-cache-size",
    "--host-resolver-rules",
    "--no-sandbox",
    "--preload",
    "--save",
    "--toggle-collect",
];

/// Returns the long options of a command and of all below it.
fn long_options(command: &Command) -> Vec<String> {
    let own = command.get_arguments().filter_map(clap::Arg::get_long_and_visible_aliases).flatten();
    let own = own.map(|long| format!("--{long}"));
    own.chain(command.get_subcommands().flat_map(long_options)).collect()
}

/// Returns the texts of the programs in `scripts`.
fn scripts() -> String {
    let folder = fs::read_dir(Path::new(CHECKOUT).join("scripts")).unwrap();
    folder.filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok()).collect()
}

/// Whether a text that begins with an option, such as `--blocks N`, names one that exists: of this program, of one in
/// `scripts`, or of a known other one. Another text is right.
fn is_known_option(code: &str, known: &[String], scripts: &str) -> bool {
    let name = code.split(ends_option).next().unwrap_or_default();
    let is_option = name.strip_prefix("--").is_some_and(|name| !name.is_empty());
    !is_option
        || known.iter().any(|known| known == name)
        || FOREIGN.contains(&name)
        || scripts.split(ends_option).any(|word| word == name)
}

fn ends_option(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || c == '-')
}

/// The options of a level that stands before another.
const OF_LEVELS: [&str; 3] = ["stale", "write", "write_max"];

/// Returns the options in a text with URLs of caches, or in a list of subjects, that their schemes do not have.
fn unknown_url_options(text: &str, registry: &haypile::Registry) -> Vec<String> {
    let mut found = Vec::new();
    let ends = |c: char| c.is_whitespace() || "\"'`()|".contains(c);
    for word in text.split(ends).map(|word| word.trim_end_matches(['.', ',', ':', ';'])) {
        let mut scheme = None;
        for piece in word.split([',', '?', '&', '+']) {
            let named = |name: &str| registry.schemes().find(|scheme| scheme.name == name);
            // What precedes a URL in its word is another name: of a variable, or of a case.
            let begin = piece.split(':').next().unwrap_or_default();
            let begin = begin.rsplit('=').next().unwrap_or_default();
            let of_url = named(begin).filter(|_| piece.contains(':'));
            let option = match of_url {
                Some(_) => piece.split_once(':').map_or("", |(_, option)| option),
                None => piece,
            };
            // A subject that is not a URL ends the options of the one before.
            let ends = of_url.is_none() && !piece.contains('=');
            scheme = if ends { None } else { of_url.or(scheme) };
            let Some((option, _)) = option.split_once('=') else { continue };
            let is_name = option.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            if let Some(scheme) = scheme
                && is_name
                && scheme.option(option).is_none()
                && !OF_LEVELS.contains(&option)
            {
                found.push(format!("'{word}': {} has no option {option}=", scheme.name));
            }
        }
    }
    found
}

#[test]
fn every_command_of_every_page_is_one_that_the_program_takes() {
    let makefile = fs::read_to_string(Path::new(CHECKOUT).join("Makefile")).unwrap();
    let (options, scripts) = (long_options(&super::command()), scripts());
    let registry = registry();
    let mut checked = Checked::default();
    let pages = page::pages(Path::new(CHECKOUT));
    for page in &pages {
        let mut variables = Variables::new();
        for block in page.blocks() {
            let place = format!("{}:{}", page.name, block.line);
            if block.is_shell() {
                checked.shell(&place, &block, &mut variables, &makefile);
            } else {
                block.lines.iter().for_each(|line| checked.line(&place, line));
            }
        }
        for (line, code) in page.inline_code() {
            checked.line(&format!("{}:{line}", page.name), &code);
            if !is_known_option(&code, &options, &scripts) {
                checked.wrong.push(format!("{}:{line}: unknown option in `{code}`", page.name));
            }
        }
        for (number, line) in page.text.lines().enumerate() {
            let unknown = unknown_url_options(line, &registry).into_iter();
            checked
                .wrong
                .extend(unknown.map(|wrong| format!("{}:{}: {wrong}", page.name, number + 1)));
        }
    }
    eprintln!("{} commands of {} pages", checked.commands, pages.len());
    assert!(checked.wrong.is_empty(), "{}", checked.wrong.join("\n"));
    assert!(checked.commands > 250, "only {} commands were found", checked.commands);
}

/// Returns the indented lines that mention the program, each with those that it goes on in. Lists are indented too.
fn examples(help: &str) -> Vec<String> {
    let mut examples = Vec::new();
    let mut goes_on = false;
    for line in help.lines().filter(|line| line.starts_with("  ")) {
        if goes_on || line.split(' ').any(|word| word == PROGRAM) {
            goes_on = line.ends_with('\\');
            examples.push(line.trim_start().to_owned());
        }
    }
    examples
}

#[test]
fn every_example_of_every_help_text_is_one_that_the_program_takes() {
    let mut checked = Checked::default();
    let mut commands = vec![super::command()];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().cloned());
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let block = Block { line: 0, kind: "sh".to_owned(), lines: examples(&text), mark: None };
        checked.shell(command.get_name(), &block, &mut Variables::new(), "");
    }
    assert!(checked.wrong.is_empty(), "{}", checked.wrong.join("\n"));
    assert!(checked.commands > 90, "only {} examples were found", checked.commands);
}

#[test]
fn wrong_commands_are_found() {
    let words = |text: &str| words::commands(text, &mut Variables::new()).remove(0)[1..].to_vec();
    for right in
        ["haypile lab loop --http=false", "haypile simulate a.csv -p lru", "haypile --help"]
    {
        assert_eq!(wrong(&words(right), Form::Command), None, "{right}");
    }
    for synopsis in
        ["haypile simulate", "haypile lab NAME --help", "haypile lab micro -n N --keys K"]
    {
        assert_eq!(wrong(&words(synopsis), Form::Synopsis), None, "{synopsis}");
        assert!(synopsis.contains("--help") || wrong(&words(synopsis), Form::Command).is_some());
    }
    for (text, part) in [
        ("haypile lab loop --htp", "--htp"),
        ("haypile lab lop", "lop"),
        ("haypile simulate a.csv --policy lfux", "lfux"),
        ("haypile lab micro --blocks few", "few"),
    ] {
        for form in [Form::Command, Form::Synopsis] {
            let wrong = wrong(&words(text), form).unwrap_or_default();
            assert!(wrong.contains(part), "{text}: {wrong}");
        }
    }
    let wrong = wrong(&words("haypile simulate FILE --size SIZE --polcy lru"), Form::Synopsis);
    assert_eq!(wrong.as_deref(), Some("'simulate' has no option '--polcy'"));
    let known = ["--blocks".to_owned()];
    let is_known = |code: &str| is_known_option(code, &known, "parser.add_argument(\"--parts\")");
    for right in ["--blocks 3", "--blocks=3", "--parts", "--save ''", "--", "a --b"] {
        assert!(is_known(right), "{right}");
    }
    assert!(!is_known("--block 3") && !is_known("--part"));
    let registry = registry();
    let unknown = |text: &str| unknown_url_options(text, &registry);
    for right in [
        "memory:size=1MiB,policy=s3fifo:small=10,moka:x=1",
        "A=memory://?stale=5s+file:/a?size=1MiB x=1",
    ] {
        assert_eq!(unknown(right), Vec::<String>::new());
    }
    for wrong in [
        "(memory:sise=1MiB,policy=lru)",
        "a=file:/x,size=1MiB,sise=2",
        "moka,memory:policy=lru,sise=3",
    ] {
        assert!(unknown(wrong)[0].ends_with(" has no option sise="), "{wrong}");
    }
    let words = |text: &str| words::commands(text, &mut Variables::new()).remove(0);
    assert_eq!(wrong_target(&words("make a b X=1 target/c"), "a:\nb: a\n"), None);
    assert_eq!(
        wrong_target(&words("make a c"), "a:\nb: a\n").as_deref(),
        Some("there is no target c")
    );
    assert_eq!(wrong_path(&words("scripts/http-speed --quick")), None);
    let wrong = wrong_path(&words("scripts/http-speed --quic"));
    assert_eq!(wrong.as_deref(), Some("it has no option --quic"));
    assert_eq!(wrong_path(&words("scripts/none")).as_deref(), Some("no such program"));
}
