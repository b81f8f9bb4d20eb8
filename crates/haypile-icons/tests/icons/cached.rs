//! Icons that are cached, and the changes that their users see.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haypile::Cache;
use haypile_icons::theme::{IconName, ProbeCounts, probe, scan};
use haypile_icons::{IconCache, IconCacheOptions, IconError, IconRequest, Pixmap, render_file};

use crate::theme::{BLUE, RED, Theme, age, colour, svg};

#[test]
fn another_process_finds_index_and_pixmaps_and_renders_nothing() {
    let theme = Theme::new(&[("a.svg", svg("#f00"))]);
    let first = theme.open();
    assert_eq!(colour(&first, "a"), Some(RED));
    assert_eq!(colour(&first, "nothing"), None);
    let counts = first.counts();
    assert_eq!((counts.scans, counts.rendered, counts.cached, counts.negative), (1, 1, 0, 1));
    drop(first);
    // A store of its own, as another process has.
    let second = theme.open();
    assert_eq!(colour(&second, "a"), Some(RED));
    assert_eq!(colour(&second, "nothing"), None);
    let counts = second.counts();
    assert_eq!((counts.scans, counts.rendered, counts.cached, counts.failures), (0, 0, 1, 0));
    // One call for each folder and description, and one for the icon's file.
    assert_eq!(counts.stats, second.index().watched() as u64 + 1);
    assert_eq!(colour(&second, "a"), Some(RED));
    assert_eq!(second.counts().stats, counts.stats, "nothing is asked for twice in an epoch");
}

#[test]
fn what_changed_is_seen_by_whoever_opens_the_cache() {
    type Change = fn(&Theme);
    let cases: [(&str, Change, Option<[u8; 4]>); 6] = [
        ("removed", |theme| fs::remove_file(theme.apps().join("a.svg")).unwrap(), None),
        (
            "replaced",
            |theme| {
                fs::write(theme.apps().join("new"), svg("#00f")).unwrap();
                fs::rename(theme.apps().join("new"), theme.apps().join("a.svg")).unwrap();
            },
            Some(BLUE),
        ),
        (
            "changed in place",
            |theme| {
                // The folder stays as it was.
                fs::write(theme.apps().join("a.svg"), svg("#00f")).unwrap();
                age(&theme.apps().join("a.svg"), 500);
            },
            Some(BLUE),
        ),
        (
            "linked to another",
            |theme| {
                fs::remove_file(theme.apps().join("a.svg")).unwrap();
                fs::write(theme.folder.path().join("other.svg"), svg("#00f")).unwrap();
                symlink(theme.folder.path().join("other.svg"), theme.apps().join("a.svg")).unwrap();
            },
            Some(BLUE),
        ),
        (
            "a link whose target is changed in place",
            |theme| {
                fs::write(theme.folder.path().join("target.svg"), svg("#00f")).unwrap();
            },
            Some(RED),
        ),
        ("the theme is gone", |theme| fs::remove_dir_all(theme.base().join("mine")).unwrap(), None),
    ];
    for (what, change, expected) in cases {
        let theme = Theme::new(&[("a.svg", svg("#f00"))]);
        assert_eq!(colour(&theme.open(), "a"), Some(RED), "{what}");
        change(&theme);
        assert_eq!(colour(&theme.open(), "a"), expected, "{what}");
    }
    let theme = Theme::new(&[]);
    assert_eq!(colour(&theme.open(), "late"), None);
    fs::write(theme.apps().join("late.svg"), svg("#00f")).unwrap();
    assert_eq!(colour(&theme.open(), "late"), Some(BLUE), "added");
}

#[test]
fn a_link_follows_its_target() {
    let theme = Theme::new(&[]);
    let target = theme.folder.path().join("target.svg");
    fs::write(&target, svg("#f00")).unwrap();
    symlink(&target, theme.apps().join("a.svg")).unwrap();
    theme.age();
    assert_eq!(colour(&theme.open(), "a"), Some(RED));
    fs::write(&target, svg("#00f")).unwrap();
    age(&target, 500);
    assert_eq!(colour(&theme.open(), "a"), Some(BLUE));
}

#[test]
fn a_process_that_stays_sees_changes_in_its_next_epoch() {
    let theme = Theme::new(&[("a.svg", svg("#f00"))]);
    // Every lookup begins an epoch, and then none does.
    let eager =
        theme.with(&IconCacheOptions { epoch: Duration::ZERO, ..IconCacheOptions::default() });
    let lazy =
        theme.with(&IconCacheOptions { epoch: Duration::MAX, ..IconCacheOptions::default() });
    assert_eq!((colour(&eager, "a"), colour(&lazy, "a")), (Some(RED), Some(RED)));
    fs::write(theme.apps().join("a.svg"), svg("#00f")).unwrap();
    age(&theme.apps().join("a.svg"), 500);
    fs::write(theme.apps().join("b.svg"), svg("#00f")).unwrap();
    assert_eq!((colour(&eager, "a"), colour(&eager, "b")), (Some(BLUE), Some(BLUE)));
    assert_eq!(colour(&lazy, "b"), None);
    assert!(IconCacheOptions::default().epoch < Duration::from_secs(1));
}

#[test]
fn what_is_too_young_is_answered_and_not_kept() {
    let theme = Theme::new(&[("a.svg", svg("#f00"))]);
    let young = IconCacheOptions {
        base: vec![theme.base()],
        racy_margin: Some(Duration::from_secs(100_000)),
        ..IconCacheOptions::default()
    };
    for _ in 0..2 {
        let cache = Cache::open(&theme.file()).unwrap();
        let icons = IconCache::with("mine", Some(cache), young.clone());
        assert_eq!(colour(&icons, "a"), Some(RED));
        assert_eq!((icons.counts().rendered, icons.counts().cached), (1, 0));
    }
}

#[test]
fn without_a_cache_or_with_one_that_lies_icons_are_made() {
    let theme = Theme::new(&[("a.svg", svg("#f00"))]);
    let options = IconCacheOptions { base: vec![theme.base()], ..IconCacheOptions::default() };
    let bare = IconCache::with("mine", None, options);
    assert_eq!(
        (colour(&bare, "a"), colour(&bare, "a"), bare.counts().rendered),
        (Some(RED), Some(RED), 2)
    );
    let honest = theme.open();
    assert_eq!(colour(&honest, "a"), Some(RED));
    drop(honest);
    // Every value is garbled.
    let cache = Cache::open(&theme.file()).unwrap();
    let keys: Vec<Vec<u8>> = cache.keys().map(Result::unwrap).collect();
    assert_eq!(keys.len(), 3, "an index, a picture, a check");
    for key in keys {
        let mut value = cache.get(&key).unwrap().unwrap();
        value.truncate(value.len() - 1);
        cache.set(key, value).unwrap();
    }
    drop(cache);
    assert_eq!(colour(&theme.open(), "a"), Some(RED));
}

#[test]
fn files_that_are_no_pictures_are_errors_that_name_them() {
    let deep = format!("<svg xmlns='http://www.w3.org/2000/svg'>{}", "<g>".repeat(5_000));
    let huge = "<svg xmlns='http://www.w3.org/2000/svg' width='1e9' height='1e9'><rect width='1e9' \
                height='1e9'/></svg>";
    let icons = [
        ("empty.svg", String::new()),
        ("text.png", "no picture".to_owned()),
        ("cut.png", "\u{89}PNG".to_owned()),
        ("deep.svg", deep),
        (
            "nothing.svg",
            "<svg xmlns='http://www.w3.org/2000/svg' width='0' height='0'/>".to_owned(),
        ),
    ];
    let theme = Theme::new(&icons);
    let cache = theme.open();
    for (file, _) in &icons {
        let name = file.rsplit_once('.').unwrap().0;
        let error = cache.lookup(&IconRequest::new(name, 16)).unwrap_err();
        assert!(error.to_string().contains(file), "{error}");
    }
    fs::write(theme.apps().join("huge.svg"), huge).unwrap();
    let large = File::create(theme.apps().join("large.svg")).unwrap();
    large.set_len(5 << 20).unwrap();
    let cache = theme.open();
    assert!(cache.lookup(&IconRequest::new("huge", 16)).unwrap().is_some(), "it is scaled down");
    assert!(matches!(
        cache.lookup(&IconRequest::new("large", 16)),
        Err(IconError::TooLarge { .. })
    ));
    for (size, scale) in [(0, 1), (16, 0), (2000, 1), (u32::MAX, u32::MAX)] {
        let request = IconRequest { size, scale, ..IconRequest::new("huge", 16) };
        assert!(matches!(cache.lookup(&request), Err(IconError::Size { .. })), "{size} {scale}");
    }
    for name in ["", "..", "a/b", "x\0y"] {
        assert!(cache.lookup(&IconRequest::new(name, 16)).unwrap().is_none());
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_is_not_kept_as_the_other() {
    let theme = Theme::new(&[("a.svg", svg("#f00"))]);
    let icons =
        theme.with(&IconCacheOptions { epoch: Duration::ZERO, ..IconCacheOptions::default() });
    let path = theme.apps().join("a.svg");
    std::thread::scope(|threads| {
        let writer = threads.spawn(|| {
            for turn in 0..400_u64 {
                let text = svg(if turn % 2 == 0 { "#00f" } else { "#f00" });
                let new = theme.folder.path().join("new");
                fs::write(&new, text).unwrap();
                age(&new, 2000 + turn);
                fs::rename(&new, &path).unwrap();
            }
        });
        while !writer.is_finished() {
            let seen = colour(&icons, "a");
            assert!(seen == Some(RED) || seen == Some(BLUE), "{seen:?}");
        }
    });
    fs::write(&path, svg("#0f0")).unwrap();
    age(&path, 100);
    assert_eq!(colour(&icons, "a"), Some([0, 255, 0, 255]));
}

/// A drawing of our own: the picture is committed, so that another version of a library that draws
/// otherwise is noticed. `HAYPILE_WRITE_PICTURE=1` writes it.
#[test]
fn rendered_icons_are_those_of_the_committed_picture() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let picture = render_file(&data.join("pika.svg"), (32, 32)).unwrap();
    let committed = data.join("pika-32.rgba");
    if std::env::var_os("HAYPILE_WRITE_PICTURE").is_some() {
        fs::write(&committed, picture.pixels()).unwrap();
    }
    let expected = Pixmap::new(32, 32, fs::read(&committed).unwrap()).unwrap();
    let far = |(a, b): (&u8, &u8)| a.abs_diff(*b);
    let most = picture.pixels().iter().zip(expected.pixels()).map(far).max().unwrap();
    assert!(most <= 2, "a channel differs by {most}");
    let visible = picture.pixels().chunks_exact(4).filter(|pixel| pixel[3] > 0).count();
    assert!(visible > 200, "{visible} pixels");
}

#[test]
fn probing_and_the_index_find_the_same() {
    let theme = Theme::new(&[("a.svg", svg("#f00")), ("a-b.svg", svg("#00f"))]);
    fs::write(theme.base().join("unthemed.svg"), svg("#00f")).unwrap();
    let index = theme.open().index();
    let mut counts = ProbeCounts::default();
    for name in ["a", "a-b", "a-b-c", "unthemed", "unthemed-x", "nothing"] {
        let name = IconName::new(name).unwrap();
        let probed = probe("mine", &[theme.base()], name, (16, 1), &mut counts);
        assert_eq!(probed, index.find(name, (16, 1), true), "{name:?}");
    }
    assert!(counts.negative > 5 && counts.stats > counts.negative);
}

#[test]
fn png_comes_first_in_whatever_order_a_folder_is_listed() {
    let theme = Theme::new(&[]);
    let names: Vec<String> = (0..40).map(|number| format!("n{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let mut extensions = ["png", "svg"];
        extensions.rotate_left(number % 2);
        for extension in extensions {
            fs::write(theme.apps().join(format!("{name}.{extension}")), svg("#f00")).unwrap();
        }
    }
    let icons = theme.open();
    for name in &names {
        let icon = icons.lookup(&IconRequest::new(name, 16)).unwrap().unwrap();
        assert_eq!(icon.path().extension().unwrap(), "png", "{name}");
    }
}

#[test]
fn a_link_whose_target_is_gone_is_no_icon() {
    for has_pixmaps in [true, false] {
        let theme = Theme::new(&[("own.svg", svg("#f00"))]);
        let elsewhere = tempfile::tempdir().unwrap();
        let target = elsewhere.path().join("target.svg");
        fs::write(&target, svg("#00f")).unwrap();
        symlink(&target, theme.apps().join("link.svg")).unwrap();
        theme.age();
        age(&target, 100);
        let options =
            IconCacheOptions { has_pixmaps, shares_checks: false, ..IconCacheOptions::default() };
        assert!(colour(&theme.with(&options), "link").is_some());
        fs::remove_file(&target).unwrap();
        for _ in 0..2 {
            let icons = theme.with(&options);
            assert_eq!(colour(&icons, "link"), None);
            assert!(colour(&icons, "own").is_some());
        }
        fs::write(&target, svg("#00f")).unwrap();
        age(&target, 100);
        assert!(colour(&theme.with(&options), "link").is_some());
    }
}

#[test]
fn a_pipe_is_no_picture_and_no_description() {
    let theme = Theme::new(&[("own.svg", svg("#f00"))]);
    let pipe = |path: PathBuf| {
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success(), "{}", path.display());
    };
    pipe(theme.apps().join("pipe.svg"));
    let error = theme.open().lookup(&IconRequest::new("pipe", 16)).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
    let other = tempfile::tempdir().unwrap();
    fs::create_dir(other.path().join("theme")).unwrap();
    pipe(other.path().join("theme/index.theme"));
    let (index, _) = scan("theme", &[other.path().to_owned()]);
    assert!(index.is_empty());
    let (name, mut counts) = (IconName::new("own").unwrap(), ProbeCounts::default());
    assert_eq!(probe("theme", &[other.path().to_owned()], name, (16, 1), &mut counts), None);
}
