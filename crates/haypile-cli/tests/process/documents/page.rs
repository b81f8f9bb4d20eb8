//! The pages of this checkout, and the blocks of code in them.

use std::fs;
use std::path::{Path, PathBuf};

const FENCE: &str = "```";
/// The comment before a block that the tests do not run, with the reason.
const NOT_RUN: &str = "not run:";
/// The comment before a block that the tests run, with the programs that it needs.
const NEEDS: &str = "needs:";
/// The same, or its end after a semicolon, with commands that come first.
const FIRST: &str = "first:";
/// Folders without pages of the project: what was built, fixtures of tests, and raw results, whose only page is
/// their README.
const NO_PAGES: [&str; 3] = ["target", "crates/haypile-cli/tests", "record"];
const RECORD: &str = "record/README.md";

/// A document in Markdown.
#[derive(Debug)]
pub(crate) struct Page {
    /// Path from the root of the checkout.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A block of code of a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The number of its first fence's line, from 1.
    pub(crate) line: usize,
    /// The words after the fence.
    pub(crate) kind: String,
    /// Its lines, without the indentation of its fence.
    pub(crate) lines: Vec<String>,
    pub(crate) mark: Option<Mark>,
}

/// A comment on the line before a block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The tests do not run the block, for this reason.
    NotRun(String),
    /// The tests run the block.
    Run {
        /// Programs without which they leave the block out.
        needs: Vec<String>,
        /// Commands that come first, in the same shell.
        first: String,
    },
}

impl Block {
    /// Whether a reader pastes it into a shell.
    pub(crate) fn is_shell(&self) -> bool {
        matches!(self.kind.split(' ').next(), Some("sh" | "bash" | "shell" | "console"))
    }
}

impl Page {
    /// Returns the blocks in their order.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut before = "";
        let mut lines = self.text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let Some(kind) = line.trim_start().strip_prefix(FENCE) else {
                before = line;
                continue;
            };
            let indent = line.len() - line.trim_start().len();
            let inside = lines.by_ref().map(|(_, line)| line.get(indent..).unwrap_or(line.trim()));
            let inside = inside.take_while(|line| *line != FENCE).map(str::to_owned);
            blocks.push(Block {
                line: number + 1,
                kind: kind.to_owned(),
                lines: inside.collect(),
                mark: mark(before),
            });
            before = "";
        }
        blocks
    }

    /// Returns the texts between single backquotes outside of blocks, each with the number of its line from 1. Such a
    /// text may go on in the next line.
    pub(crate) fn inline_code(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut is_in_block = false;
        let mut open: Option<(usize, String)> = None;
        for (number, line) in self.text.lines().enumerate() {
            if line.trim_start().starts_with(FENCE) {
                is_in_block = !is_in_block;
            }
            // A paragraph ends what it leaves open.
            if is_in_block || line.trim().is_empty() || line.trim_start().starts_with(FENCE) {
                open = None;
                continue;
            }
            for (part, text) in line.split('`').enumerate() {
                if part > 0 {
                    match open.take() {
                        Some(code) => found.push(code),
                        None => open = Some((number + 1, String::new())),
                    }
                }
                if let Some((_, code)) = &mut open {
                    code.push_str(if part == 0 { text.trim_start() } else { text });
                }
            }
            if let Some((_, code)) = &mut open {
                code.push(' ');
            }
        }
        found
    }
}

/// Returns the mark that a line is. A comment of another kind is none.
fn mark(line: &str) -> Option<Mark> {
    let comment = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    if let Some(reason) = comment.strip_prefix(NOT_RUN) {
        return Some(Mark::NotRun(reason.trim().to_owned()));
    }
    let (needs, rest) = match comment.strip_prefix(NEEDS) {
        Some(needs) => needs.split_once(';').unwrap_or((needs, "")),
        None => ("", comment),
    };
    let needs: Vec<String> = needs.split_whitespace().map(str::to_owned).collect();
    let first = rest.trim().strip_prefix(FIRST).map(|first| first.trim().to_owned());
    let is_mark = first.is_some() || !needs.is_empty();
    is_mark.then(|| Mark::Run { needs, first: first.unwrap_or_default() })
}

/// Returns all pages of a checkout, sorted by their names.
pub(crate) fn pages(checkout: &Path) -> Vec<Page> {
    let mut names = vec![PathBuf::from(RECORD)];
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(checkout.join(&folder)).expect("a folder of the checkout") {
            let entry = entry.expect("a folder of the checkout");
            let path = folder.join(entry.file_name());
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && !is_hidden && !NO_PAGES.iter().any(|name| path == Path::new(name)) {
                folders.push(path);
            } else if !is_folder && path.extension().is_some_and(|extension| extension == "md") {
                names.push(path);
            }
        }
    }
    names.sort();
    let page = |path: PathBuf| Page {
        text: fs::read_to_string(checkout.join(&path)).expect("a page is text"),
        name: path.to_str().expect("pages have names in UTF-8").to_owned(),
    };
    names.into_iter().map(page).collect()
}
