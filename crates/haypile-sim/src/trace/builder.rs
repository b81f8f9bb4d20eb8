//! Makes a columnar trace out of a stream of requests.

use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

use super::column::Column;
use super::completed::CompletedColumn;
use super::error::Limit;
use super::hpt::{ColumnType, Parts, assemble};
use super::keys::{Full, Keys};
use super::next_use;
use super::sample::Marks;
use super::{Key, Op, Request, Sampling, Sink, Trace, TraceError};

/// Options for building a trace with a [`TraceBuilder`].
#[derive(Clone, Debug, PartialEq)]
pub struct BuildOptions {
    /// The number of bytes of the trace's columns that are held in memory; the rest goes to temporary files. The keys
    /// and their index are always in memory, so that memory is bounded by this and the number of keys.
    pub memory_bytes: usize,
    /// Whether the trace gets a column that states when each key is requested next, which saves the offline optimum a
    /// pass over the trace.
    pub next_use: bool,
    /// The sample of keys whose requests are kept ([`Sample`](super::Sample)), or `None` for all keys; memory grows
    /// with the number of kept keys.
    pub sampling: Option<Sampling>,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self { memory_bytes: 256 << 20, next_use: false, sampling: None }
    }
}

/// A builder of a [`Trace`] from requests that are pushed into it.
///
/// Keys get dense ids in order of first appearance. The number 7 and the text `7` are two keys.
///
/// What a trace never tells gets no column; where only some requests tell, the others are
/// completed: a request without a size has the last known size of its key, or else the first that comes
/// later, or 0 (a web server logs no size when it answers "not modified"; a deletion has none by nature),
/// and so it is with the cost of a miss; a request without a time has the time of the request before it, or 0.
#[derive(Debug)]
pub struct TraceBuilder {
    options: BuildOptions,
    keys: Keys,
    requests: u32,
    /// Number of bytes of the columns below that are in memory.
    buffered_bytes: usize,
    ids: Column,
    sizes: Option<CompletedColumn<U32>>,
    ops: Option<Column>,
    times: Option<Times>,
    ttls: Option<Column>,
    costs: Option<CompletedColumn<U64>>,
    /// Marks of the whole trace, if the trace is to be a sample.
    marks: Option<Marks>,
}

#[derive(Debug, Default)]
struct Times {
    column: Column,
    last_us: u64,
}

impl TraceBuilder {
    /// Creates a builder of a trace that has no requests yet.
    pub fn new(options: BuildOptions) -> Self {
        Self {
            marks: options.sampling.map(Marks::new),
            options,
            keys: Keys::default(),
            requests: 0,
            buffered_bytes: 0,
            ids: Column::default(),
            sizes: None,
            ops: None,
            times: None,
            ttls: None,
            costs: None,
        }
    }

    /// Returns the number of requests in the trace so far; with sampling, only those of sampled keys count.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Returns the number of distinct keys in the trace so far; with sampling, only sampled keys count.
    pub fn keys(&self) -> u32 {
        self.keys.len()
    }

    /// Builds the trace from all requests that were pushed.
    ///
    /// # Errors
    /// [`TraceError::Temporary`] if it does not fit into memory, and not into the directory of
    /// temporary files either.
    pub fn finish(self) -> Result<Trace, TraceError> {
        let requests = self.requests as usize;
        let memory_bytes = self.options.memory_bytes;
        let keys = self.keys.len();
        let (words, kinds, text) = self.keys.finish();
        let ids = self.ids.finish()?;
        let next_use = self
            .options
            .next_use
            .then(|| next_use::compute(super::table::u32s(&ids), keys, memory_bytes))
            .transpose()?;
        let sizes = self.sizes.map(|sizes| sizes.finish(&ids, memory_bytes)).transpose()?;
        let ops = self.ops.map(Column::finish).transpose()?;
        let times = self.times.map(|times| times.column.finish()).transpose()?;
        let ttls = self.ttls.map(Column::finish).transpose()?;
        let costs = self.costs.map(|costs| costs.finish(&ids, memory_bytes)).transpose()?;

        let mut columns = vec![(ColumnType::Ids, &*ids)];
        let optional = [
            (ColumnType::Sizes, &sizes),
            (ColumnType::Ops, &ops),
            (ColumnType::Times, &times),
            (ColumnType::NextUse, &next_use),
            (ColumnType::Ttls, &ttls),
            (ColumnType::Costs, &costs),
        ];
        for (kind, column) in optional {
            columns.extend(column.as_deref().map(|bytes| (kind, bytes)));
        }
        columns.push((ColumnType::KeyWords, words.as_bytes()));
        if !text.is_empty() {
            columns.extend([(ColumnType::KeyKinds, &*kinds), (ColumnType::KeyText, &*text)]);
        }
        let marks = self.marks.map(|marks| marks.finish(u64::from(self.requests)));
        columns.extend(marks.as_ref().map(|words| (ColumnType::Sample, words.as_bytes())));
        Trace::from_own(assemble(&Parts { requests, keys, columns }, memory_bytes)?)
    }

    fn push_size(
        &mut self,
        id: u32,
        size_bytes: Option<u32>,
        is_new: bool,
    ) -> Result<(), TraceError> {
        if self.sizes.is_none() && size_bytes.is_some() {
            self.sizes = Some(CompletedColumn::new(self.missed(4)?));
        }
        if let Some(sizes) = &mut self.sizes {
            sizes.push(id, size_bytes.map(U32::new), is_new);
            self.buffered_bytes += 4;
        }
        Ok(())
    }

    fn push_op(&mut self, op: Op) -> Result<(), TraceError> {
        if self.ops.is_none() && op != Op::Read {
            self.ops = Some(self.missed(1)?);
        }
        if let Some(column) = &mut self.ops {
            column.push(&[op as u8]);
            self.buffered_bytes += 1;
        }
        Ok(())
    }

    fn push_time(&mut self, time_us: Option<u64>) -> Result<(), TraceError> {
        if self.times.is_none() && time_us.is_some() {
            self.times = Some(Times { column: self.missed(8)?, ..Times::default() });
        }
        if let Some(Times { column, last_us }) = &mut self.times {
            *last_us = time_us.unwrap_or(*last_us);
            column.push(&last_us.to_le_bytes());
            self.buffered_bytes += 8;
        }
        Ok(())
    }

    fn push_ttl(&mut self, ttl_us: Option<u64>) -> Result<(), TraceError> {
        if self.ttls.is_none() && ttl_us.is_some() {
            self.ttls = Some(self.missed(8)?);
        }
        if let Some(column) = &mut self.ttls {
            column.push(&ttl_us.unwrap_or(0).to_le_bytes());
            self.buffered_bytes += 8;
        }
        Ok(())
    }

    fn push_cost(&mut self, id: u32, cost_ns: Option<u64>, is_new: bool) -> Result<(), TraceError> {
        if self.costs.is_none() && cost_ns.is_some() {
            self.costs = Some(CompletedColumn::new(self.missed(8)?));
        }
        if let Some(costs) = &mut self.costs {
            costs.push(id, cost_ns.map(U64::new), is_new);
            self.buffered_bytes += 8;
        }
        Ok(())
    }

    /// A column that begins with zeros for the requests before this one.
    fn missed(&mut self, width: usize) -> Result<Column, TraceError> {
        let column = Column::zeros(self.requests as usize * width, self.options.memory_bytes)?;
        self.buffered_bytes += column.buffered_bytes();
        Ok(column)
    }

    fn spill(&mut self) -> Result<(), TraceError> {
        if let Some(sizes) = &mut self.sizes {
            sizes.spill()?;
        }
        if let Some(costs) = &mut self.costs {
            costs.spill()?;
        }
        let times = self.times.as_mut().map(|times| &mut times.column);
        let columns = [Some(&mut self.ids), self.ops.as_mut(), times, self.ttls.as_mut()];
        for column in columns.into_iter().flatten() {
            column.spill()?;
        }
        self.buffered_bytes = 0;
        Ok(())
    }
}

impl Sink for TraceBuilder {
    /// Takes the next request.
    ///
    /// # Errors
    /// [`TraceError::Limit`] beyond 2^32 - 2 requests or keys, for a size above 2^32 - 1 bytes and
    /// for a key above 65,535 bytes; the request is then not in the trace, and the builder can go
    /// on. [`TraceError::Temporary`] if a temporary file fails; the builder is then of no more use.
    fn push(&mut self, request: Request<'_>) -> Result<(), TraceError> {
        let beyond = |limit| TraceError::Limit { request: u64::from(self.requests), limit };
        if self.requests == u32::MAX - 1 {
            return Err(beyond(Limit::Requests));
        }
        if let Key::Text(text) = request.key
            && text.len() > usize::from(u16::MAX)
        {
            return Err(beyond(Limit::Key { bytes: text.len() }));
        }
        let size_bytes = match request.size_bytes {
            None => None,
            Some(bytes) => Some(u32::try_from(bytes).map_err(|_| beyond(Limit::Size { bytes }))?),
        };
        if let Some(marks) = &mut self.marks
            && !marks.sampling().contains(request.key)
        {
            marks.note(request.op, request.size_bytes, u64::from(self.requests));
            return Ok(());
        }
        let keys = self.keys.len();
        let id = self.keys.id(request.key).map_err(|Full| beyond(Limit::Keys))?;

        self.push_size(id, size_bytes, id >= keys)?;
        self.push_op(request.op)?;
        self.push_time(request.time_us)?;
        self.push_ttl(request.ttl_us.filter(|ttl_us| *ttl_us > 0))?;
        self.push_cost(id, request.cost_ns, id >= keys)?;
        self.ids.push(&id.to_le_bytes());
        self.buffered_bytes += 4;
        self.requests += 1;
        if let Some(marks) = &mut self.marks {
            marks.note(request.op, request.size_bytes, u64::from(self.requests));
        }
        if self.buffered_bytes > self.options.memory_bytes {
            self.spill()?;
        }
        Ok(())
    }
}
