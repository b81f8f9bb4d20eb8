//! Words of commands, as a shell finds them in the blocks of documents.
//!
//! This covers the syntax that the documents use. It executes nothing: a pattern stays as it is written, and so
//! does a variable that the page does not set.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;

/// The shell variables, with their values, that the examples of a document have set so far.
pub(super) type Variables = HashMap<String, String>;

/// The words before a command that belong to the shell, or run the rest.
const BEFORE_COMMANDS: [&str; 13] = [
    "if", "then", "else", "elif", "while", "until", "do", "{", "!", "time", "exec", "export",
    "sudo",
];

/// A word, or the end of a command.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// An operator of redirection: the next word is a file.
    Redirect,
    End,
}

/// Returns the shell commands in a text, each as a list of its words, without redirections and
/// assignments; a command within `$(...)` follows the one that contains it. Assignments change the
/// variables.
pub(super) fn commands(text: &str, variables: &mut Variables) -> Vec<Vec<String>> {
    let text = text.replace("\\\n", "");
    let mut found = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut inner = Vec::new();
    let mut is_file = false;
    let mut characters = text.chars().peekable();
    loop {
        let token = token(&mut characters, variables, &mut inner);
        match token {
            Some(Token::Redirect) => is_file = true,
            Some(Token::Word(_)) if is_file => is_file = false,
            Some(Token::Word(word)) => match assignment(&word) {
                _ if !words.is_empty() => words.push(word),
                _ if BEFORE_COMMANDS.contains(&word.as_str()) => {}
                Some((name, value)) => drop(variables.insert(name.to_owned(), value.to_owned())),
                None => words.push(word),
            },
            Some(Token::End) | None => {
                if !words.is_empty() {
                    found.push(std::mem::take(&mut words));
                }
                for text in std::mem::take(&mut inner) {
                    found.extend(commands(&text, variables));
                }
                if token.is_none() {
                    return found;
                }
            }
        }
    }
}

/// Splits `NAME=value`.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let begins = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    (is_name && begins).then_some((name, value))
}

/// Takes the next token; texts within `$(...)` go to `inner`.
fn token(
    characters: &mut Peekable<Chars<'_>>,
    variables: &Variables,
    inner: &mut Vec<String>,
) -> Option<Token> {
    while characters.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    match characters.peek()? {
        '#' => {
            while characters.next_if(|c| *c != '\n').is_some() {}
            return Some(Token::End);
        }
        '\n' | ';' | '|' | '&' | '(' | ')' => {
            characters.next();
            return Some(Token::End);
        }
        _ => {}
    }
    let mut word = String::new();
    while let Some(&next) = characters.peek() {
        match next {
            ' ' | '\t' | '\n' | ';' | '|' | '&' | '(' | ')' => break,
            '<' | '>' => {
                // A number before it is the file's; one of two, as in `2>&1`, is not a word either.
                if !word.is_empty() && !word.chars().all(|c| c.is_ascii_digit()) {
                    break;
                }
                while characters.next_if(|c| matches!(c, '<' | '>' | '&')).is_some() {}
                return Some(Token::Redirect);
            }
            '\'' => {
                characters.next();
                word.extend(std::iter::from_fn(|| characters.next_if(|c| *c != '\'')));
                characters.next();
            }
            '"' => {
                characters.next();
                while let Some(&next) = characters.peek().filter(|c| **c != '"') {
                    match next {
                        '$' => word.push_str(&dollar(characters, variables, inner)),
                        '\\' => {
                            characters.next();
                            word.extend(characters.next());
                        }
                        _ => word.extend(characters.next()),
                    }
                }
                characters.next();
            }
            '\\' => {
                characters.next();
                word.extend(characters.next());
            }
            '$' => word.push_str(&dollar(characters, variables, inner)),
            _ => word.extend(characters.next()),
        }
    }
    Some(Token::Word(word))
}

/// Takes a dollar sign with its name or parentheses, and returns the value, or the text where that is not known.
fn dollar(
    characters: &mut Peekable<Chars<'_>>,
    variables: &Variables,
    inner: &mut Vec<String>,
) -> String {
    characters.next();
    if characters.next_if_eq(&'(').is_some() {
        let mut depth = 1;
        let mut text = String::new();
        for next in characters.by_ref() {
            depth += i32::from(next == '(') - i32::from(next == ')');
            if depth == 0 {
                break;
            }
            text.push(next);
        }
        // An expression has no commands.
        if !text.starts_with('(') {
            inner.push(text.clone());
        }
        return format!("$({text})");
    }
    let braced = characters.next_if_eq(&'{').is_some();
    let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_' || (braced && *c != '}');
    let name: String = std::iter::from_fn(|| characters.next_if(is_name)).collect();
    if braced {
        characters.next();
    }
    variables.get(&name).cloned().unwrap_or_else(|| format!("${name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Vec<String>> {
        commands(text, &mut Variables::new())
    }

    #[test]
    fn commands_end_where_a_shell_ends_them() {
        let text = "a 1 # b\nc '2 | 3' | d \"4 $x\" && e 5,\\\n6;f\\ g \\\n  6 > h 2>&1 < i\n#j\nwhile k; do l; done";
        let expected: Vec<Vec<&str>> = vec![
            vec!["a", "1"],
            vec!["c", "2 | 3"],
            vec!["d", "4 $x"],
            vec!["e", "5,6"],
            vec!["f g", "6"],
            vec!["k"],
            vec!["l"],
            vec!["done"],
        ];
        assert_eq!(of(text), expected);
    }

    #[test]
    fn variables_of_the_page_have_their_values() {
        let text = "export A=x,y\nB=\"$A z\" run $A \"${B}\" $C\nrun $A/1";
        let expected: Vec<Vec<&str>> =
            vec![vec!["run", "x,y", "x,y z", "$C"], vec!["run", "x,y/1"]];
        assert_eq!(of(text), expected);
    }

    #[test]
    fn commands_within_others_are_found() {
        let expected: Vec<Vec<&str>> =
            vec![vec!["a", "$(b $(c) 1)", "2"], vec!["b", "$(c)", "1"], vec!["c"]];
        assert_eq!(of("a \"$(b $(c) 1)\" 2"), expected);
        assert_eq!(of("a $((1 + 2))"), [["a", "$((1 + 2))"]]);
    }
}
