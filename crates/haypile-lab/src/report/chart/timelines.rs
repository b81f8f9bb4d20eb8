//! The course of starts, each with its processes as bars, and above them the processors and the disk.
//! Bootchart drew what the KDE icon cache saves like this.

use haypile_measure::figure::Estimate;
use haypile_measure::result::{ProcessBar, Timeline};
use haypile_number::Quantity;
use haypile_plot::PlotError;
use haypile_plot::axis::Scale;
use haypile_plot::drawing::canvas::{self, Canvas, Place, Size, Stroke};
use haypile_plot::drawing::marks::COLOURS;
use haypile_plot::drawing::text::{printable, shorten};
use haypile_plot::drawing::{HPos, INK, SOFT_INK};

use super::{
    EDGE_PX, Form, Picture, SMALL_PX, TEXT_PX, draw_title, normal, readings, small, text_px,
};

const GRAPH_PX: f64 = 46.0;
const GRAPH_GAP_PX: f64 = 20.0;
const ROW_PX: f64 = 15.0;
const AXIS_PX: f64 = 24.0;
const PANEL_GAP_PX: f64 = 24.0;
const NOTE_PX: f64 = 18.0;
const TICK_PX: f64 = 4.0;
/// The most processes of a panel: those with the most processor time.
const MAX_ROWS: usize = 24;
/// The most pixels between two values of a graph.
const STEPS: usize = 120;

/// The intervals between two looks over which a rate is taken: the kernel counts processor time in steps that are not
/// finer than a look.
const RATE_INTERVALS: usize = 5;

/// The processes of one start of a program over time, to be drawn.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// The name of the drawn start, such as that of its condition (with or without the cache).
    pub(crate) name: String,
    /// A line of text below the drawn start's name, with the measured figures of such starts.
    pub(crate) note: Option<String>,
    /// The processes of the drawn start, and their use of processors and disk over time.
    pub(crate) timeline: Timeline,
}

/// A picture of several program starts over time, which share an axis of time.
#[derive(Clone, Debug)]
pub(crate) struct Timelines {
    /// The drawn program starts, from left to right, two in a row.
    pub(crate) courses: Vec<Course>,
}

/// A place for one start.
struct Panel<'a> {
    name: &'a str,
    note: Option<&'a str>,
    timeline: &'a Timeline,
    left: f64,
    right: f64,
    top: f64,
    scale: &'a Scale,
    /// The highest share of processors in all panels, and the highest number of bytes per second.
    most: (f64, f64),
}

impl Timelines {
    pub(crate) fn svg(&self, figure: &Picture, form: Form) -> Result<String, PlotError> {
        let width = form.width_px();
        let top = draw_title(None, figure, form);
        let end_ns = self.courses.iter().map(|course| course.timeline.end_ns()).max().unwrap_or(0);
        let scale =
            Scale::fitting(Quantity::Time, &readings(&[Estimate::exact(end_ns.max(1) as f64)]));
        let rates: Vec<(f64, f64)> = self
            .courses
            .iter()
            .flat_map(|course| rates(&course.timeline))
            .map(|(_, it)| it)
            .collect();
        let most = |of: fn(&(f64, f64)) -> f64| rates.iter().map(of).fold(0.0, f64::max);
        let most = (most(|it| it.0).max(1.0).ceil(), most(|it| it.1).max(1e6));
        let columns = if form.is_narrow() { 1 } else { self.courses.len().clamp(1, 2) };
        let panel_px =
            (width - 2.0 * EDGE_PX - (columns - 1) as f64 * PANEL_GAP_PX) / columns as f64;
        let height = |timeline: &Timeline| {
            let rows = timeline.processes.len().min(MAX_ROWS + 1) as f64;
            TEXT_PX * 2.0 + NOTE_PX + 2.0 * (GRAPH_PX + GRAPH_GAP_PX) + rows * ROW_PX + AXIS_PX
        };
        let mut panels = Vec::new();
        let (mut y, mut row_px) = (top, 0.0_f64);
        for (at, course) in self.courses.iter().enumerate() {
            let Course { name, note, timeline } = course;
            let note = note.as_deref();
            if at > 0 && at % columns == 0 {
                y += row_px + PANEL_GAP_PX;
                row_px = 0.0;
            }
            row_px = row_px.max(height(timeline));
            let left = EDGE_PX + (at % columns) as f64 * (panel_px + PANEL_GAP_PX);
            let right = left + panel_px;
            panels.push(Panel { name, note, timeline, left, right, top: y, scale: &scale, most });
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a picture")]
        let size = Size { width_px: width as u32, height_px: (y + row_px + EDGE_PX).ceil() as u32 };
        let (title, description) = (printable(&figure.title), printable(&figure.description));
        canvas::document(size, &title, &description, |canvas| {
            draw_title(Some(canvas), figure, form);
            for panel in &panels {
                panel.draw(canvas);
            }
        })
    }
}

impl Panel<'_> {
    fn x(&self, ns: u64) -> f64 {
        let at = self.scale.at(ns as f64);
        self.left + at * (self.right - self.left)
    }

    fn draw(&self, canvas: &Canvas) {
        let mut y = self.top + TEXT_PX;
        canvas.text(
            &shorten(self.name, (self.right - self.left) / TEXT_PX),
            (self.left, y),
            normal(HPos::Left),
        );
        if let Some(note) = self.note {
            let note = shorten(note, (self.right - self.left) / SMALL_PX);
            canvas.text(&note, (self.left, y + NOTE_PX), small(HPos::Left));
        }
        y += TEXT_PX + NOTE_PX;
        let (processors, bytes) = self.most;
        let cpu_name = format!("Processors in use, up to {processors:.0}");
        self.graph(canvas, y, &cpu_name, 0, |(cpu, _)| cpu / processors);
        y += GRAPH_PX + GRAPH_GAP_PX;
        let disk_name = format!("From disk, up to {}/s", Quantity::Bytes.write(bytes));
        self.graph(canvas, y, &disk_name, 1, |(_, disk)| disk / bytes);
        y += GRAPH_PX + GRAPH_GAP_PX;
        let foot = y + self.bars(canvas, y);
        let mut free = f64::MIN;
        for tick in self.scale.ticks_along((self.right - self.left) / SMALL_PX) {
            let x = self.left + tick.at * (self.right - self.left);
            // Names of processes are above: a line through all rows would strike them out.
            canvas.line(&[(x, foot), (x, foot + TICK_PX)], Stroke::solid(SOFT_INK, 1.0));
            // The last name moves to the left, so that it ends with the axis; there may be no room then.
            let name = if tick.at > 0.0 { tick.name.as_str() } else { "0" };
            let half = text_px(name, SMALL_PX) / 2.0;
            let begin = x.min(self.right - half) - half;
            if begin >= free {
                let ends = (self.left, self.right);
                super::centred_within(canvas, name, (x, foot + 12.0), ends);
                free = begin.max(self.left) + 2.0 * half + SMALL_PX / 2.0;
            }
        }
        canvas.line(&[(self.left, foot), (self.right, foot)], Stroke::solid(SOFT_INK, 1.0));
    }

    /// Draws a part of the moment that counts, which goes through everything but letters.
    fn ready(&self, canvas: &Canvas, (top, foot): (f64, f64)) {
        let x = self.x(self.timeline.ready_ns);
        let stroke = Stroke { dashes: Some((4.0, 3.0)), ..Stroke::solid(INK, 1.0) };
        canvas.line(&[(x, top), (x, foot)], stroke);
    }

    fn graph(
        &self,
        canvas: &Canvas,
        top: f64,
        name: &str,
        colour: usize,
        share: impl Fn((f64, f64)) -> f64,
    ) {
        canvas.text(name, (self.left, top + SMALL_PX / 2.0 + 2.0), small(HPos::Left));
        let (top, foot) = (top + SMALL_PX + 4.0, top + SMALL_PX + 4.0 + GRAPH_PX - 6.0);
        let mut corners: Vec<Place> = vec![(self.left, foot)];
        let mut before = 0;
        for (until_ns, rate) in rates(self.timeline) {
            let y = foot - share(rate).clamp(0.0, 1.0) * (foot - top);
            corners.extend([(self.x(before), y), (self.x(until_ns), y)]);
            before = until_ns;
        }
        corners.push((self.x(before), foot));
        canvas.polygon(&corners, COLOURS[colour].at(0.45));
        canvas.line(&[(self.left, foot), (self.right, foot)], Stroke::solid(SOFT_INK, 1.0));
        self.ready(canvas, (top, foot));
    }

    /// Draws the processes, and returns the height that they take.
    fn bars(&self, canvas: &Canvas, top: f64) -> f64 {
        let mut most: Vec<&ProcessBar> = self.timeline.processes.iter().collect();
        most.sort_by_key(|bar| std::cmp::Reverse(bar.cpu_ns));
        let hidden = most.len().saturating_sub(MAX_ROWS) as u64 + self.timeline.unlisted;
        most.truncate(MAX_ROWS);
        most.sort_by_key(|bar| (bar.first_ns, bar.pid));
        let mut y = top;
        for bar in most {
            let (from, to) =
                (self.x(bar.first_ns), self.x(bar.last_ns + self.timeline.interval_ns));
            let to = to.max(from + 1.0);
            let corners =
                [(from, y + 2.0), (to, y + 2.0), (to, y + ROW_PX - 2.0), (from, y + ROW_PX - 2.0)];
            canvas.polygon(&corners, COLOURS[2].at(0.4));
            // One that lived between two looks was not asked for its time.
            let cpu = Some(bar.cpu_ns).filter(|ns| *ns > 0);
            let cpu = cpu.map(|ns| format!(" {}", Quantity::Time.write(ns as f64)));
            let label = printable(&bar.name) + &cpu.unwrap_or_default();
            let label = shorten(&label, (self.right - self.left) / SMALL_PX);
            // Where it has no room behind the bar's beginning, it ends at the edge.
            let is_late = from > f64::midpoint(self.left, self.right);
            let (x, side) =
                if is_late { (to.min(self.right), HPos::Right) } else { (from + 3.0, HPos::Left) };
            let width = text_px(&label, SMALL_PX);
            let begin = if is_late { x - width } else { x };
            if !(begin - 2.0..=begin + width + 2.0).contains(&self.x(self.timeline.ready_ns)) {
                self.ready(canvas, (y, y + ROW_PX));
            }
            canvas.text(&label, (x, y + ROW_PX / 2.0), small(side));
            y += ROW_PX;
        }
        if hidden > 0 {
            let text = format!("and {hidden} with less processor time");
            canvas.text(&text, (self.left, y + ROW_PX / 2.0), small(HPos::Left));
            y += ROW_PX;
        }
        y - top
    }
}

/// Processors in use and bytes from disk per second, each up to a moment in nanoseconds.
fn rates(timeline: &Timeline) -> Vec<(u64, (f64, f64))> {
    let step = timeline.ticks.len().div_ceil(STEPS).max(RATE_INTERVALS);
    let processors = if timeline.processors > 0 { timeline.processors as f64 } else { f64::MAX };
    let mut rates = Vec::new();
    let mut before = timeline.ticks.first().copied().unwrap_or_default();
    let last = timeline.ticks.len().saturating_sub(1);
    for (at, tick) in timeline.ticks.iter().enumerate().skip(1) {
        if at % step != 0 && at != last {
            continue;
        }
        let of = |now: u64, then: u64| now.saturating_sub(then) as f64;
        let ns = of(tick.at_ns, before.at_ns).max(1.0);
        let cpu = (of(tick.cpu_ns, before.cpu_ns) / ns).min(processors);
        let disk = of(tick.disk_read_bytes, before.disk_read_bytes) * 1e9 / ns;
        rates.push((tick.at_ns, (cpu, disk)));
        before = *tick;
    }
    rates
}

#[cfg(test)]
mod tests {
    use haypile_measure::result::Tick;

    use super::*;

    fn timeline(processes: u64) -> Timeline {
        let tick = |at: u64| Tick {
            at_ns: at * 10_000_000,
            cpu_ns: at * 5_000_000,
            disk_read_bytes: at << 20,
        };
        let bar = |number: u64| ProcessBar {
            pid: i32::try_from(number).unwrap(),
            parent: 1,
            name: format!("p{number} <&>"),
            first_ns: number * 1_000_000,
            last_ns: 200_000_000,
            cpu_ns: number * 1_000_000,
        };
        Timeline {
            interval_ns: 10_000_000,
            ready_ns: 150_000_000,
            processors: 2,
            processes: (0..processes).map(bar).collect(),
            unlisted: 0,
            ticks: (0..30).map(tick).collect(),
        }
    }

    #[test]
    fn half_a_processor_is_half_and_a_disk_has_bytes_per_second() {
        let rates = rates(&timeline(1));
        assert_eq!(rates.len(), 6);
        for (_, (cpu, disk)) in rates {
            assert!((cpu - 0.5).abs() < 1e-9 && (disk - 100.0 * f64::from(1 << 20)).abs() < 1.0);
        }
        assert_eq!(super::rates(&Timeline::default()), []);
        // A counter in steps of 10 ms of a start that uses 2 processors: never more than there are.
        let mut coarse = timeline(1);
        coarse.ticks.iter_mut().for_each(|tick| tick.cpu_ns = tick.at_ns / 7 * 30);
        assert!(super::rates(&coarse).iter().all(|(_, (cpu, _))| *cpu <= 2.0));
    }

    #[test]
    fn panels_are_drawn_in_every_form_and_say_what_they_leave_out() {
        let course = |name: &str, processes| Course {
            name: name.to_owned(),
            note: Some(format!("median of {name}")),
            timeline: timeline(processes),
        };
        let chart = Timelines { courses: vec![course("with", 3), course("off", 40)] };
        let figure = Picture {
            slug: "x".to_owned(),
            title: "x".to_owned(),
            caption: String::new(),
            description: String::new(),
            chart: super::super::Chart::Timelines(chart),
        };
        for form in [Form::Wide, Form::Narrow, Form::Alone] {
            let svg = figure.svg(form).unwrap();
            roxmltree::Document::parse(&svg).unwrap();
            assert!(svg.contains("and 16 with less processor time"), "{form:?}");
            assert!(svg.contains("median of with") && svg.contains("median of off"), "{form:?}");
            assert!(svg.contains("p39 &lt;&amp;&gt;") && !svg.contains("p15 "), "{form:?}");
        }
    }
}
