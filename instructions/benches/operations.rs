//! Instructions of one operation: `make instructions` compares them with the committed counts.
//!
//! callgrind counts from the entry of a function of this file to its end; set-up and the end of a cache are outside.
//! `scripts/instructions` knows the number of operations of each function, and the columns of its table.

use std::hint::black_box;

use gungraun::prelude::*;
use gungraun::{Callgrind, library_benchmark_group, main};
use haypile::SetOptions;
use haypile_instructions::Kind::{File, Memory};
use haypile_instructions::{
    BATCH, BATCHES, ClosedFile, EVICTIONS, Fixture, GROUPS, OPENINGS, OPERATIONS, Outcome, check,
    count_found, count_written,
};

#[library_benchmark(setup = Fixture::present, teardown = check::<OPERATIONS>)]
#[bench::memory_12(Memory, 12)]
#[bench::memory_36(Memory, 36)]
#[bench::file_12(File, 12)]
#[bench::file_36(File, 36)]
fn get_hit(fixture: Fixture) -> Outcome {
    let found = count_found(&fixture.cache, &fixture.keys[..OPERATIONS]);
    (fixture, found)
}

#[library_benchmark(setup = Fixture::grouped, teardown = check::<OPERATIONS>)]
#[bench::memory_36(Memory, 36)]
#[bench::file_36(File, 36)]
fn get_hit_in_groups(fixture: Fixture) -> Outcome {
    let found = count_found(&fixture.cache, &fixture.keys[..OPERATIONS]);
    (fixture, found)
}

#[library_benchmark(setup = Fixture::grouped, teardown = check::<OPERATIONS>)]
#[bench::memory_36(Memory, 36)]
#[bench::file_36(File, 36)]
fn invalidate(fixture: Fixture) -> Outcome {
    let is_done = |_: &usize| fixture.cache.invalidate(black_box(GROUPS[0])).is_ok();
    let done = (0..OPERATIONS).filter(is_done).count();
    (fixture, done)
}

#[library_benchmark(setup = Fixture::absent, teardown = check::<0>)]
#[bench::memory_12(Memory, 12)]
#[bench::memory_36(Memory, 36)]
#[bench::file_12(File, 12)]
#[bench::file_36(File, 36)]
fn get_miss(fixture: Fixture) -> Outcome {
    let found = count_found(&fixture.cache, &fixture.keys[..OPERATIONS]);
    (fixture, found)
}

#[library_benchmark(setup = Fixture::present, teardown = check::<OPERATIONS>)]
#[bench::memory_12(Memory, 12)]
#[bench::memory_36(Memory, 36)]
#[bench::file_12(File, 12)]
#[bench::file_36(File, 36)]
fn contains(fixture: Fixture) -> Outcome {
    let is_present = |key: &&Vec<u8>| matches!(fixture.cache.contains(black_box(key)), Ok(true));
    let found = fixture.keys[..OPERATIONS].iter().filter(is_present).count();
    (fixture, found)
}

#[library_benchmark(setup = Fixture::present, teardown = check::<OPERATIONS>)]
#[bench::memory_12(Memory, 12)]
#[bench::memory_36(Memory, 36)]
#[bench::file_12(File, 12)]
#[bench::file_36(File, 36)]
fn overwrite(fixture: Fixture) -> Outcome {
    let written = count_written(&fixture.cache, &fixture.keys[..OPERATIONS], &fixture.value);
    (fixture, written)
}

#[library_benchmark(setup = Fixture::full, teardown = check::<EVICTIONS>)]
#[bench::memory_12(Memory, 12)]
#[bench::memory_36(Memory, 36)]
#[bench::file_12(File, 12)]
#[bench::file_36(File, 36)]
fn set_evict(fixture: Fixture) -> Outcome {
    let written = count_written(&fixture.cache, &fixture.keys[..EVICTIONS], &fixture.value);
    (fixture, written)
}

#[library_benchmark(setup = Fixture::present, teardown = check::<OPERATIONS>)]
#[bench::memory_12(Memory, 12)]
#[bench::memory_36(Memory, 36)]
#[bench::file_12(File, 12)]
#[bench::file_36(File, 36)]
fn delete(fixture: Fixture) -> Outcome {
    let is_removed = |key: &&Vec<u8>| matches!(fixture.cache.delete(black_box(key)), Ok(true));
    let removed = fixture.keys[..OPERATIONS].iter().filter(is_removed).count();
    (fixture, removed)
}

#[library_benchmark(setup = Fixture::present, teardown = check::<{ BATCHES * BATCH }>)]
#[bench::memory_12(Memory, 12)]
#[bench::memory_36(Memory, 36)]
#[bench::file_12(File, 12)]
#[bench::file_36(File, 36)]
fn get_many(fixture: Fixture) -> Outcome {
    let mut found = 0;
    for keys in fixture.keys[..BATCHES * BATCH].chunks(BATCH) {
        let values = black_box(fixture.cache.get_many(black_box(keys)));
        found += values.map_or(0, |values| values.iter().flatten().count());
    }
    (fixture, found)
}

#[library_benchmark(setup = Fixture::present, teardown = check::<{ BATCHES * BATCH }>)]
#[bench::memory_12(Memory, 12)]
#[bench::memory_36(Memory, 36)]
#[bench::file_12(File, 12)]
#[bench::file_36(File, 36)]
fn set_many(fixture: Fixture) -> Outcome {
    let mut written = 0;
    for pairs in fixture.pairs.chunks(BATCH) {
        let outcomes = black_box(fixture.cache.set_many(black_box(pairs), SetOptions::set()));
        written += outcomes.iter().flatten().count();
    }
    (fixture, written)
}

#[library_benchmark(setup = ClosedFile::new)]
#[bench::file_36()]
fn open(file: ClosedFile) -> ClosedFile {
    for _ in 0..OPENINGS {
        drop(black_box(file.open()));
    }
    file
}

library_benchmark_group!(
    name = operations;
    benchmarks = get_hit, get_hit_in_groups, get_miss, contains, invalidate, overwrite, set_evict, delete, get_many, set_many, open
);

// The caches of the processor that valgrind simulates; otherwise it asks the processor that it runs on.
main!(
    config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args([
        "--cache-sim=yes",
        "--I1=32768,8,64",
        "--D1=32768,8,64",
        "--LL=8388608,16,64",
    ]));
    library_benchmark_groups = operations
);
