//! Is the manual page that is committed the one of the header?

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// `make header` sets it: write the page instead of comparing it.
const WRITE: &str = "HAYPILE_WRITE_HEADER";

#[test]
fn the_manual_page_is_current() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = fs::read_to_string(crate_dir.join("include/haypile.h")).unwrap();
    let path = crate_dir.join("haypile.3");
    let page = page_of(&header);
    if env::var_os(WRITE).is_some() {
        fs::write(&path, page).unwrap();
        return;
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == page, "{} is not current: run `make header`", path.display());
}

#[test]
fn each_function_of_the_header_is_in_the_page() {
    let header = include_str!("../include/haypile.h");
    let page = page_of(header);
    let functions: Vec<&str> = header.lines().filter_map(function_of).collect();
    assert!(functions.len() > 40, "{functions:?}");
    for function in functions {
        assert!(page.contains(&format!("\n.SS {function}\n")), "{function}");
    }
}

/// Name of the function that a line declares.
fn function_of(line: &str) -> Option<&str> {
    let before = line.split('(').next()?;
    if line.starts_with([' ', '/', '#', 't']) || before == line {
        return None;
    }
    let name = before.rsplit([' ', '*']).next()?;
    name.starts_with("haypile_").then_some(name)
}

/// A declaration with the comment before it.
#[derive(Default)]
struct Declaration<'a> {
    comment: Vec<&'a str>,
    code: Vec<&'a str>,
}

impl<'a> Declaration<'a> {
    /// The names of a page's sections: its function, or the type or constant.
    fn name(&self) -> Option<&'a str> {
        let first = self.code.first()?;
        if let Some(name) = first.strip_prefix("#define HAYPILE_") {
            let end = name.find(' ')?;
            return first.get("#define ".len().."#define HAYPILE_".len() + end);
        }
        let is_type = first.starts_with("typedef") || first.starts_with("enum");
        let words = |c: char| !(c.is_alphanumeric() || c == '_');
        match function_of(first) {
            None if is_type => first.split(words).find(|word| word.starts_with("haypile_")),
            function => function,
        }
    }
}

fn page_of(header: &str) -> String {
    let (opening, rest) = header.split_once("#define HAYPILE_H\n").unwrap();
    let opening: Vec<&str> = opening
        .lines()
        .skip_while(|line| !line.starts_with("// Haypile: "))
        .map_while(|line| line.strip_prefix("//"))
        .collect();
    let mut page = format!(
        ".\\\" Written by capi/tests/man.rs from haypile.h: run `make header`.\n\
         .TH HAYPILE 3 \"\" \"haypile {}\" \"Haypile\"\n.SH NAME\nhaypile \\- caches of bytes under \
         keys of bytes, bounded in bytes\n.SH SYNOPSIS\n.nf\n#include <haypile.h>\n\ncc program.c \
         $(pkg\\-config \\-\\-cflags \\-\\-libs haypile)\n.fi\n.SH DESCRIPTION\n",
        env!("CARGO_PKG_VERSION"),
    );
    text(&mut page, &opening);
    let rest = preprocessed(rest);
    let declarations = declarations_of(&rest);
    let (mut section, mut last) = ("", "");
    for declaration in &declarations {
        let Some(name) = declaration.name() else { continue };
        // The type of the enumeration before it.
        if name == last {
            continue;
        }
        last = name;
        let next = match (name.starts_with("HAYPILE_"), function_of(declaration.code[0])) {
            (true, _) => "CONSTANTS",
            (false, None) => "TYPES",
            (false, Some(_)) => "FUNCTIONS",
        };
        if section != next {
            writeln!(page, ".SH {next}").unwrap();
            section = next;
        }
        writeln!(page, ".SS {name}\n.nf").unwrap();
        for line in &declaration.code {
            writeln!(page, "{}", code(line)).unwrap();
        }
        page.push_str(".fi\n");
        if !declaration.comment.is_empty() {
            page.push_str(".PP\n");
            text(&mut page, &declaration.comment);
        }
    }
    page.push_str(".SH SEE ALSO\n.BR haypile (1),\n.BR pkg\\-config (1)\n");
    page
}

/// The lines that a compiler of C99 takes, without those of the preprocessor but constants.
fn preprocessed(header: &str) -> Vec<&str> {
    let mut taken = Vec::new();
    let mut lines = Vec::new();
    for line in header.lines() {
        if line.starts_with("#if") {
            taken.push(line.starts_with("#ifndef"));
        } else if line.starts_with("#else") {
            let last = taken.last_mut().expect("an #if came before");
            *last = !*last;
        } else if line.starts_with("#endif") {
            taken.pop();
        }
        let is_directive = line.starts_with('#') && !line.starts_with("#define HAYPILE_");
        if !is_directive && taken.iter().all(|taken| *taken) {
            lines.push(line);
        }
    }
    lines
}

fn declarations_of<'a>(lines: &[&'a str]) -> Vec<Declaration<'a>> {
    let mut declarations = Vec::new();
    let mut current = Declaration::default();
    for line in lines {
        if line.starts_with("//") && current.code.is_empty() {
            current.comment.push(&line[2..]);
        } else if !line.is_empty() {
            current.code.push(line);
            let is_whole = match current.code.as_slice() {
                [only] => only.ends_with(';') || only.starts_with("#define"),
                [first, .., last] if first.contains('(') => last.ends_with(");"),
                [.., last] => last.starts_with('}'),
                [] => false,
            };
            if is_whole {
                declarations.push(std::mem::take(&mut current));
            }
        } else if current.code.is_empty() {
            current.comment.clear();
        }
    }
    declarations
}

/// Writes comment lines: paragraphs, lists that begin with `-`, and indented code.
fn text(page: &mut String, lines: &[&str]) {
    let mut is_code = false;
    for line in lines {
        let line = line.strip_prefix(' ').unwrap_or(line);
        let indented = line.starts_with("    ");
        if indented != is_code && !line.is_empty() {
            page.push_str(if indented { ".PP\n.nf\n" } else { ".fi\n" });
            is_code = indented;
        }
        if line.is_empty() {
            page.push_str(if is_code { "\n" } else { ".PP\n" });
        } else if is_code {
            writeln!(page, "{}", code(line)).unwrap();
        } else if let Some(item) = line.strip_prefix("- ") {
            writeln!(page, ".IP \\(bu 2\n{}", escaped(item)).unwrap();
        } else {
            writeln!(page, "{}", escaped(line.trim_start())).unwrap();
        }
    }
    if is_code {
        page.push_str(".fi\n");
    }
}

fn code(line: &str) -> String {
    escaped(line).replace('-', "\\-")
}

/// A line that the formatter takes as it is.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}
