//! A correct cache that is a directory with a file per key, and never evicts. It makes mistakes on
//! demand: a torture that does not find them finds nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::Orders;
use super::target::{Refusal, Target};

/// One operation of this number goes wrong where it is left out on purpose.
const ONE_OF: u64 = 4;

/// Between two looks at whether another process still computes, and between two parts of a value.
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// No mistake: a value is written under another name, and renamed.
    None,
    /// Some values are written in place, in two parts: readers see half of them, and permanently
    /// after a death.
    Tears,
    /// Some values are never written.
    Loses,
    /// Some deletions are not done.
    Keeps,
    /// Some values are written under the next key.
    Swaps,
    /// A process that dies keeps its claim permanently.
    Claims,
}

pub(super) fn open(orders: &Orders) -> Result<Box<dyn Target>, String> {
    let mistake = match orders.subject.rest() {
        "" => Mistake::None,
        "tears" => Mistake::Tears,
        "loses" => Mistake::Loses,
        "keeps" => Mistake::Keeps,
        "swaps" => Mistake::Swaps,
        "claims" => Mistake::Claims,
        other => return Err(format!("unknown mistake '{other}' of the subject files")),
    };
    let directory = orders.path.join("files");
    fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    Ok(Box::new(Files { directory, mistake, done: 0 }))
}

struct Files {
    directory: PathBuf,
    mistake: Mistake,
    done: u64,
}

impl Files {
    fn path(&self, key: &[u8]) -> PathBuf {
        self.directory.join(String::from_utf8_lossy(key).as_ref())
    }

    /// Whether this operation is one of those that go wrong.
    fn errs(&mut self, mistake: Mistake) -> bool {
        if self.mistake != mistake {
            return false;
        }
        self.done += 1;
        self.done.is_multiple_of(ONE_OF)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn failed(error: std::io::Error) -> Refusal {
    Refusal::Failed(error.to_string())
}

/// The key with the number before.
fn neighbour(key: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(key);
    let (name, number) = text.rsplit_once(':')?;
    Some(format!("{name}:{}", number.parse::<u64>().ok()?.checked_sub(1)?))
}

impl Target for Files {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Refusal> {
        match fs::read(self.path(key)) {
            Ok(value) => {
                *buffer = value;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Refusal> {
        if self.errs(Mistake::Loses) {
            return Ok(());
        }
        let mut path = self.path(key);
        if self.errs(Mistake::Swaps)
            && let Some(other) = neighbour(key)
        {
            path = self.path(other.as_bytes());
        }
        if self.errs(Mistake::Tears) {
            let (half, rest) = value.split_at(value.len() / 2);
            let mut file = File::create(path).map_err(failed)?;
            file.write_all(half).map_err(failed)?;
            thread::sleep(PAUSE);
            return file.write_all(rest).map_err(failed);
        }
        let new = self.directory.join(format!("new-{}", std::process::id()));
        fs::write(&new, value).and_then(|()| fs::rename(&new, path)).map_err(failed)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Refusal> {
        if self.errs(Mistake::Keeps) {
            return Ok(());
        }
        match fs::remove_file(self.path(key)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    }

    /// By a file that only one process can make. Who dies leaves it.
    fn get_or_compute(
        &mut self,
        key: &[u8],
        _groups: &[String],
        compute: &mut dyn FnMut() -> Vec<u8>,
    ) -> Result<Vec<u8>, Refusal> {
        if self.mistake != Mistake::Claims {
            return Err(Refusal::Unsupported);
        }
        let claim = self.directory.join(format!("claim-{}", String::from_utf8_lossy(key)));
        let mut value = Vec::new();
        while !self.get_into(key, &mut value)? {
            match OpenOptions::new().create_new(true).write(true).open(&claim) {
                Ok(_) => {
                    let value = compute();
                    self.set(key, &value)?;
                    fs::remove_file(claim).map_err(failed)?;
                    return Ok(value);
                }
                Err(_) => thread::sleep(PAUSE),
            }
        }
        Ok(value)
    }
}
