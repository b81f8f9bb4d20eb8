//! Logs with a JSON object in each line: those of nginx (with names of its variables), Caddy, Traefik, Envoy and the Elastic Common
//! Schema, and of the content networks of Cloudflare, `CloudFront` (version 2), Fastly, Akamai (`DataStream` 2), Google Cloud and Azure.
//!
//! What a member stands for follows from its name; `--columns` states others, members of members by their path (`request.uri`). Lines
//! without a URL are left out: programs log other events too. The line of another log in a member, as containers wrap what a
//! server writes, is read as a line of that log.

mod names;

use serde_json::Value;

use super::super::super::{Op, Request};
use super::super::bad::Bad;
use super::super::options::{CsvColumn, CsvOptions, TimeUnit};
use super::super::{field, operation};
use super::ncsa::Ncsa;
use super::{Exchange, Line, Lines, Why, request_line, time};
use names::{
    CACHE, COST, HOST, METHOD, QUERY, REQUEST, SIZE, SIZE_WITH_HEADERS, STATUS, TARGET, TIME,
    WRAPPED,
};

#[derive(Debug)]
pub(super) struct Json {
    /// The JSON object of the last line read, from which an exchange borrows its texts.
    object: Value,
    /// The reader of lines that are in a member.
    wrapped: Ncsa,
    counts_headers: bool,
    /// The paths of the key's fields that were asked for instead of the usual names.
    key: Option<String>,
    size: Role,
    op: Role,
    time: Role,
    cost: Role,
}

/// Where a value is.
#[derive(Debug)]
enum Role {
    Usual,
    None,
    Path(String),
}

impl Role {
    fn of(column: &CsvColumn) -> Self {
        match column {
            CsvColumn::Auto => Self::Usual,
            CsvColumn::None => Self::None,
            CsvColumn::Name(path) => Self::Path(path.clone()),
            // A member may be named by a number.
            CsvColumn::Number(number) => Self::Path(number.to_string()),
        }
    }

    fn find<'a>(&self, object: &'a Value, usual: &[&str]) -> Option<&'a Value> {
        match self {
            Self::Usual => first(object, usual),
            Self::None => None,
            Self::Path(path) => member(object, path),
        }
    }
}

impl Json {
    pub(super) fn new(options: &CsvOptions) -> Self {
        let key = match Role::of(&options.key) {
            Role::Path(path) => Some(path),
            Role::Usual | Role::None => None,
        };
        let CsvOptions { size, op, time, cost, .. } = options;
        let [size, op, time, cost] = [size, op, time, cost].map(Role::of);
        let (object, wrapped) = (Value::Null, Ncsa::default());
        Self { object, wrapped, counts_headers: false, key, size, op, time, cost }
    }
}

impl Lines for Json {
    fn read<'a>(&'a mut self, line: &'a [u8]) -> Result<Line<'a>, Bad<'a>> {
        // Behind the name of a container, as `docker compose logs` shows it.
        let begin = if line.trim_ascii_start().starts_with(b"{") {
            Some(0)
        } else {
            memchr::memmem::find(line, b" | {")
        };
        let text = begin.map(|begin| line[begin..].trim_ascii_start());
        let text = text.map(|text| text.strip_prefix(b"| ").unwrap_or(text));
        let parsed = text.and_then(|text| serde_json::from_slice::<Value>(text).ok());
        self.object =
            parsed.filter(Value::is_object).ok_or_else(|| Bad::new("a JSON object", line))?;
        if self.key.is_none()
            && !is_exchange(&self.object)
            && let Some(inner) = wrapped(&self.object)
        {
            self.object = inner;
        }
        if let Value::String(text) = &self.object {
            let inner = self.wrapped.read(text.trim_ascii().as_bytes());
            // Programs log other events too.
            return Ok(inner.unwrap_or(Line::LeftOut(Why::NoValue)));
        }
        let object = &self.object;
        let line_of_request =
            string(object, REQUEST).and_then(|text| request_line(text.as_bytes()));
        let target = match &self.key {
            Some(path) => member(object, path).and_then(Value::as_str),
            None => string(object, TARGET),
        };
        let target = target.map(str::as_bytes).or(line_of_request.map(|(_, target)| target));
        let Some(target) = target.filter(|target| !target.is_empty()) else {
            return Ok(Line::LeftOut(Why::NoValue));
        };
        let time_us = match self.time.find(object, TIME) {
            Some(Value::String(text)) => time::any(text.as_bytes()),
            Some(Value::Number(number)) => time::any(number.to_string().as_bytes()),
            _ => None,
        };
        let time_us = time_us.or_else(|| match self.time {
            Role::Usual => date_and_time(object),
            Role::None | Role::Path(_) => None,
        });
        let size = match &self.size {
            Role::Usual => named(object, SIZE),
            role => role.find(object, SIZE).map(|size| ("", size)),
        };
        let size_bytes = size.and_then(|(_, size)| number(size));
        self.counts_headers |= size.is_some_and(|(name, _)| counts_headers(name, object));
        let cost_ns = self.cost_ns();
        let method = self.op.find(object, METHOD).and_then(Value::as_str).map(str::as_bytes);
        let method = method.or(line_of_request.map(|(method, _)| method));
        let status =
            first(object, STATUS).and_then(number).and_then(|status| u16::try_from(status).ok());
        let Some(status) = status else {
            // A log of something else than HTTP, of which somebody has said where the keys are.
            let Some(op) =
                self.key.as_ref().and(Some(method.map_or(Some(Op::Read), operation::operation)))
            else {
                return Ok(Line::LeftOut(Why::NoValue));
            };
            let op = op.ok_or_else(|| Bad::new(operation::EXPECTED, method.unwrap_or_default()))?;
            return Ok(Line::Request(Request {
                key: field::key(target),
                size_bytes,
                op,
                time_us,
                ttl_us: None,
                cost_ns,
            }));
        };
        let query = string(object, QUERY).map(str::as_bytes);
        Ok(Line::Exchange(Exchange {
            // A log without methods is one of reads.
            method: method.unwrap_or(b"GET"),
            host: string(object, HOST).map(str::as_bytes),
            target,
            query: query.filter(|query| !matches!(*query, b"" | b"-") && !target.contains(&b'?')),
            status,
            size_bytes,
            time_us,
            was_hit: first(object, CACHE).and_then(was_hit),
            cost_ns,
        }))
    }

    fn counts_headers(&self) -> bool {
        self.counts_headers
    }

    fn remedy(&self) -> Option<&'static str> {
        Some(
            "if its requests have other names, state them, members of members by their path, as in --columns \
             key=request.url,op=request.method,size=bytes,time=at",
        )
    }
}

impl Json {
    /// Returns the cost of a miss that the object states. That of a path is in seconds, unless its name ends in another unit.
    fn cost_ns(&self) -> Option<u64> {
        let (value, unit) = match &self.cost {
            Role::None => return None,
            Role::Usual => {
                COST.iter().find_map(|(name, unit)| Some((member(&self.object, name)?, *unit)))?
            }
            Role::Path(path) => (member(&self.object, path)?, TimeUnit::of_name(path.as_bytes())),
        };
        match value {
            Value::Number(number) => super::cost_ns(number.to_string().as_bytes(), unit),
            // nginx lists the times of all servers that it tried.
            Value::String(text) => {
                let times = text.split([',', ':']).map(str::trim);
                times.map(|time| super::cost_ns(time.as_bytes(), unit)).sum()
            }
            _ => None,
        }
    }
}

/// Returns the first member that is there.
fn first<'a>(object: &'a Value, names: &[&str]) -> Option<&'a Value> {
    named(object, names).map(|(_, value)| value)
}

/// Returns the first member that is a string: `url` is the target of some logs, and has its parts in others.
fn string<'a>(object: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| member(object, name)?.as_str())
}

/// Returns the first member that is there, with its name.
fn named<'a, 'b>(object: &'a Value, names: &[&'b str]) -> Option<(&'b str, &'a Value)> {
    names.iter().find_map(|name| Some((*name, member(object, name)?)))
}

/// Returns a member by its name, or by its path through others.
fn member<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    object.get(path).or_else(|| {
        let (outer, inner) = path.split_once('.')?;
        member(object.get(outer)?, inner)
    })
}

/// Returns a number, which some logs have as a text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| field::decimal(value.as_str()?.as_bytes()))
}

/// Whether an object has a request and its status. Collectors of logs add names such as `path`, the file of a log, to lines that
/// they wrap.
fn is_exchange(object: &Value) -> bool {
    let has_status = first(object, STATUS).and_then(number).is_some();
    has_status && string(object, TARGET).or(string(object, REQUEST)).is_some()
}

/// Returns what a member with a line of another log has: a JSON object, or any other line as a string.
fn wrapped(object: &Value) -> Option<Value> {
    match first(object, WRAPPED)? {
        line @ Value::String(text) => {
            let inner = serde_json::from_str(text).ok().filter(Value::is_object);
            Some(inner.unwrap_or_else(|| line.clone()))
        }
        inner @ Value::Object(_) => Some(inner.clone()),
        _ => None,
    }
}

/// Returns the time of an object that has the day and the time of day apart, as W3C logs do.
fn date_and_time(object: &Value) -> Option<u64> {
    let text = |name| member(object, name).and_then(Value::as_str).map(str::as_bytes);
    time::of_day(text("date")?, text("time")?)
}

/// Whether the size that an object has under this name is that of a response with its headers.
fn counts_headers(name: &str, object: &Value) -> bool {
    // Envoy gives the name that nginx has for all bytes to those of the body.
    let is_of_envoy = || member(object, "response_code").is_some();
    SIZE_WITH_HEADERS.contains(&name) && !is_of_envoy()
}

/// Returns whether the cache of the log's server answered, by its word for that, by a Boolean, or by Akamai's 0 and 1; `None` if the
/// value does not tell.
fn was_hit(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(was_hit) => Some(*was_hit),
        Value::String(text) => match text.as_str() {
            "0" => Some(false),
            "1" => Some(true),
            text => super::was_hit(text.as_bytes()),
        },
        _ => None,
    }
}
