//! Kernel launches.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use opencl_sys::*;
use pdawl_api::profile::kernels::KernelKey;

use crate::argument::Argument;
use crate::call::Call;
use crate::form::Form;
use crate::handle::Ref;
use crate::kernel::{Kernel, Set};
use crate::mem::Mem;
use crate::own_queue::Lane;
use crate::queue::Queue;
use crate::records::{self, DivisionRecord, KernelRecord, numbers};
use crate::shape::{Shape, ShapeOf};
use crate::status::Fallible;

pub mod calls;

/// A launch, with the arguments of its time.
#[derive(Clone)]
pub struct Launch {
    pub kernel: Ref<Kernel>,
    pub arguments: Vec<Set>,
    pub shape: Shape,
    /// Its shapes at some places, as the program had set them.
    pub shapes: Vec<(usize, ShapeOf)>,
    pub record: OnceLock<Arc<KernelRecord>>,
    pub division: OnceLock<Arc<DivisionRecord>>,
    /// Why it is not divided, beside its kernel's text.
    pub refusal: OnceLock<Option<Cow<'static, str>>>,
}

impl Launch {
    /// What is known of launches like it.
    pub fn record(&self) -> &Arc<KernelRecord> {
        self.record.get_or_init(|| {
            let numbers = numbers(&self.shape, self.sizes());
            (self.kernel.records).of(numbers, |_, _| records::of(self.key()))
        })
    }

    /// The bytes of each argument.
    pub fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.arguments.iter().map(|set| match &set.argument {
            Argument::Mem(mem) => mem.size,
            Argument::Local(bytes) => *bytes,
            Argument::Bytes(bytes) => bytes.len(),
            Argument::Sampler(_) => 0,
        })
    }

    /// What its time depends on.
    pub fn key(&self) -> KernelKey {
        let bytes: Vec<u64> = self.sizes().map(|bytes| bytes as u64).collect();
        let name = self.kernel.name.to_string_lossy();
        let program = self.kernel.program.identity();
        KernelKey::new(
            program,
            &name,
            &self.shape.global,
            self.shape.local.as_deref(),
            &bytes,
        )
    }

    /// The arguments that are memory objects.
    pub fn mems(&self) -> impl Iterator<Item = (usize, &Ref<Mem>)> + Clone {
        let arguments = self.arguments.iter().enumerate();
        arguments.filter_map(|(index, set)| match &set.argument {
            Argument::Mem(mem) => Some((index, mem)),
            _ => None,
        })
    }

    /// Whether it may write a memory object, which is an argument.
    pub fn may_write(&self, (index, mem): (usize, &Ref<Mem>)) -> bool {
        mem.flags & CL_MEM_READ_ONLY == 0 && self.kernel.accesses.writes[index]
    }

    /// The arguments that are memory objects which it may write.
    pub fn writes(&self) -> impl Iterator<Item = (usize, &Ref<Mem>)> {
        self.mems().filter(|argument| self.may_write(*argument))
    }

    /// Whether it reads what it may write.
    pub fn iterates(&self) -> bool {
        let reads = &self.kernel.accesses.reads;
        self.writes().any(|(index, _)| reads[index])
    }

    /// Whether a place's driver has built its program.
    pub fn can_run_at(&self, place: usize) -> bool {
        self.kernel.is_built_for(place)
    }

    /// The places of a queue that can run it.
    pub fn able<'a>(&'a self, queue: &'a Queue) -> impl Iterator<Item = usize> + 'a {
        let places = queue.places.iter().copied();
        places.filter(|place| self.can_run_at(*place))
    }

    /// The place of a queue's kernels, if it can run this one, else one that can.
    pub fn default_place(&self, queue: &Queue, place: usize) -> usize {
        match self.can_run_at(place) {
            true => place,
            false => self.able(queue).next().unwrap_or(place),
        }
    }

    /// About how often such a launch was in this process and before, at the present speed of
    /// a queue's place.
    pub fn launches_before(&self, queue: &Queue, place: usize) -> f64 {
        let device = &queue.context.places[self.default_place(queue, place)].profile;
        let seconds = self.record().seconds(device);
        seconds.map_or(0.0, |seconds| self.record().spent() / seconds)
    }

    /// The shape that the program has set for a place, if it has.
    pub fn shape_of(&self, place: usize) -> Option<&ShapeOf> {
        let mut shapes = self.shapes.iter();
        let set = shapes.find(|(other, _)| *other == place);
        set.map(|(_, shape)| shape)
    }

    /// Its shape at a place.
    pub fn shape_at(&self, place: usize) -> Fallible<Cow<'_, Shape>> {
        match self.shape_of(place) {
            Some(set) => set.of(&self.shape).map(Cow::Owned),
            None => Ok(Cow::Borrowed(&self.shape)),
        }
    }

    /// Launches a range of a form of the kernel, by a call of the lane's queue.
    pub fn range(
        &self,
        lane: &Lane,
        form: Form,
        shape: &Shape,
        replaced: &[(usize, cl_mem)],
        call: &Call,
    ) -> Fallible<()> {
        (self.kernel).with(lane, form, &self.arguments, replaced, |kernel| {
            call.launch(kernel, shape)
        })
    }
}
