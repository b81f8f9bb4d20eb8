//! Questions of experiment files.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Page, Rows};
use crate::experiment::ExperimentFile;

fn asked(file: &str, question: &str) -> Value {
    json!({"file": file, "question": question, "source": "A colleague", "method": "By hand"})
}

/// A sample of a subject that tells which run it is of.
fn add(rows: &mut Rows, subject: &str) {
    rows.add("get-hit", &json!({}), subject, 0, 100, &json!({}));
}

fn own_question() -> &'static str {
    &ExperimentFile::built_in("micro").unwrap().question
}

#[test]
fn a_file_asks_its_own_question() {
    let mut rows = Rows::new("micro");
    rows.ask("a", &asked("mine.toml", "Is it fast\nenough?"));
    add(&mut rows, "memory");
    let page = rows.page();
    assert_eq!(page.texts("question"), ["Is it fast enough?"]);
    assert_eq!(page.texts("h2")[1], "Single operations micro asked by mine.toml");
    assert_eq!(page.texts("topic"), ["Single operations micro asked by mine.toml"]);
    assert_eq!(page.texts("asked"), ["Is it fast enough?"]);
    let method = "By hand. 1 sample from 1 run, none of them an error. Defined by A colleague, in the \
                  experiment file mine.toml .";
    assert!(page.texts("p").contains(&method.to_owned()), "{:?}", page.texts("p"));
}

#[test]
fn two_questions_of_one_file_of_rows_are_not_mixed() {
    let mut rows = Rows::new("micro");
    add(&mut rows, "of-nobody");
    rows.ask("b", &asked("b.toml", "What of b?"));
    add(&mut rows, "of-b");
    rows.ask("a", &asked("a.toml", "What of a?"));
    add(&mut rows, "of-a");
    let page = rows.page();
    assert_eq!(page.texts("question"), [own_question(), "What of b?", "What of a?"]);
    let answers = page.texts("answer");
    for (answer, subject) in answers.iter().zip(["of-nobody", "of-b", "of-a"]) {
        assert!(answer.ends_with(&format!("get-hit: {subject} 100 ns")), "{answers:?}");
    }
    let commands = page.texts("commands");
    assert_eq!(commands.len(), 3, "each has its own run: {commands:?}");
    // They are of one file of rows, whose name would tell nothing apart.
    assert!(page.texts("file").iter().all(|file| file.starts_with("asked by")));
}

#[test]
fn the_same_question_of_several_files_is_one() {
    let mut rows = Rows::new("micro");
    for (run, file) in [("1", "a.toml"), ("2", "a.toml"), ("3", "b.toml")] {
        rows.ask(run, &asked(file, "What of it?"));
        add(&mut rows, "memory");
    }
    let page = rows.page();
    assert_eq!(page.texts("question"), ["What of it?"]);
    assert!(page.texts("h2")[1].ends_with("asked by a.toml , b.toml"), "{:?}", page.texts("h2"));
    for (run, file) in [("4", "c"), ("5", "d"), ("6", "e"), ("7", "f")] {
        rows.ask(run, &asked(file, "What of it?"));
        add(&mut rows, "memory");
    }
    let note = "2 further experiment files with the same question are not named.";
    assert!(rows.page().texts("note").contains(&note.to_owned()));
}

#[test]
fn a_copy_of_the_own_file_asks_nothing_new() {
    let mut rows = Rows::new("micro");
    add(&mut rows, "memory");
    let own = ExperimentFile::built_in("micro").unwrap();
    let copy = json!({"file": "copy.toml", "question": own.question, "source": own.source,
        "method": own.method});
    rows.ask("copy", &copy);
    add(&mut rows, "memory");
    let page = rows.page();
    assert_eq!(page.texts("question"), [own_question()]);
    assert!(!page.0.contains("asked by"));
}

#[test]
fn the_same_question_in_two_files_of_rows_names_both() {
    let mut rows = Rows::new("micro");
    rows.ask("a", &asked("mine.toml", "What of it?"));
    add(&mut rows, "memory");
    let directory = TempDir::new().unwrap();
    let path = rows.write(directory.path());
    let page = Page::of(&[path.clone(), path]);
    let heading = "Single operations micro in rows asked by mine.toml";
    assert_eq!(page.texts("h2")[1..3], [heading, heading]);
    let anchors: Vec<String> = page.parse(|page| {
        let results = page.descendants().find(|node| node.has_tag_name("main")).unwrap();
        let sections = results.children().filter(|node| node.has_tag_name("section"));
        sections.map(|section| section.attribute("id").unwrap().to_owned()).collect()
    });
    assert_eq!(anchors, ["micro-rows-mine-toml", "micro-rows-mine-toml-2"]);
}

#[test]
fn a_hostile_question_stays_text_and_has_an_end() {
    let hostile = "<script>alert(1)</script>]]>\u{0}\u{202e}\" onload=\"x";
    let mut rows = Rows::new("micro");
    let long = hostile.repeat(1000);
    rows.ask("a", &json!({"file": hostile, "question": long, "source": long, "method": long}));
    add(&mut rows, "memory");
    rows.ask("b", &json!({"file": "", "question": "", "source": "", "method": ""}));
    add(&mut rows, "memory");
    let page = rows.page();
    page.parse(|page| {
        assert!(page.descendants().all(|node| !node.has_tag_name("script")));
        let mut attributes = page.descendants().flat_map(|node| node.attributes());
        assert!(attributes.all(|attribute| !attribute.name().starts_with("on")));
    });
    let question = &page.texts("question")[0];
    assert!(question.starts_with("<script>alert(1)</script>]]> \" onload"), "{question}");
    assert!(question.ends_with('…') && question.chars().count() <= 8192);
}
