//! Has a kernel examined: copies of its buffers are made in order, at one place, before the
//! launch goes on, and a thread works on them.

use std::ptr;
use std::sync::Arc;

use opencl_sys::{CL_INVALID_PROGRAM_EXECUTABLE, CL_OUT_OF_RESOURCES};
use pdawl_api::graph::spec::source::Divisible;

use super::bytes::Numbers;
use super::examine::{Compared, Given, Question, Source, Trial, refused};
use super::prepare::Programs;
use crate::argument::Argument;
use crate::command::Command;
use crate::handle::Ref;
use crate::kernel::Set;
use crate::launch::Launch;
use crate::native::Native;
use crate::order;
use crate::process_end::{EXAMINATIONS, while_alive};
use crate::queue::{Queue, State};
use crate::records::DivisionRecord;
use crate::settings::settings;
use crate::shape::{Cut, Shape, local_size};
use crate::status::Fallible;

/// Begins to examine a launch's kernel at a place.
///
/// # Errors
/// When a driver refuses the copies.
pub fn ask(
    queue: &Ref<Queue>,
    state: &mut State,
    command: &Command,
    launch: &Launch,
    (place, entry): (usize, &Arc<DivisionRecord>),
) -> Fallible<()> {
    let context = &queue.context;
    let lane = queue.lane(state, place)?;
    let mut before = order::listed(command, lane.domain)?;
    before.extend(order::before_copies(queue, state, command, &lane)?);
    let list = order::brought(queue, state, command, &lane, before)?;
    let source = launch.kernel.program.source();
    let (text, options) = source.ok_or(CL_INVALID_PROGRAM_EXECUTABLE)?;
    let source = Source {
        text,
        options,
        kernel: launch.kernel.name.clone(),
    };
    let mut trial = Trial::new(context.site(place), source, Vec::new())?;
    for (index, set) in launch.arguments.iter().enumerate() {
        let given = match &set.argument {
            Argument::Mem(mem) => {
                let memory = Arc::new(trial.queue.memory(mem.size)?);
                let (original, copy) = (mem.at(place)?, memory.mem());
                let call = lane.call(&list, ptr::null_mut());
                call.copy((original, 0), (copy, 0), mem.size)?;
                let written = launch.writes().any(|(other, _)| other == index);
                Given::Buffer {
                    copy: memory,
                    written,
                }
            }
            Argument::Local(bytes) => Given::Local(*bytes),
            Argument::Bytes(bytes) => Given::Bytes(bytes.to_vec()),
            Argument::Sampler(_) => return Err(CL_OUT_OF_RESOURCES),
        };
        trial.arguments.push(given);
    }
    let programs = Programs::of(queue, state, launch, launch.able(queue))?;
    let copied: Arc<Native> = lane.marker()?;
    // It waits for what other queues of the drivers have got.
    state.flush()?;
    state.last = Some(lane);
    let question = question(launch, trial, compared(queue, place));
    let entry = Arc::clone(entry);
    // The thread must not wait for what the program may still have to set.
    let taken = copied.when_ended(move || {
        EXAMINATIONS.run(move || {
            let verdict = while_alive(|| {
                let verdict = question.answer();
                // For the next run, even if this one ends now.
                if let Ok(verdict) = &verdict {
                    entry.keep(verdict);
                }
                verdict
            });
            match verdict {
                Ok(verdict) => {
                    entry.tell(while_alive(|| programs.build(&question.cuts, verdict)));
                }
                Err(code) => {
                    let why = format!("a driver refused its examination with code {code}");
                    entry.tell(refused(&why));
                }
            }
            while_alive(|| drop(question));
        });
    });
    match taken {
        true => Ok(()),
        false => Err(CL_OUT_OF_RESOURCES),
    }
}

/// The devices whose results must be compared with those of a place.
fn compared(queue: &Queue, place: usize) -> Option<Compared> {
    if !settings().exact {
        return None;
    }
    let context = &queue.context;
    let others = (0..context.places.len()).filter(|other| *other != place);
    let peer = |other: usize| (context.places[other].profile.clone(), context.site(other));
    Some(Compared {
        own: context.places[place].profile.clone(),
        others: others.map(peer).collect(),
    })
}

fn question(launch: &Launch, trial: Trial, compared: Option<Compared>) -> Question {
    let iterates = launch.iterates();
    let (numbers, merges) = match launch.kernel.separate_groups() {
        Ok(division) => {
            let numbers = replaceable(launch, division);
            let merges = merging(launch, division, (iterates, &numbers));
            (numbers, merges)
        }
        Err(_) => (vec![None; launch.arguments.len()], None),
    };
    let whole = Shape {
        local: Some(local_size(&launch.shape)),
        ..launch.shape.clone()
    };
    Question {
        trial,
        cuts: Cut::all(&whole),
        whole,
        merges,
        numbers,
        needs_others: iterates,
        compared,
    }
}

/// By argument: the numbers with which a trial may replace what a kernel reads.
fn replaceable(launch: &Launch, division: &Divisible) -> Vec<Option<Numbers>> {
    let numbers = |(index, set): (usize, &Set)| {
        let is_read = match &set.argument {
            Argument::Mem(_) => launch.kernel.accesses.reads[index],
            Argument::Bytes(_) => true,
            _ => false,
        };
        let is_free = is_read && !division.fixed.contains(&index);
        Numbers::of(&division.types[index]).filter(|_| is_free)
    };
    launch.arguments.iter().enumerate().map(numbers).collect()
}

/// Why results must be merged. A kernel that reads what it writes may write what is there
/// already, whichever slice it is in. Only a trial on other numbers shows such stores, so
/// all that it reads must be replaceable.
fn merging(
    launch: &Launch,
    division: &Divisible,
    (iterates, numbers): (bool, &[Option<Numbers>]),
) -> Option<String> {
    if division.by_chance {
        let why = "which bytes it writes depends on the order of its work-items";
        return Some(why.to_owned());
    }
    if division.is_by_data() {
        let deciding: Vec<String> = division.deciding.iter().map(usize::to_string).collect();
        return Some(match deciding.is_empty() {
            true => "which bytes it writes depends on data".to_owned(),
            false => format!(
                "which bytes it writes depends on data of argument {}",
                deciding.join(", ")
            ),
        });
    }
    let mut arguments = launch.arguments.iter().enumerate();
    arguments.find_map(|(index, set)| {
        let what = match &set.argument {
            Argument::Mem(_) if launch.kernel.accesses.reads[index] => "data",
            // What is fixed is part of the key.
            Argument::Bytes(_) if !division.fixed.contains(&index) => "value",
            _ => return None,
        };
        (iterates && numbers[index].is_none()).then(|| {
            format!(
                "it reads what it writes, and a trial cannot replace the {what} of argument {index}"
            )
        })
    })
}
