//! Help texts that are wrapped once.
//!
//! The texts below the options are written with line breaks, for those who read the source. On a terminal
//! that is narrower, each of these lines would be broken again, and end in a line of a word or two.

use clap::{Command, CommandFactory};

use super::Arguments;

/// Returns the program's command with all subcommands, for the parser of the command line.
pub(crate) fn command() -> Command {
    unwrapped(Arguments::command())
}

/// The command with paragraphs in the place of lines, which clap wraps for the terminal.
fn unwrapped(command: Command) -> Command {
    let text = command.get_after_help().map(|text| paragraphs(&text.to_string()));
    let command = match text {
        Some(text) => command.after_help(text),
        None => command,
    };
    command.mut_subcommands(unwrapped)
}

/// Joins the lines of each paragraph. A line that is indented is an entry of a list or an example, and
/// stays; so does a heading, which ends with a colon.
fn paragraphs(text: &str) -> String {
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
    let mut joined = String::new();
    let mut previous = "";
    for line in text.lines() {
        if is_prose(previous) && is_prose(line) && !previous.ends_with(':') {
            joined.push(' ');
        } else if !joined.is_empty() {
            joined.push('\n');
        }
        joined.push_str(line);
        previous = line;
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_joined_and_lists_stay() {
        let text = "One two\nthree.\n\nExamples:\n  a b\n  c d\n\nEnd\nof it.";
        assert_eq!(paragraphs(text), "One two three.\n\nExamples:\n  a b\n  c d\n\nEnd of it.");
        assert_eq!(paragraphs("\n\na\nb"), "a b");
    }

    /// Every line of prose is as long as the terminal is wide, or a word more would be too long.
    #[test]
    fn no_help_text_is_broken_before_it_has_to_be() {
        const WIDTH: usize = 60;
        let mut seen = 0;
        let mut commands = vec![command()];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            let Some(text) = command.get_after_help() else { continue };
            let (name, text) = (command.get_name().to_owned(), text.to_string());
            let help = command.term_width(WIDTH).render_help().to_string();
            let lines: Vec<&str> = help.lines().collect();
            let begin: String = text.chars().take_while(|c| *c != '\n').take(20).collect();
            let at = lines.iter().rposition(|line| line.starts_with(&begin)).unwrap();
            for pair in lines[at..].windows(2) {
                let [line, next] = [pair[0], pair[1]];
                let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
                if is_prose(line) && is_prose(next) && !line.ends_with(':') {
                    let word = next.split(' ').next().unwrap_or_default();
                    let longer = line.chars().count() + 1 + word.chars().count();
                    assert!(longer > WIDTH, "{name}: '{line}' has room for '{word}'");
                    seen += 1;
                }
            }
        }
        assert!(seen > 20, "{seen} breaks were seen");
    }
}
