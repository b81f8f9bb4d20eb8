//! Properties of the readers for arbitrary bytes, which the property tests and the fuzzing check.

use haypile_sim::trace::format::{
    BlockSize, Delimiter, Format, MAX_RUN, ReadOptions, ReadReport, SpcAs, TraceReader,
};
use haypile_sim::trace::{Request, TraceError};

/// Requests after which a sink has had enough: a short file may rightly stand for many.
const ENOUGH: u64 = 2 * MAX_RUN;

/// Options out of two bytes, `None` for the format meaning that it is to be recognised.
pub(crate) fn options_of(format: u8, option: u8) -> ReadOptions {
    let format = usize::from(format) % (Format::all().len() + 1);
    let mut options =
        ReadOptions { format: Format::all().get(format).copied(), ..ReadOptions::default() };
    if option & 1 != 0 {
        options.spc_as = SpcAs::Blocks;
    }
    if option & 0x80 != 0 {
        options.block_size = Some(BlockSize::default());
    }
    options.csv.delimiter = match option >> 1 & 3 {
        1 => Some(Delimiter::Byte(b',')),
        2 => Some(Delimiter::Byte(b'\t')),
        3 => Some(Delimiter::Blanks),
        _ => None,
    };
    let columns = match option >> 3 & 3 {
        1 => "key=1",
        2 => "key=2,size=3,time=1",
        3 => "key=1,size=2,op=3",
        _ => "",
    };
    if !columns.is_empty() {
        options.csv.set_columns(columns).expect("columns of the right form");
    }
    options.csv.has_header = match option >> 5 & 3 {
        1 => Some(true),
        2 => Some(false),
        _ => None,
    };
    options
}

/// Reads bytes with and without skipping what is bad, and checks that both agree.
pub(crate) fn check(bytes: &[u8], options: &ReadOptions) {
    let strict = read(bytes, &ReadOptions { skip_bad: false, ..options.clone() });
    let lenient = read(bytes, &ReadOptions { skip_bad: true, ..options.clone() });
    match (&strict, &lenient) {
        (Ok(strict), Ok(lenient)) => {
            assert_eq!(strict, lenient, "nothing is bad either way, or few lines of a log");
            assert!(strict.0.bad == 0 || strict.0.format.is_web_log());
        }
        (Ok(_), Err(error)) => panic!("skipping makes it worse: {error}"),
        (Err(TraceError::Bad(first)), Ok((report, _))) => {
            assert_eq!(report.first_bad.first(), Some(first));
        }
        (Err(error), Ok(_)) => panic!("skipping passes over {error}"),
        (Err(_), Err(_)) => {}
    }
    for result in [strict, lenient] {
        match result {
            Ok((report, counted)) => {
                assert_eq!(report.requests, counted);
                assert!(report.requests > 0);
                assert!(report.first_bad.len() as u64 <= report.bad);
            }
            Err(error) => assert!(error.to_string().len() < 2_000, "{error}"),
        }
    }
}

/// The report, and how many requests reached the sink.
fn read(bytes: &[u8], options: &ReadOptions) -> Result<(ReadReport, u64), TraceError> {
    let mut count = 0;
    let mut sink = |_: Request<'_>| {
        count += 1;
        if count > ENOUGH { Err(TraceError::NoInput) } else { Ok(()) }
    };
    let report = TraceReader::from_reader("t", bytes, options)?.read(&mut sink)?;
    Ok((report, count))
}
