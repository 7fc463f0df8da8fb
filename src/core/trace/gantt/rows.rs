//! Reduces spans to bars, in one row for each queue of a device.

use std::collections::BTreeMap;

use super::legend::Palette;
use crate::time::Nanos;
use crate::trace::{Span, Trace};

/// The commands of one queue.
#[derive(Debug)]
pub struct Row<'a> {
    pub device: usize,
    pub queue: usize,
    pub bars: Vec<Bar<'a>>,
}

/// One command, or several that are too short to be told apart.
#[derive(Debug)]
pub struct Bar<'a> {
    pub began: Nanos,
    pub ended: Nanos,
    /// Number and running time of its commands, each by its entry in the palette.
    pub parts: Vec<(usize, KindTotal)>,
    /// The command, if it is a single one.
    pub span: Option<&'a Span>,
}

/// The commands of one colour in a bar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindTotal {
    pub commands: u64,
    pub busy: Nanos,
}

impl Row<'_> {
    /// The text before it.
    pub fn label(&self) -> String {
        match self.bars.is_empty() {
            true => "idle".to_owned(),
            false => format!("queue {}", self.queue),
        }
    }
}

impl<'a> Bar<'a> {
    fn of(span: &'a Span, entry: usize) -> Self {
        let mut bar = Self {
            began: span.started,
            ended: span.ended.max(span.started),
            parts: Vec::with_capacity(1),
            span: Some(span),
        };
        bar.count(span, entry);
        bar
    }

    fn count(&mut self, span: &Span, entry: usize) {
        let at = self.parts.iter().position(|(known, _)| *known == entry);
        let at = at.unwrap_or_else(|| {
            self.parts.push((entry, KindTotal::default()));
            self.parts.len() - 1
        });
        let part = &mut self.parts[at].1;
        part.commands += 1;
        let time = span.ended.saturating_sub(span.started);
        part.busy = part.busy.saturating_add(time);
    }

    /// The fraction of its time in which commands ran, 0 to 1.
    pub fn density(&self) -> f64 {
        let busy: f64 = self.parts.iter().map(|(_, part)| part.busy as f64).sum();
        let whole = self.ended.saturating_sub(self.began).max(1);
        (busy / whole as f64).min(1.0)
    }

    /// The entry whose commands ran longest in it.
    pub fn entry(&self) -> usize {
        let longest = (self.parts.iter()).max_by_key(|(_, part)| (part.busy, part.commands));
        longest.map_or(0, |(entry, _)| *entry)
    }
}

/// The rows, by device and queue. A device without commands has one empty row.
/// Neighbouring commands are merged as long as their bar is shorter than
/// `resolution`.
pub fn rows<'a>(trace: &'a Trace, palette: &Palette, resolution: Nanos) -> Vec<Row<'a>> {
    let mut queues: BTreeMap<(usize, usize), Vec<&Span>> = BTreeMap::new();
    for span in &trace.spans {
        queues
            .entry((span.device, span.queue))
            .or_default()
            .push(span);
    }
    for device in 0..trace.devices.len() {
        if !queues.keys().any(|(each, _)| *each == device) {
            queues.insert((device, 0), Vec::new());
        }
    }
    queues
        .into_iter()
        .map(|((device, queue), mut spans)| {
            spans.sort_by_key(|s| (s.started, s.ended));
            Row {
                device,
                queue,
                bars: bars(&spans, palette, resolution),
            }
        })
        .collect()
}

fn bars<'a>(spans: &[&'a Span], palette: &Palette, resolution: Nanos) -> Vec<Bar<'a>> {
    let mut bars: Vec<Bar> = Vec::new();
    for span in spans {
        let entry = palette.index(span);
        let joins = bars
            .last()
            .is_some_and(|bar| span.ended.saturating_sub(bar.began) < resolution);
        match bars.last_mut() {
            Some(bar) if joins => {
                bar.ended = bar.ended.max(span.ended);
                bar.span = None;
                bar.count(span, entry);
            }
            _ => bars.push(Bar::of(span, entry)),
        }
    }
    bars
}

/// Most dependencies that are drawn; more could not be told apart.
pub const MOST_FLOWS: usize = 2_000;

/// The dependencies between commands of different rows: the end of the first and its row, the
/// start of the second and its row. None if there are too many.
pub fn flows(trace: &Trace, rows: &[Row]) -> Vec<(Nanos, usize, Nanos, usize)> {
    if trace.flows.len() > MOST_FLOWS {
        return Vec::new();
    }
    let row = |span: &Span| {
        let of = |row: &Row| (row.device, row.queue) == (span.device, span.queue);
        rows.iter().position(of)
    };
    let flow = |(before, after): &(usize, usize)| {
        let (before, after) = (trace.spans.get(*before)?, trace.spans.get(*after)?);
        let (from, to) = (row(before)?, row(after)?);
        (from != to).then_some((before.ended, from, after.started, to))
    };
    trace.flows.iter().filter_map(flow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::CommandKind;
    use crate::trace::fixtures::{span, two_devices};

    fn rows(trace: &Trace, resolution: Nanos) -> Vec<Row<'_>> {
        super::rows(trace, &Palette::of([trace]), resolution)
    }

    #[test]
    fn one_row_a_queue_and_every_device_has_one() {
        let mut trace = two_devices();
        trace.devices.push("idle".into());
        let found: Vec<(usize, usize, usize)> = rows(&trace, 1)
            .iter()
            .map(|r| (r.device, r.queue, r.bars.len()))
            .collect();
        assert_eq!(found, [(0, 0, 1), (1, 0, 2), (1, 1, 1), (2, 0, 0)]);
    }

    #[test]
    fn thin_commands_merge_and_none_is_lost() {
        let trace = Trace {
            devices: vec!["gpu".into()],
            spans: (0..10_000)
                .map(|i| {
                    let kinds = [CommandKind::Write, CommandKind::Launch, CommandKind::Read];
                    let kind = kinds[i as usize % 3];
                    span(0, 0, kind, i * 10, i * 10 + if i % 3 == 1 { 9 } else { 4 })
                })
                .collect(),
            ..Trace::default()
        };
        let rows = rows(&trace, 1_000);
        let bars = &rows[0].bars;
        assert!(bars.len() <= 101, "{}", bars.len());
        let commands: u64 = bars
            .iter()
            .flat_map(|b| &b.parts)
            .map(|p| p.1.commands)
            .sum();
        assert_eq!(commands, 10_000);
        assert!(bars.iter().all(|b| b.entry() == 3));
        // Of every 30 ns a kernel ran 9 and two copies 4 each.
        assert!(
            bars.iter()
                .all(|b| (b.density() - 17.0 / 30.0).abs() < 0.02)
        );
        assert!(bars.windows(2).all(|w| w[0].ended <= w[1].began));
    }

    #[test]
    fn long_commands_stay_single() {
        let trace = two_devices();
        for row in rows(&trace, 150) {
            assert!(row.bars.iter().all(|b| b.span.is_some()));
        }
    }
}
