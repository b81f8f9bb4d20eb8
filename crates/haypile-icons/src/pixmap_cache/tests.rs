use std::fs;

use super::*;

fn pixmaps() -> PixmapCache {
    PixmapCache::with(Cache::open("memory:size=8MiB").unwrap())
}

fn square(side: u32, colour: u8) -> Pixmap {
    Pixmap::new(side, side, vec![colour; (side * side * 4) as usize]).unwrap()
}

const SVG: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='4' height='4'>\
                   <rect width='4' height='4' fill='#0f0'/></svg>";

#[test]
fn what_is_inserted_is_found_until_it_is_discarded() {
    let cache = pixmaps();
    assert_eq!(cache.find("a").unwrap(), None);
    cache.insert("a", &square(8, 1)).unwrap();
    cache.insert("a", &square(4, 2)).unwrap();
    cache.set_timestamp(77).unwrap();
    cache.set_header(b"mine").unwrap();
    assert_eq!(cache.find("a").unwrap(), Some(square(4, 2)));
    assert_eq!(
        (cache.timestamp().unwrap(), cache.header().unwrap()),
        (Some(77), Some(b"mine".to_vec()))
    );
    assert!(cache.is_valid() && cache.size_bytes().unwrap() > 64);
    cache.discard().unwrap();
    assert_eq!((cache.find("a").unwrap(), cache.timestamp().unwrap()), (None, None));
    assert_eq!(cache.size_bytes().unwrap(), 0);
}

#[test]
fn each_strategy_removes_its_own() {
    let left = |strategy| {
        let cache = pixmaps();
        cache.set_remove_strategy(strategy);
        for key in ["first", "second", "third"] {
            cache.insert(key, &square(16, 1)).unwrap();
        }
        // The first is used most, the third last, the second once in between.
        for key in ["first", "first", "first", "second", "third", "third"] {
            cache.find(key).unwrap().unwrap();
        }
        let each = cache.size_bytes().unwrap() / 3;
        assert_eq!(cache.remove_entries(2 * each + 20).unwrap(), 1);
        ["first", "second", "third"].map(|key| cache.find(key).unwrap().is_some())
    };
    assert_eq!(left(RemoveStrategy::Oldest), [false, true, true]);
    assert_eq!(left(RemoveStrategy::LeastOftenUsed), [true, false, true]);
    assert_eq!(left(RemoveStrategy::LeastRecentlyUsed), [false, true, true]);
}

#[test]
fn a_limit_makes_room_for_what_is_new() {
    let cache = pixmaps();
    cache.set_limit_bytes(10_000);
    for number in 0..40_u8 {
        cache.insert(&number.to_string(), &square(16, number)).unwrap();
        assert!(cache.size_bytes().unwrap() <= 10_000);
        assert!(cache.find(&number.to_string()).unwrap().is_some(), "the newest stays");
    }
    cache.insert("larger than the limit", &square(64, 1)).unwrap();
}

#[test]
fn a_file_is_drawn_again_when_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("green.svg");
    let cache = pixmaps();
    fs::write(&path, SVG).unwrap();
    let green = cache.load(&path, (4, 4)).unwrap();
    assert_eq!(&green.pixels()[..4], [0, 255, 0, 255]);
    // Times of files have steps, within which a change leaves no trace: it is not kept until then.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while cache.size_bytes().unwrap() == 0 {
        assert!(std::time::Instant::now() < deadline, "it is never kept");
        assert_eq!(cache.load(&path, (4, 4)).unwrap(), green);
    }
    assert_eq!(cache.load(&path, (4, 4)).unwrap(), green);
    fs::write(&path, SVG.replace("#0f0", "#f00")).unwrap();
    assert_eq!(&cache.load(&path, (4, 4)).unwrap().pixels()[..4], [255, 0, 0, 255]);
    fs::remove_file(&path).unwrap();
    assert!(cache.load(&path, (4, 4)).is_err());
}

#[test]
fn a_front_answers_by_itself_and_forgets_what_is_removed() {
    let cache = pixmaps();
    cache.use_front(true);
    cache.insert("a", &square(8, 1)).unwrap();
    let hits = || cache.cache.stats().unwrap().hits;
    let before = hits();
    assert_eq!(cache.find("a").unwrap(), Some(square(8, 1)));
    assert_eq!(hits(), before);
    cache.remove_entries(0).unwrap();
    assert_eq!(cache.find("a").unwrap(), None);
    cache.use_front(false);
    assert_eq!(cache.find("a").unwrap(), None);
}

#[test]
fn damaged_entries_are_misses() {
    let cache = pixmaps();
    cache.insert("a", &square(8, 1)).unwrap();
    let whole = cache.cache.get(named(ENTRY, "a")).unwrap().unwrap();
    for cut in 0..whole.len() {
        cache.cache.set(named(ENTRY, "a"), &whole[..cut]).unwrap();
        assert_eq!(cache.find("a").unwrap(), None, "{cut}");
    }
    cache.cache.set(named(ENTRY, "b"), &whole).unwrap();
    assert_eq!(cache.find("b").unwrap(), None, "the entry of another key");
}
