//! A process in Rust that uses a shared file; tests/languages/README.md has what it is told, and what it answers.

use std::fmt::Write as _;
use std::io::{self, BufRead, Write};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use haypile::{Cache, Lease, SetOptions, Version, Written};

fn unhex(text: &str) -> Result<Vec<u8>> {
    let digits = if text == "-" { "" } else { text };
    let byte =
        |at: usize| Ok(u8::from_str_radix(digits.get(at..at + 2).context("half a byte")?, 16)?);
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".to_owned();
    }
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn say(answer: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{answer}")?;
    Ok(out.flush()?)
}

/// Returns a value that says whose it is, and how it goes on.
fn made(key: &str, sequence: u64) -> String {
    let letter = char::from(b'a' + u8::try_from(sequence % 26).expect("it is small"));
    let tail = usize::try_from(sequence * 37 % 3000).expect("it is small");
    format!("{key}:{sequence}:{}", letter.to_string().repeat(tail))
}

fn is_sound(key: &str, value: &[u8]) -> bool {
    let rest = value.strip_prefix(key.as_bytes()).and_then(|rest| rest.strip_prefix(b":"));
    let digits = rest.and_then(|rest| rest.split(|byte| *byte == b':').next());
    let sequence = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    sequence.is_some_and(|sequence| made(key, sequence).as_bytes() == value)
}

fn load(cache: &Cache, words: &[&str]) -> Result<String> {
    let [owner, first, count, keys, others] = words else {
        bail!("the command load needs five arguments: OWNER FIRST COUNT KEYS OTHERS")
    };
    let (first, count, keys): (u64, u64, u64) = (first.parse()?, count.parse()?, keys.parse()?);
    let others: Vec<_> = others.split(',').collect();
    for sequence in first..first + count {
        let number = sequence % keys;
        say(&format!("w {number} {sequence}"))?;
        let key = format!("{owner}:{number}");
        cache.set(&key, made(&key, sequence))?;
        say(&format!("a {number} {sequence}"))?;
        let other = others[rand::random_range(0..others.len())];
        let key = format!("{other}:{}", rand::random_range(0..keys));
        if let Some(value) = cache.get(&key)?
            && !is_sound(&key, &value)
        {
            say(&format!("bad {} {}", hex(key.as_bytes()), hex(&value[..value.len().min(200)])))?;
        }
    }
    Ok("end".to_owned())
}

fn ok_if(is_so: bool) -> String {
    if is_so { "ok" } else { "no" }.to_owned()
}

fn compute(cache: &Cache, key: &[u8], ms: u64, value: &[u8]) -> Result<String> {
    let mut is_computed = false;
    let found = cache.get_or_compute(key, None, || {
        is_computed = true;
        thread::sleep(Duration::from_millis(ms));
        value.to_vec()
    })?;
    Ok(format!("{} {}", if is_computed { "computed" } else { "value" }, hex(&found)))
}

fn answer(cache: &Cache, words: &[&str]) -> Result<String> {
    let (command, words) = words.split_first().context("an empty line")?;
    match *command {
        "load" => return load(cache, words),
        "keys" => {
            let mut keys = cache.keys().collect::<haypile::Result<Vec<_>>>()?;
            keys.sort();
            let texts = keys.iter().map(|key| format!(" {}", hex(key)));
            return Ok(format!("keys{}", texts.collect::<String>()));
        }
        _ => {}
    }
    let key = unhex(words.first().context("a key is missing")?)?;
    Ok(match (*command, &words[1..]) {
        ("set", [value, ttl]) => {
            let ttl: u64 = ttl.parse()?;
            cache.set_with_ttl(
                key,
                unhex(value)?,
                (ttl > 0).then(|| Duration::from_millis(ttl)),
            )?;
            "ok".to_owned()
        }
        ("get", []) => match cache.get(key)? {
            Some(value) => format!("value {}", hex(&value)),
            None => "miss".to_owned(),
        },
        ("add", [value]) => ok_if(cache.add(key, unhex(value)?)?),
        ("delete", []) => ok_if(cache.delete(key)?),
        ("incr", [delta]) => match cache.incr(key, delta.parse()?)? {
            Some(number) => format!("number {number}"),
            None => "miss".to_owned(),
        },
        ("gets", []) => match cache.get_versioned(key)? {
            Some((value, version)) => format!("versioned {} {}", hex(&value), version.raw()),
            None => "miss".to_owned(),
        },
        ("cas", [value, version]) => {
            let version = Version::from_raw(version.parse()?);
            ok_if(cache.cas(key, unhex(value)?, version)? == Written::Stored)
        }
        ("lease", []) => format!("lease {}", hex(&cache.lease(key)?.to_bytes())),
        ("leased", [value, lease]) => {
            let lease = unhex(lease)?.try_into().ok().context("a lease has 32 bytes")?;
            let options = SetOptions::leased(Lease::from_bytes(lease));
            ok_if(cache.write(key, unhex(value)?, options)? == Written::Stored)
        }
        ("compute", [ms, value]) => compute(cache, &key, ms.parse()?, &unhex(value)?)?,
        _ => bail!("unknown command '{command}', or a wrong number of its arguments"),
    })
}

fn main() -> Result<()> {
    let url = std::env::args().nth(1).context("usage: language-worker URL")?;
    let cache = Cache::open(&url)?;
    say("ready")?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<_> = line.split_whitespace().collect();
        say(&match answer(&cache, &words) {
            Ok(answer) => answer,
            Err(error) => format!("error {error:#}"),
        })?;
    }
    Ok(cache.close()?)
}
