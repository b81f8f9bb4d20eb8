//! Sizes of objects, and outlines of JSON texts, for `haypile/_json.py`: where to cut what is large.

use std::cell::{Cell, RefCell};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

/// Estimated cost of an object without its text. One of text costs its length in characters.
const NODE_COST: usize = 64;

/// Deepest nesting of an outline. The parser of the standard library fails soon after.
const DEEPEST: usize = 500;

/// Shortest run of characters without an escape that is cut: longer than what can follow a backslash.
const MIN_CUT: usize = 8;

/// Returns whether an object, with all that it contains, costs at most `budget`: 64 for each object, and 1 for each
/// character. Stops as soon as it costs more.
#[pyfunction]
#[pyo3(name = "_is_short")]
pub(crate) fn is_short(value: &Bound<'_, PyAny>, budget: usize) -> bool {
    remainder(value, budget).is_some()
}

/// Returns how many of the first items of a list cost at most `budget` together.
#[pyfunction]
#[pyo3(name = "_short_run")]
pub(crate) fn short_run(items: &Bound<'_, PyList>, start: usize, budget: usize) -> usize {
    let mut left = budget;
    let mut end = start;
    while let Ok(item) = items.get_item(end)
        && let Some(rest) = remainder(&item, left)
    {
        left = rest;
        end += 1;
    }
    end - start
}

/// Returns what is left of a budget after an object; `None` if it costs more.
///
/// Subclasses of containers are read as these are: no code of Python runs.
fn remainder<'py>(value: &Bound<'py, PyAny>, budget: usize) -> Option<usize> {
    let left = Cell::new(budget.checked_sub(NODE_COST)?);
    let spend = |cost: usize| match left.get().checked_sub(cost) {
        Some(rest) => {
            left.set(rest);
            true
        }
        None => false,
    };
    // Containers that are paid for, as their own items are not.
    let pending = RefCell::new(Vec::new());
    let visit = |item: Bound<'py, PyAny>| {
        // The length of another class can be code of Python.
        if let Ok(text) = item.cast_exact::<PyString>() {
            return spend(text.len().unwrap_or(usize::MAX));
        }
        if is_container(&item) {
            pending.borrow_mut().push(item);
        }
        true
    };
    let mut is_within = visit(value.clone());
    while is_within {
        let next = pending.borrow_mut().pop();
        let Some(container) = next else {
            return Some(left.get());
        };
        is_within = if let Ok(dict) = container.cast::<PyDict>() {
            // All items are paid for first, so that the loop is no longer than the budget.
            spend(dict.len().saturating_mul(2 * NODE_COST)) && {
                let is_within = Cell::new(true);
                // It fails only if the closure does.
                let _ = dict.locked_for_each(|key, value| {
                    is_within.set(is_within.get() && visit(key) && visit(value));
                    Ok(())
                });
                is_within.get()
            }
        } else if let Ok(list) = container.cast::<PyList>() {
            let length = list.len();
            // Without a GIL another thread may shorten it.
            spend(length.saturating_mul(NODE_COST))
                && (0..length).map_while(|index| list.get_item(index).ok()).all(visit)
        } else if let Ok(tuple) = container.cast::<PyTuple>() {
            spend(tuple.len().saturating_mul(NODE_COST)) && tuple.iter().all(visit)
        } else {
            true
        };
    }
    None
}

fn is_container(item: &Bound<'_, PyAny>) -> bool {
    item.is_instance_of::<PyDict>()
        || item.is_instance_of::<PyList>()
        || item.is_instance_of::<PyTuple>()
}

/// Returns the steps that build the value of a JSON text in pieces of between one and two times `chunk` bytes.
///
/// A step is a kind and two positions:
///
/// | kind | meaning | positions |
/// |---|---|---|
/// | `[`, `{`, `"` | begin a list, a dict, a text | of its key with its quotes; equal for an item of a list |
/// | `.` | append these items, members or characters to it | of the piece |
/// | `]` | end it | none |
///
/// Returns `None` if the text is small, nested too deep or not JSON. The outline is not a proof that it is: pieces can
/// be wrong, or empty. If each is right, then so is the text.
#[pyfunction]
#[pyo3(name = "_json_outline")]
pub(crate) fn json_outline(
    py: Python<'_>,
    data: &Bound<'_, PyBytes>,
    chunk: usize,
) -> Option<Vec<Step>> {
    let text = data.as_bytes();
    // Not by `fork::without_gil`: this is not a call of the engine, and a fork need not wait for it.
    py.detach(|| Outline::of(text, chunk.max(1)))
}

type Step = (char, usize, usize);

/// A list or dict that the scan is inside of.
struct Frame {
    is_dict: bool,
    open: usize,
    /// Start of the items that no step covers yet.
    run: usize,
    /// Start of the current item.
    item: usize,
    /// Position of the colon of the current item of a dict.
    colon: Option<usize>,
    /// Whether steps have covered the current item.
    is_covered: bool,
}

struct Outline<'a> {
    text: &'a [u8],
    chunk: usize,
    /// Outermost first.
    frames: Vec<Frame>,
    /// Number of frames, the outermost, that a step has begun.
    begun: usize,
    steps: Vec<Step>,
}

impl<'a> Outline<'a> {
    fn of(text: &'a [u8], chunk: usize) -> Option<Vec<Step>> {
        // Not a byte order mark. UTF-16 and UTF-32 have zero bytes, which are errors in a piece.
        let start = skip_space(text, 0);
        if !matches!(text.get(start), Some(b'[' | b'{' | b'"')) {
            return None;
        }
        let mut outline = Self { text, chunk, frames: Vec::new(), begun: 0, steps: Vec::new() };
        let end = outline.scan(start)?;
        let is_whole = skip_space(text, end) == text.len();
        (is_whole && !outline.steps.is_empty()).then_some(outline.steps)
    }

    /// Scans one value; returns its end.
    fn scan(&mut self, start: usize) -> Option<usize> {
        let mut at = start;
        loop {
            match *self.text.get(at)? {
                b'"' => {
                    at = self.scan_text(at)?;
                    if self.frames.is_empty() {
                        return Some(at);
                    }
                }
                opener @ (b'[' | b'{') => {
                    if self.frames.len() == DEEPEST {
                        return None;
                    }
                    self.frames.push(Frame {
                        is_dict: opener == b'{',
                        open: at,
                        run: at + 1,
                        item: at + 1,
                        colon: None,
                        is_covered: false,
                    });
                    at += 1;
                }
                closer @ (b']' | b'}') => {
                    at = self.end(at, closer == b'}')?;
                    if self.frames.is_empty() {
                        return Some(at);
                    }
                }
                b',' => {
                    self.end_item(at)?;
                    at += 1;
                }
                b':' => {
                    self.frames.last_mut()?.colon.get_or_insert(at);
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// Scans a text with its quotes; returns its end.
    fn scan_text(&mut self, start: usize) -> Option<usize> {
        let mut pieces = Vec::new();
        let mut piece = start + 1;
        let mut at = start + 1;
        let end = loop {
            let rest = self.text.get(at..)?;
            let next = at + rest.iter().position(|&byte| byte == b'"' || byte == b'\\')?;
            // No escape is cut: a digit of the one before is less than a chunk away, or `piece` would be ahead.
            while next - at.max(piece) > self.chunk.max(MIN_CUT) {
                let cut = self.cut_near(at.max(piece) + self.chunk.max(MIN_CUT), next);
                pieces.push((piece, cut));
                piece = cut;
            }
            if self.text[next] == b'"' {
                break next;
            }
            if next - piece >= self.chunk && !is_low_surrogate(&self.text[next..]) {
                pieces.push((piece, next));
                piece = next;
            }
            at = next + 2;
        };
        pieces.push((piece, end));
        let is_key = self.frames.last().is_some_and(|frame| frame.is_dict && frame.colon.is_none());
        if end - start > self.chunk && !is_key {
            self.begin_frames(self.frames.len())?;
            let key = self.begin_item(self.frames.len(), start)?;
            self.steps.push(('"', key.0, key.1));
            self.steps.extend(pieces.into_iter().map(|(start, end)| ('.', start, end)));
            self.steps.push((']', 0, 0));
            self.check_item_ends(end + 1)?;
        }
        Some(end + 1)
    }

    /// Returns the position of the next character at or after one, `end` at the latest.
    fn cut_near(&self, position: usize, end: usize) -> usize {
        let is_inside = |&&byte: &&u8| byte & 0xC0 == 0x80;
        // Longer sequences are not UTF-8.
        position + self.text[position..end].iter().take(3).take_while(is_inside).count()
    }

    /// Ends an item at its comma.
    fn end_item(&mut self, comma: usize) -> Option<()> {
        let depth = self.frames.len();
        let frame = self.frames.last()?;
        let (run, is_covered) = (frame.run, frame.is_covered);
        let is_piece = !is_covered && comma - run >= self.chunk;
        if is_piece {
            self.begin_frames(depth)?;
            self.steps.push(('.', run, comma));
        }
        let frame = self.frames.last_mut()?;
        if is_piece || is_covered {
            frame.run = comma + 1;
        }
        frame.item = comma + 1;
        frame.colon = None;
        frame.is_covered = false;
        Some(())
    }

    /// Ends the innermost list or dict; returns the position after it.
    fn end(&mut self, close: usize, is_dict: bool) -> Option<usize> {
        let depth = self.frames.len();
        let frame = self.frames.last()?;
        if frame.is_dict != is_dict {
            return None;
        }
        let (run, is_covered) = (frame.run, frame.is_covered);
        if close - frame.open >= self.chunk {
            self.begin_frames(depth)?;
        }
        self.frames.pop();
        if self.begun == depth {
            self.begun -= 1;
            if !is_covered {
                self.steps.push(('.', run, close));
            }
            self.steps.push((']', 0, 0));
            self.check_item_ends(close + 1)?;
        }
        Some(close + 1)
    }

    /// Adds the steps that begin the outermost `depth` lists and dicts.
    fn begin_frames(&mut self, depth: usize) -> Option<()> {
        while self.begun < depth {
            let Frame { is_dict, open, .. } = self.frames[self.begun];
            let key = self.begin_item(self.begun, open)?;
            self.steps.push((if is_dict { '{' } else { '[' }, key.0, key.1));
            self.begun += 1;
        }
        Some(())
    }

    /// Adds the step of the items before the current one, of which a value at `start` gets steps of its own; returns
    /// the positions of its key. The list or dict is the innermost of the outermost `depth`.
    fn begin_item(&mut self, depth: usize, start: usize) -> Option<(usize, usize)> {
        let Some(parent) = depth.checked_sub(1) else {
            return Some((0, 0));
        };
        let frame = &mut self.frames[parent];
        frame.is_covered = true;
        let (key, before) = match (frame.is_dict, frame.colon) {
            (false, _) => ((frame.item, frame.item), frame.item),
            (true, Some(colon)) => ((frame.item, colon), colon + 1),
            (true, None) => return None,
        };
        if frame.run < frame.item {
            self.steps.push(('.', frame.run, frame.item - 1));
        }
        (skip_space(self.text, before) == start).then_some(key)
    }

    /// Checks that an item with steps of its own ends with its value.
    fn check_item_ends(&self, end: usize) -> Option<()> {
        if self.frames.is_empty() {
            return Some(());
        }
        let next = self.text.get(skip_space(self.text, end))?;
        matches!(next, b',' | b']' | b'}').then_some(())
    }
}

/// Returns whether a text goes on with the second half of a character of two escapes, which stay together.
fn is_low_surrogate(rest: &[u8]) -> bool {
    matches!(rest, [b'\\', b'u', b'd' | b'D', b'c'..=b'f' | b'C'..=b'F', ..])
}

fn skip_space(text: &[u8], start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    start + rest.iter().take_while(is_space).count()
}
