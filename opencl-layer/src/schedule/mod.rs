//! Where commands go.
//!
//! A queue has a place for its kernels. `off` never changes it, `round-robin` takes the
//! context's next one at each launch, and `auto-fit` the one that the map with the least predicted
//! time gives it (`fit`). That needs the times of the queue's kernels at all places
//! (`times`); where they are unknown, a kernel's first launch is recorded while a part of
//! it runs on copies of what it writes (`sample`). Then the recorded commands go to
//! drivers. Nothing that enqueues waits for a sample; whoever waits for the queue does.

mod fit;
mod sample;

use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use opencl_sys::{CL_OUT_OF_RESOURCES, cl_int};

use crate::command::Command;
use crate::divide;
use crate::event::Event;
use crate::handle::{AddressHasher, Ref};
use crate::issue::issue;
use crate::launch::Launch;
use crate::native::Native;
use crate::own_time;
use crate::process_end::CALLBACKS;
use crate::process_end::{self, while_alive};
use crate::queue::{Queue, State};
use crate::records::{self, DivisionRecord, Timing};
use crate::report;
use crate::scheduling;
use crate::settings::Mapping;
use crate::status::Fallible;

use self::fit::Epoch;
use sample::Sample;

/// The first epochs of a queue, each of which may move it.
const FIRST: u64 = 4;
/// Launches of a kernel that drivers have, at most, before it is known how to divide it, and
/// the seconds of those that are too short for it to matter.
const AHEAD: usize = 2;
const PACED: f64 = 1e-3;

/// What the scheduler knows of a queue.
#[derive(Default)]
struct QueuePlan {
    /// Commands that no driver has yet, in their order.
    recorded: VecDeque<Recorded>,
    /// Recorded commands that drivers have now. What they keep alive may end only where
    /// no lock is held.
    done: Vec<Recorded>,
    /// What the queue did since the program last waited for it.
    epoch: Epoch,
    /// What it did before that.
    before: Epoch,
    /// How many epochs have ended.
    epochs: u64,
    /// The kernels that it has launched, by their records' numbers.
    known: HashSet<usize, BuildHasherDefault<AddressHasher>>,
    /// Whether the queue was mapped once and for all.
    is_mapped: bool,
    /// Samples of the first recorded command.
    samples: Vec<Sample>,
    /// What the first recorded command waits for: its kernel is being examined.
    examined: Option<Arc<DivisionRecord>>,
    /// Launches in flight of kernels of which it is not known yet how to divide them.
    undecided: VecDeque<Arc<Native>>,
    /// What the first recorded command waits for: one of these.
    paced: Option<Arc<Native>>,
    /// Launches of which the times are to be noted.
    timings: Vec<Timing>,
}

/// A command that no driver has yet.
pub struct Recorded {
    command: Command,
    event: Ref<Event>,
}

fn plan(state: &mut State) -> &mut QueuePlan {
    state.kept.of()
}

impl QueuePlan {
    /// Whether the first recorded command waits for something.
    fn must_wait(&self) -> bool {
        !self.samples.is_empty() || self.examined.is_some() || self.paced.is_some()
    }

    /// Nothing that is recorded waits any more.
    fn wait_no_more(&mut self) {
        self.samples.clear();
        self.examined = None;
        self.paced = None;
    }
}

/// The properties of a queue have changed. At the end of an explicit region it gets the
/// place that suits what it did there, if it is mapped by that.
pub fn changed(queue: &Ref<Queue>, before: u64) {
    with(queue, |state| {
        queue.choose_variants(state);
        plan(state).is_mapped = false;
    });
    let was = queue.mapping_by(before);
    let ends = queue.mapping() == Mapping::Off && before & scheduling::EXPLICIT_REGION != 0;
    if !ends || was == Mapping::Off {
        return;
    }
    let _issuing = queue.context.issuing();
    let mut state = queue.state();
    let plan = plan(&mut state);
    records::note(queue, &mut plan.timings);
    if !plan.epoch.is_empty() {
        plan.before = std::mem::take(&mut plan.epoch);
        if was == Mapping::AutoFit {
            state.place = fit::place(queue, &mut state, &queue.places);
        }
    }
}

/// Whether a command must wait in its queue, since it is not known where it should go.
pub fn must_record(queue: &Ref<Queue>, state: &mut State, command: &Command) -> bool {
    if !plan(state).recorded.is_empty() {
        return true;
    }
    match command.launch() {
        Some(launch) if queue.fits() => {
            begin(queue, state, command, launch);
            plan(state).must_wait()
        }
        _ => false,
    }
}

/// Has a launch sampled and its kernel examined, if they must be.
fn begin(queue: &Ref<Queue>, state: &mut State, command: &Command, launch: &Launch) {
    records::note(queue, &mut plan(state).timings);
    let samples = sample::begin(queue, state, command, launch);
    for sample in &samples {
        wake(queue, sample.native());
    }
    let examined = divide::begin(queue, state, command, launch);
    if let Some(entry) = &examined {
        let queue = queue.remember();
        entry.when_known(move || {
            if let Some(queue) = queue.get() {
                advance(&queue);
            }
        });
    }
    let paced = pace(queue, state, command, launch);
    let plan = plan(state);
    (plan.samples, plan.examined, plan.paced) = (samples, examined, paced);
}

/// What a launch of which it is not known yet how to divide it waits for: drivers have as many
/// as keep a device busy. Otherwise a program that waits at its end only would have given all
/// its launches to a driver before one of them has reported its time.
fn pace(
    queue: &Ref<Queue>,
    state: &mut State,
    command: &Command,
    launch: &Launch,
) -> Option<Arc<Native>> {
    let device = &queue.context.places[launch.default_place(queue, state.place)].profile;
    let is_short = |seconds: f64| seconds < PACED;
    if launch.record().seconds(device).is_some_and(is_short)
        || !divide::is_undecided(queue, command, launch)
    {
        return None;
    }
    let undecided = &mut plan(state).undecided;
    while undecided.front().is_some_and(|first| !first.is_pending()) {
        undecided.pop_front();
    }
    let paced = match undecided.len() < AHEAD {
        true => return None,
        false => Arc::clone(&undecided[undecided.len() - AHEAD]),
    };
    // Whoever waits for a command of a queue that fails hears of it.
    let _ = state.flush();
    wake(queue, &paced);
    Some(paced)
}

/// Gives a command to the driver of the place where it should go.
pub fn place_and_issue(
    queue: &Ref<Queue>,
    state: &mut State,
    command: &Command,
    with_event: bool,
) -> Fallible<Option<Arc<Native>>> {
    if queue.context.is_single() {
        let lane = queue.lane(state, 0)?;
        return issue(queue, state, command, lane, with_event);
    }
    let launch = command.launch();
    let place = match launch {
        _ if command.fixed_place().is_some() => command.fixed_place().unwrap_or(state.place),
        Some(launch) => place_of_launch(queue, state, command, launch),
        None => place_of_transfer(queue, state, command),
    };
    let launch = launch.filter(|_| queue.fits());
    if let Some(launch) = launch
        && let Some(divided) = divide::issue(queue, state, command, launch)
    {
        return divided.map(Some);
    }
    let timed = launch.and_then(|launch| {
        let (record, device) = (launch.record(), &queue.context.places[place].profile);
        record.wants_time(device).then_some(record)
    });
    let lane = match timed {
        Some(_) => queue.timed_lane(state, place)?,
        None => queue.lane(state, place)?,
    };
    let undecided = launch.filter(|launch| divide::is_undecided(queue, command, launch));
    let with_event = with_event || timed.is_some() || undecided.is_some();
    let native = issue(queue, state, command, lane, with_event)?;
    if let (Some(record), Some(native)) = (timed, &native) {
        plan(state).timings.push(Timing {
            record: Arc::clone(record),
            place,
            native: Arc::clone(native),
        });
    }
    if let (Some(_), Some(native)) = (undecided, &native) {
        plan(state).undecided.push_back(Arc::clone(native));
    }
    Ok(native)
}

fn place_of_launch(
    queue: &Ref<Queue>,
    state: &mut State,
    command: &Command,
    launch: &Launch,
) -> usize {
    let able = || launch.able(queue);
    let mapping = queue.mapping();
    if mapping == Mapping::Off {
        state.place = launch.default_place(queue, state.place);
        return state.place;
    }
    let record = launch.record();
    let begins = plan(state).epoch.is_empty();
    let by_epoch = queue.is_scheduled(scheduling::KERNEL_EPOCH | scheduling::EXPLICIT_REGION);
    // What was decided is decided again ever more rarely, unless there is a new kernel.
    let new = plan(state).known.insert(record.number) && !by_epoch;
    let epochs = plan(state).epochs;
    let again = begins && (epochs < FIRST || epochs.is_power_of_two());
    plan(state).epoch.launch(record, command);
    match mapping {
        Mapping::RoundRobin if begins || !by_epoch => {
            state.place = queue.context.next_place(able).unwrap_or(state.place);
        }
        Mapping::Static if !plan(state).is_mapped => {
            state.place = fit::static_place(queue, state, &able().collect::<Vec<_>>());
            plan(state).is_mapped = true;
        }
        Mapping::AutoFit if (again || new) && able().nth(1).is_some() => {
            state.place = fit::place(queue, state, &able().collect::<Vec<_>>());
        }
        _ => {}
    }
    state.place = launch.default_place(queue, state.place);
    state.place
}

fn place_of_transfer(queue: &Queue, state: &mut State, command: &Command) -> usize {
    if queue.fits() {
        plan(state).epoch.transfer(command);
    }
    if !command.follows_data() {
        return state.place;
    }
    // Of the places that have all that is read, the queue's own is best.
    let has_all = |place: usize| {
        let mut reads = command.reads();
        reads.all(|used| used.mem.is_valid(&used.range, place))
    };
    let mut places = queue.places.iter().copied();
    match has_all(state.place) {
        true => state.place,
        false => places.find(|place| has_all(*place)).unwrap_or(state.place),
    }
}

/// Records a command, whose event this is, after those that wait already.
pub fn record(state: &mut State, command: Command, event: Ref<Event>) {
    plan(state).recorded.push_back(Recorded { command, event });
}

/// Recorded commands that drivers have now. They are to be dropped where no lock is held.
pub fn take_done(state: &mut State) -> Vec<Recorded> {
    std::mem::take(&mut plan(state).done)
}

/// Has the queue go on when a command ends, if nobody asks before.
fn wake(queue: &Ref<Queue>, native: &Arc<Native>) {
    let queue = queue.clone();
    process_end::waits_for(native);
    // Whoever waits for the queue asks as well.
    let go_on = move || while_alive(|| advance(&queue));
    let _ = native.when_ended(move || CALLBACKS.run(go_on));
}

/// Has the commands start that drivers have.
pub fn flush(queue: &Ref<Queue>) -> Fallible<()> {
    advance(queue);
    // Without the lock: a driver may call back meanwhile.
    let mut lanes = queue.lanes().into_iter();
    lanes.try_for_each(|lane| lane.flush())
}

/// Waits until an event has ended; returns its status.
pub fn wait(event: &Ref<Event>) -> Fallible<cl_int> {
    if let Some(queue) = &event.queue {
        settle(queue);
        flush(queue)?;
    }
    event.wait()
}

/// Gives recorded commands to drivers as far as it is known where they should go.
pub fn advance(queue: &Ref<Queue>) {
    if !queue.fits() {
        return;
    }
    with(queue, |state| advance_locked(queue, state));
}

/// Works on a queue's state while nobody else gives commands to drivers, and lets what is
/// done end after that.
fn with<T>(queue: &Ref<Queue>, work: impl FnOnce(&mut State) -> T) -> T {
    let (result, done) = {
        let _issuing = queue.context.issuing();
        let mut state = queue.state();
        let result = work(&mut state);
        (result, take_done(&mut state))
    };
    drop(done);
    result
}

/// As [`advance`], for a caller that keeps others from issuing.
pub fn advance_locked(queue: &Ref<Queue>, state: &mut State) {
    issue_recorded(queue, state, |queue, state| {
        if !has_ended(queue, state) {
            return false;
        }
        // One sample may tell that others are worth their time.
        begin_first(queue, state);
        !plan(state).must_wait()
    });
}

/// Gives recorded commands to drivers, the first first, for as long as `can` says so. The
/// program may have flushed the queue when no driver had them yet, so they are flushed now.
fn issue_recorded(
    queue: &Ref<Queue>,
    state: &mut State,
    can: impl Fn(&Ref<Queue>, &mut State) -> bool,
) {
    let before = plan(state).recorded.len();
    while !plan(state).recorded.is_empty() && can(queue, state) {
        issue_first(queue, state);
    }
    if plan(state).recorded.len() < before {
        // Whoever waits for a command of a queue that fails hears of it.
        let _ = state.flush();
    }
}

/// Whether all has ended that the first of the recorded commands waits for.
fn has_ended(queue: &Ref<Queue>, state: &mut State) -> bool {
    let plan = plan(state);
    let examined = plan.examined.as_ref();
    if examined.is_some_and(|entry| entry.is_examined()) {
        return false;
    }
    plan.examined = None;
    let paced = plan.paced.as_ref();
    if paced.is_some_and(|native| native.is_pending()) {
        return false;
    }
    plan.paced = None;
    sample::all_ended(queue, &mut plan.samples)
}

/// Has the first of the recorded commands sampled, if it must be.
fn begin_first(queue: &Ref<Queue>, state: &mut State) {
    let Some(first) = plan(state).recorded.pop_front() else {
        return;
    };
    if let Some(launch) = first.command.launch() {
        begin(queue, state, &first.command, launch);
    }
    plan(state).recorded.push_front(first);
}

/// Gives the first of the recorded commands to a driver.
fn issue_first(queue: &Ref<Queue>, state: &mut State) {
    let Some(first) = plan(state).recorded.pop_front() else {
        return;
    };
    let native = place_and_issue(queue, state, &first.command, true);
    match native.and_then(|native| native.ok_or(CL_OUT_OF_RESOURCES)) {
        Ok(native) => Event::issued(&first.event, native),
        Err(code) => {
            Event::end(&first.event, code.min(-1));
        }
    }
    plan(state).done.push(first);
}

/// Gives all recorded commands to drivers. Waits for samples, without a lock.
pub fn settle(queue: &Ref<Queue>) {
    if queue.places.len() < 2 {
        return;
    }
    loop {
        let waiting = with(queue, |state| {
            advance_locked(queue, state);
            let plan = plan(state);
            let is_done = plan.recorded.is_empty();
            let running = || sample::first_running(&plan.samples).or_else(|| plan.paced.clone());
            (!is_done).then(|| (running(), plan.examined.clone()))
        });
        match waiting {
            None => return,
            // A sample that fails is none, and a launch that fails has ended.
            Some((Some(native), _)) => drop(own_time::waits(|| native.wait())),
            Some((None, Some(entry))) => own_time::waits(|| entry.wait()),
            Some((None, None)) => {}
        }
    }
}

/// A command of `queue` waits for an event: its queue must have given it to a driver,
/// whatever is known. Nothing waits here, since the program may still have to set what a
/// sample waits for.
pub fn force_before(queue: &Ref<Queue>, event: &Ref<Event>) {
    let Some(other) = event.queue.as_ref().filter(|other| *other != queue) else {
        return;
    };
    if event.is_recorded() {
        with(other, |state| {
            issue_recorded(other, state, |_, state| {
                plan(state).wait_no_more();
                event.is_recorded()
            });
        });
    }
}

/// Gives all recorded commands to drivers, whatever is known. Waits for nothing.
pub fn force(queue: &Ref<Queue>) {
    if !queue.fits() {
        return;
    }
    with(queue, |state| force_locked(queue, state));
}

/// As [`force`], for a caller that keeps others from issuing.
pub fn force_locked(queue: &Ref<Queue>, state: &mut State) {
    issue_recorded(queue, state, |_, state| {
        plan(state).wait_no_more();
        true
    });
}

/// The program has waited for the queue.
pub fn synchronised(queue: &Ref<Queue>) {
    report::synchronised(queue);
    if queue.mapping() == Mapping::Off {
        return;
    }
    let mut state = queue.state();
    divide::note(queue, &mut state);
    let plan = plan(&mut state);
    records::note(queue, &mut plan.timings);
    let is_region = queue.is_scheduled(scheduling::EXPLICIT_REGION);
    if !plan.epoch.is_empty() && plan.recorded.is_empty() && !is_region {
        plan.before = std::mem::take(&mut plan.epoch);
        plan.epochs += 1;
    }
}
