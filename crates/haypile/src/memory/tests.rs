//! What cannot be seen from outside: the memory that a store takes beside its records.

use std::sync::Arc;

use super::contents::{Contents, Options, Outcome, Write};
use super::pool::Pool;
use super::record::Draft;
use super::{HEADER_BYTES, OVERHEAD_BYTES, charge, longest_value, record};
use crate::clock::{Clock, ManualClock};
use crate::policy::ghost::ByFingerprint;
use crate::policy::{Policy, PolicySpec, PolicyVisitor};
use crate::write::WriteMode;

#[test]
fn a_record_has_the_header_that_is_charged() {
    assert_eq!(record::HEADER_BYTES as u64, HEADER_BYTES);
}

#[test]
fn the_longest_value_is_the_longest_that_is_not_charged_more() {
    for limit_bytes in 0..1_000 {
        for key_bytes in [0, 1, 7, 100] {
            let longest = longest_value(key_bytes, limit_bytes);
            let fits = |value_bytes: &u64| charge(key_bytes, *value_bytes) <= limit_bytes;
            assert_eq!(longest, (0..1_000).take_while(fits).last());
        }
    }
}

/// Fills a shard with entries that nobody reads, which leave the most ghosts, and gives the bytes
/// of metadata per entry.
struct Fill {
    capacity_bytes: u64,
}

impl PolicyVisitor for Fill {
    type Output = f64;

    #[expect(clippy::cast_precision_loss, reason = "an average")]
    fn visit<P: Policy + 'static>(self, make: impl Fn(u64) -> P) -> f64 {
        let options = Options { is_alone: true, notes_time_from_s: None, version: 0 };
        let mut contents = Contents::new(make(self.capacity_bytes), self.capacity_bytes, options);
        let pool = Pool::new(self.capacity_bytes);
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
        for number in 0..self.capacity_bytes / 64 {
            let fingerprint = number.wrapping_mul(0xD6E8_FEB8_6659_FD93);
            let key = number.to_le_bytes();
            let draft = Draft::copied(fingerprint, &key, b"v").unwrap();
            let write = Write { draft, mode: WriteMode::Set, ttl: None, has_room: false };
            assert!(matches!(contents.write(write, &*clock, &pool), Outcome::Written(_)));
        }
        contents.metadata_bytes() as f64 / contents.len() as f64
    }
}

#[test]
fn the_overhead_is_what_the_metadata_takes() {
    let overhead = f64::from(u32::try_from(OVERHEAD_BYTES).unwrap());
    for kind in PolicySpec::kinds() {
        let spec: PolicySpec = kind.name.parse().unwrap();
        // Tables double: look at sizes all the way between two powers of two.
        let fill = |eighths: u64| {
            spec.build::<ByFingerprint, _>(true, Fill { capacity_bytes: eighths << 17 })
        };
        let mean = [9, 11, 13, 15].map(fill).iter().sum::<f64>() / 4.0;
        println!("{kind:?} {mean}", kind = kind.name);
        match kind.name {
            "lirs" => assert!(mean > overhead, "lirs has as many ghosts as entries: {mean}"),
            name => assert!(mean <= overhead, "{name} takes {mean}"),
        }
        if spec == PolicySpec::default() {
            assert!(mean > 0.9 * overhead, "the default takes only {mean}");
        }
    }
}
