//! A co-run over nodes in a simulated cluster: each node's [`Session`] on a simulated machine,
//! and what travels between them over the simulated network. The decisions are those of real
//! nodes.

mod report;

use std::ops::Range;

use self::report::close;
use super::{Cluster, Report, SimulateError};
use crate::balance::bands::{Pace, is_compared, redivided};
use crate::balance::{Balancer, Dawl, Setup};
use crate::cluster::bands::first_division;
use crate::cluster::expected::all_expected;
use crate::corun::session::{Session, Stepped};
use crate::corun::{Later, Options, Tracing, When};
use crate::machine::MachineFile;
use crate::machine::cluster::NetworkSpec;
use crate::runtime::Runtime;
use crate::runtime::sim::bandwidth_sharing::{Fluid, Resource as Shared, Use};
use crate::runtime::sim::{Sim, SimOptions};
use crate::spread::Network;
use crate::time::Nanos;
use crate::workload::cluster::Bands;
use crate::workload::{Supersteps, ends};
use pdawl_core::cluster::info::NodeInfo;
use pdawl_core::cluster::record::{CommandRecord, NodeRecord};

/// A node: its machine, its units, and the time at which it has done everything so far.
struct Node<'w> {
    sim: Sim,
    info: NodeInfo,
    session: Option<Session<'w>>,
    at: Nanos,
    /// Time of steps, and since paces were compared.
    computing: Nanos,
    since: Vec<Nanos>,
    set_up: f64,
    record: NodeRecord,
    /// By step of the session: what to add to its machine's clock.
    shifts: Vec<i64>,
    /// The number of steps before it, and what it did.
    before: u32,
    traced: Vec<CommandRecord>,
}

/// A message: from, to, when it is sent, and its bytes.
type Sent = (usize, usize, Nanos, u64);

/// All nodes.
struct Nodes<'w> {
    bands: Bands<'w>,
    spec: NetworkSpec,
    nodes: Vec<Node<'w>>,
    messages: u64,
    units: Vec<Range<u64>>,
    /// When the last step had ended.
    ended: Nanos,
    /// When the first node began and ended its steps.
    timeline: Vec<(Nanos, Nanos)>,
    tracing: Tracing,
}

fn failed(error: impl ToString) -> SimulateError {
    SimulateError::Failed(error.to_string())
}

/// Runs all steps of a co-run over the machines of a cluster.
///
/// # Errors
/// What the simulator and the engine refuse, such as a node's part that does not fit.
pub(super) fn simulate(
    cluster: &Cluster,
    bands: Bands,
    options: &super::Options,
) -> Result<Report, SimulateError> {
    let traces = options.traces;
    let network = options.leaves_out.then(|| cluster.assumed());
    let options = SimOptions {
        seed: options.seed,
        noise: options.noise,
        ..SimOptions::default()
    };
    let tracing = match traces {
        true => Tracing::Commands,
        false => Tracing::None,
    };
    let machines = cluster.nodes.iter().map(|node| &*node.file);
    let machines: Vec<&MachineFile> = machines.collect();
    let mut nodes = Nodes::open(
        (&machines, &cluster.network, network),
        bands,
        (&options, tracing),
    )?;
    nodes.run()?;
    Ok(nodes.report(traces))
}

impl<'w> Nodes<'w> {
    fn open(
        (machines, spec, leaves_out): (&[&MachineFile], &NetworkSpec, Option<Network>),
        bands: Bands<'w>,
        (options, tracing): (&SimOptions, Tracing),
    ) -> Result<Self, SimulateError> {
        let mut nodes = Vec::with_capacity(machines.len());
        for (rank, machine) in (0..).zip(machines.iter().copied()) {
            let own = SimOptions {
                seed: options.seed.wrapping_add(rank),
                ..options.clone()
            };
            let sim = Sim::new(machine, own).map_err(failed)?;
            nodes.push(Node {
                info: NodeInfo {
                    name: machine.name.clone(),
                    memory: machine.host.memory,
                    devices: all_expected(&sim),
                },
                sim,
                session: None,
                at: 0,
                computing: 0,
                since: Vec::new(),
                set_up: 0.0,
                record: NodeRecord {
                    name: machine.name.clone(),
                    ..NodeRecord::default()
                },
                shifts: Vec::new(),
                before: 0,
                traced: Vec::new(),
            });
        }
        let infos: Vec<&NodeInfo> = nodes.iter().map(|node| &node.info).collect();
        let works: Vec<Vec<bool>> = (infos.iter())
            .map(|info| vec![true; info.devices.len()])
            .collect();
        let (units, note) = first_division(&bands, infos, &works, leaves_out);
        if let Some(node) = nodes.first_mut() {
            node.record.notes.extend(note);
        }
        let mut opened = Self {
            bands,
            spec: spec.clone(),
            nodes,
            messages: 0,
            units: units.clone(),
            ended: 0,
            timeline: Vec::new(),
            tracing,
        };
        opened.begin(units, bands.supersteps, vec![None; machines.len()])?;
        // What a run needs before its first step is no part of its time.
        for node in &mut opened.nodes {
            node.at = 0;
        }
        Ok(opened)
    }

    /// Opens the units of a round.
    fn begin(
        &mut self,
        units: Vec<Range<u64>>,
        supersteps: Supersteps,
        later: Vec<Option<Later>>,
    ) -> Result<(), SimulateError> {
        let balancer = |setup: &Setup| -> Box<dyn Balancer> { Box::new(Dawl::new(setup)) };
        for ((rank, node), later) in self.nodes.iter_mut().enumerate().zip(later) {
            if units[rank].is_empty() {
                continue;
            }
            let began = node.sim.now();
            let others = units.iter().enumerate().filter(|(other, _)| *other != rank);
            let others = others.map(|(_, units)| units.clone()).collect();
            let part = (self.bands.workload, units[rank].clone(), others);
            let options = Options {
                trace: self.tracing,
                tolerance: self.bands.tolerance,
                ..Options::of(supersteps)
            };
            let opened = Session::open(
                &mut node.sim,
                part,
                (&options, &[]),
                &balancer,
                later.as_ref(),
            );
            node.session = Some(opened.map_err(failed)?);
            let took = node.sim.now() - began;
            node.at += took;
            node.set_up = took as f64 / 1e9;
        }
        self.units = units;
        Ok(())
    }

    fn run(&mut self) -> Result<(), SimulateError> {
        let with_units = |units: &[Range<u64>]| units.iter().filter(|u| !u.is_empty()).count();
        let supersteps = self.bands.supersteps;
        let steps = supersteps.count();
        let mut parts = self.parts();
        for step in 0..steps {
            let begins = self.first();
            self.step()?;
            let done = step + 1;
            // No step reads what the last one has made.
            self.exchange(if done < steps { &parts } else { &[] }, When::Step)?;
            self.timeline.push((begins, self.first()));
            let change = self.sessions().next().and_then(Session::change);
            if (self.bands.tolerance.zip(change)).is_some_and(|(most, change)| ends(change, most)) {
                break;
            }
            if done < steps && with_units(&self.units) > 1 && is_compared(done.into()) {
                let next = self.compare(steps - done);
                if let Some(next) = next {
                    self.move_units(next, supersteps.after(done))?;
                    parts = self.parts();
                }
            }
        }
        let ended = self.nodes.iter().map(|node| node.at);
        self.ended = ended.max().unwrap_or(0);
        self.gather()?;
        self.exchange(&[], When::End)
    }

    fn sessions(&self) -> impl Iterator<Item = &Session<'w>> {
        self.nodes.iter().filter_map(|node| node.session.as_ref())
    }

    /// Calls a method of a node's session with its machine, if it has one.
    fn on<R>(
        node: &mut Node<'w>,
        with: impl FnOnce(Session<'w>, &mut dyn Runtime) -> (Session<'w>, R),
    ) -> Option<R> {
        let session = node.session.take()?;
        let (session, result) = with(session, &mut node.sim);
        node.session = Some(session);
        Some(result)
    }

    /// The time at the first node.
    fn first(&self) -> Nanos {
        self.nodes.first().map_or(0, |node| node.at)
    }

    fn step(&mut self) -> Result<(), SimulateError> {
        for node in &mut self.nodes {
            let shift = node.at.cast_signed() - node.sim.now().cast_signed();
            node.shifts.push(shift);
            match Self::on(node, Session::step) {
                Some(Ok(Stepped::Done(took))) => {
                    node.at += took;
                    node.computing += took;
                    node.since.push(took);
                }
                Some(Ok(Stepped::Spoiled)) => return Err(failed("a device was lost")),
                Some(Err(error)) => return Err(failed(error)),
                None => {}
            }
        }
        Ok(())
    }

    /// By sender and receiver: what travels after each step.
    fn parts(&self) -> Vec<Vec<Vec<Range<u64>>>> {
        let Some(of) = self.sessions().next() else {
            return Vec::new();
        };
        let units = &self.units;
        let between = |from: usize, to: usize| match from == to || units[to].is_empty() {
            true => Vec::new(),
            false => of.parts(&units[from], &units[to], false),
        };
        let all = 0..units.len();
        all.clone()
            .map(|from| all.clone().map(|to| between(from, to)).collect())
            .collect()
    }

    fn exchange(
        &mut self,
        parts: &[Vec<Vec<Range<u64>>>],
        when: When,
    ) -> Result<(), SimulateError> {
        let mut sums: Vec<Option<Vec<u8>>> = Vec::new();
        for node in &mut self.nodes {
            let own = Self::on(node, |session, sim| session.sums(sim, when));
            sums.push(own.transpose().map_err(failed)?.flatten());
        }
        let count = self.nodes.len();
        let mut sent: Vec<Sent> = Vec::new();
        let with_units: Vec<usize> = (0..count).filter(|n| !self.units[*n].is_empty()).collect();
        for &from in &with_units {
            let mut number = 0;
            for &to in with_units.iter().filter(|to| **to != from) {
                let own = parts.get(from).map_or(&[][..], |parts| &parts[to]);
                let bytes: u64 = own.iter().map(|part| part.end - part.start).sum();
                if bytes == 0 && sums[from].is_none() {
                    continue;
                }
                number += 1;
                let bytes = bytes + sums[from].as_ref().map_or(0, Vec::len) as u64;
                // The driver handles one message after the other.
                let at = self.nodes[from].at + number * self.spec.message_ns;
                sent.push((from, to, at, bytes));
                self.carry(from, to, own)?;
            }
        }
        let others = |node: usize| {
            let others = (0..count).filter(|other| *other != node);
            let own = |other: usize| Some((self.units[other].clone(), sums[other].clone()?));
            others.filter_map(own).collect::<Vec<_>>()
        };
        let others: Vec<Vec<(Range<u64>, Vec<u8>)>> = (0..count).map(others).collect();
        for (node, others) in self.nodes.iter_mut().zip(&others) {
            if !others.is_empty() {
                let added = Self::on(node, |session, sim| session.add_up(sim, when, others));
                added.transpose().map_err(failed)?;
            }
        }
        if when == When::Step {
            self.travel(sent);
        }
        Ok(())
    }

    /// Copies the data of a message, in a simulation that has some.
    fn carry(&mut self, from: usize, to: usize, parts: &[Range<u64>]) -> Result<(), SimulateError> {
        let mut bytes = Vec::new();
        self.read(from, parts, |part| bytes.extend_from_slice(part))?;
        let mut rest = &bytes[..];
        if !rest.is_empty() {
            self.read(to, parts, |part| {
                let (own, behind) = rest.split_at(part.len());
                part.copy_from_slice(own);
                rest = behind;
            })?;
        }
        Ok(())
    }

    fn read(
        &mut self,
        node: usize,
        parts: &[Range<u64>],
        with: impl FnMut(&mut [u8]),
    ) -> Result<(), SimulateError> {
        let node = &mut self.nodes[node];
        match &node.session {
            Some(session) => session.present(&mut node.sim, parts, with).map_err(failed),
            None => Ok(()),
        }
    }

    /// Has messages travel: the receivers have them at their times then.
    fn travel(&mut self, mut sent: Vec<Sent>) {
        sent.sort_unstable_by_key(|(_, _, at, _)| *at);
        let Some((_, _, mut now, _)) = sent.first().copied() else {
            return;
        };
        // Nothing else is on its way.
        let mut fluid = Fluid::default();
        let bandwidth = self.spec.bandwidth;
        let links: Vec<[Shared; 2]> = (0..self.nodes.len())
            .map(|_| {
                let out = fluid.resource(bandwidth);
                match self.spec.full_duplex {
                    true => [out, fluid.resource(bandwidth)],
                    false => [out, out],
                }
            })
            .collect();
        let switch = self.spec.switch_bandwidth;
        let switch = switch.map(|bandwidth| fluid.resource(bandwidth));
        let mut begun = 0;
        loop {
            let end = fluid.next_end().map(|after| now + after);
            let begin = sent.get(begun).map(|(_, _, at, _)| *at);
            let Some(at) = begin.into_iter().chain(end).min() else {
                return;
            };
            for ended in fluid.advance(at - now) {
                let to = sent[ended as usize].1;
                let node = &mut self.nodes[to];
                let arrives = at + self.spec.latency_ns;
                // Its driver handles one message after the other.
                node.at = node.at.max(arrives) + self.spec.message_ns;
            }
            now = at;
            while let Some((from, to, ..)) = sent.get(begun).filter(|(_, _, of, _)| *of <= now) {
                let bytes = sent[begun].3;
                self.messages += 1;
                self.nodes[*from].record.sent_bytes += bytes;
                self.nodes[*to].record.received_bytes += bytes;
                let over = [Some(links[*from][0]), Some(links[*to][1]), switch];
                let over = over.into_iter().flatten();
                let uses = over.map(|link| Use::of(link, bytes as f64)).collect();
                fluid.start(begun as u64, uses);
                begun += 1;
            }
        }
    }

    /// The division of the next round, if another one pays.
    fn compare(&mut self, left: u32) -> Option<Vec<Range<u64>>> {
        let paces: Vec<Option<Pace>> = (self.nodes.iter_mut().zip(&self.units))
            .map(|(node, units)| {
                let pace = Pace::of(&std::mem::take(&mut node.since), node.set_up);
                (!units.is_empty()).then_some(pace)
            })
            .collect();
        let next = redivided(&self.units, &paces, left.into());
        // All tell the first one, and it tells all.
        let last = self.nodes.iter().map(|node| node.at).max().unwrap_or(0);
        let both_ways = 2 * (self.spec.latency_ns + 2 * self.spec.message_ns);
        for node in &mut self.nodes {
            node.at = last + both_ways;
        }
        next
    }

    fn move_units(&mut self, next: Vec<Range<u64>>, left: Supersteps) -> Result<(), SimulateError> {
        self.gather()?;
        let count = self.nodes.len();
        let sums = self.sessions().next().and_then(Session::total);
        let mut sent = Vec::new();
        let mut later: Vec<Option<Later>> = vec![None; count];
        for (to, later) in later.iter_mut().enumerate() {
            let mut own = Later {
                parts: Vec::new(),
                sums,
            };
            for from in 0..count {
                let Some(of) = self.nodes[from].session.as_ref() else {
                    continue;
                };
                let parts = of.parts(&self.units[from], &next[to], true);
                let bytes = parts.iter().map(|part| part.end - part.start).sum();
                if from != to && bytes > 0 {
                    sent.push((from, to, self.nodes[from].at, bytes));
                }
                for part in parts {
                    let place = part.start;
                    self.read(from, &[part], |bytes| {
                        own.parts.push((place, bytes.to_vec()))
                    })?;
                }
            }
            *later = (!next[to].is_empty()).then_some(own);
        }
        self.travel(sent);
        for node in &mut self.nodes {
            close(node);
        }
        self.begin(next, left, later)
    }

    /// Brings what devices hold to host memory.
    fn gather(&mut self) -> Result<(), SimulateError> {
        for node in &mut self.nodes {
            let began = node.sim.now();
            if let Some(gathered) = Self::on(node, Session::gather) {
                gathered.map_err(failed)?;
                node.at += node.sim.now() - began;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
