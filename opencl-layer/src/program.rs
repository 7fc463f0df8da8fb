//! Programs. One of ours has a program of each driver, built when it is first needed.

use std::ffi::{CStr, CString};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use libc::c_void;
use opencl_sys::*;
use pdawl_api::profile::kernels::Program as Identity;

use crate::context::Context;
use crate::device::Device;
use crate::domain::Own;
use crate::drivers;
use crate::form::ProgramKey;
use crate::handle::{Ref, kind};
use crate::lock::{Guard, Mutex, PROGRAM};
use crate::status::{Fallible, asking};

pub mod calls;
pub mod compile;
mod text;

use text::Facts;
pub use text::{Accesses, SeparateGroups};

type Built = unsafe extern "C" fn(cl_program, *mut c_void);

/// A program.
pub struct Program {
    pub context: Ref<Context>,
    pub origin: Origin,
    /// The devices for which it was made.
    pub devices: Vec<Ref<Device>>,
    state: Mutex<State, PROGRAM>,
}

/// What a program was made of.
pub enum Origin {
    Source(CString),
    /// The driver's own program, which cannot be built otherwise.
    Opaque,
}

#[derive(Default)]
struct State {
    options: CString,
    /// The text with the files that it includes, as they were when it was built; `None` for
    /// a text that includes none.
    included: Option<Arc<str>>,
    /// What the text tells; read when it is first wanted.
    facts: Option<Arc<Facts>>,
    /// The drivers' programs, by domain and variant.
    natives: Vec<Native>,
    /// What profiles know the program by.
    identity: Option<Identity>,
    /// How many kernels exist; such a program cannot be built again.
    kernels: usize,
    /// The seconds of its last build.
    build_seconds: f64,
}

impl State {
    /// It is built or compiled with other options.
    fn begin(&mut self, options: &CStr) {
        self.options = options.to_owned();
        (self.included, self.identity, self.facts) = (None, None, None);
    }

    /// The driver's program of a domain, as it was first made.
    fn first(&self, domain: usize) -> Fallible<&Native> {
        let mut natives = self.natives.iter();
        let native = natives.find(|native| native.key == ProgramKey::first(domain));
        native.ok_or(CL_INVALID_PROGRAM_EXECUTABLE)
    }

    /// The devices of a domain for which the program is built.
    fn built_for(&self, domain: usize) -> Vec<cl_device_id> {
        self.first(domain)
            .map_or_else(|_| Vec::new(), |native| native.built.clone())
    }
}

struct Native {
    key: ProgramKey,
    program: Own,
    /// The driver's devices that it is for.
    ids: Vec<cl_device_id>,
    /// Those for which it is built.
    built: Vec<cl_device_id>,
    /// Those of its last build or compilation.
    last: Vec<cl_device_id>,
}

impl Native {
    /// A program that a driver has made.
    fn new(key: ProgramKey, program: Own, ids: Vec<cl_device_id>) -> Self {
        Self {
            key,
            program,
            built: Vec::new(),
            last: ids.clone(),
            ids,
        }
    }

    /// Notes that it was built for some of its devices. PoCL then has no program for others.
    fn note(&mut self, context: &Context, ids: &[cl_device_id], result: Fallible<()>) {
        let is_of_last = || {
            let sizes = self.words(context, CL_PROGRAM_BINARY_SIZES);
            sizes.is_ok_and(|sizes| sizes.len() < self.ids.len())
        };
        let forgets = ids.len() < self.ids.len() && is_of_last();
        (self.built).retain(|id| !forgets && !ids.contains(id));
        if result.is_ok() {
            self.built.extend(ids);
        }
        self.last = ids.to_vec();
    }

    /// What its driver says of it in words, such as the bytes of its binaries.
    fn words(&self, context: &Context, what: cl_program_info) -> Fallible<Vec<usize>> {
        let (table, program) = (
            context.domains[self.key.domain].table,
            self.program.handle(),
        );
        drivers::words(asking!(table, clGetProgramInfo(program, what)))
    }

    fn executable(&self) -> Fallible<cl_program> {
        match self.built.is_empty() {
            true => Err(CL_INVALID_PROGRAM_EXECUTABLE),
            false => Ok(self.program.handle()),
        }
    }
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Native {}

kind!(Program, CL_INVALID_PROGRAM);

impl Program {
    fn new(context: Ref<Context>, devices: Vec<Ref<Device>>, origin: Origin) -> Self {
        Self {
            context,
            origin,
            devices,
            state: Mutex::default(),
        }
    }

    /// A program of source text.
    fn of_source(context: Ref<Context>, text: CString) -> Fallible<Self> {
        let devices = context.devices.clone();
        let program = Self::new(context, devices, Origin::Source(text));
        for domain in 0..program.context.domains.len() {
            let key = ProgramKey::first(domain);
            let native = Native::new(key, program.create(key)?, program.ids(domain));
            program.state().natives.push(native);
        }
        Ok(program)
    }

    /// A program that drivers have made already, one a domain, for some devices; perhaps built.
    pub fn of_natives(
        context: Ref<Context>,
        devices: Vec<Ref<Device>>,
        natives: Vec<(usize, Own, Vec<cl_device_id>)>,
        is_built: bool,
    ) -> Self {
        let natives = natives.into_iter().map(|(domain, program, ids)| {
            let mut native = Native::new(ProgramKey::first(domain), program, ids);
            if is_built {
                native.built.clone_from(&native.ids);
            }
            native
        });
        let program = Self::new(context, devices, Origin::Opaque);
        program.state().natives.extend(natives);
        program
    }

    fn state(&self) -> Guard<'_, State, PROGRAM> {
        self.state.lock()
    }

    /// The driver's program with the source text in a form.
    fn create(&self, key: ProgramKey) -> Fallible<Own> {
        let Origin::Source(text) = &self.origin else {
            return Err(CL_INVALID_PROGRAM_EXECUTABLE);
        };
        let text = [key.form.preamble().as_bytes(), text.as_bytes()].concat();
        self.context.domains[key.domain].program(&text)
    }

    /// The driver's program of a domain, as it was first made.
    pub fn native(&self, domain: usize) -> Fallible<cl_program> {
        let state = self.state();
        state.first(domain).map(|native| native.program.handle())
    }

    /// The text and the options, if there is a text.
    pub fn source(&self) -> Option<(CString, CString)> {
        match &self.origin {
            Origin::Source(text) => Some((text.clone(), self.state().options.clone())),
            Origin::Opaque => None,
        }
    }

    /// Whether a driver's program was built.
    pub fn has(&self, key: ProgramKey) -> bool {
        let state = self.state();
        let mut natives = state.natives.iter();
        natives.any(|native| native.key == key)
    }

    /// Builds a driver's program while others may use the program.
    pub fn prepare(&self, key: ProgramKey) -> Fallible<()> {
        if self.has(key) {
            return self.executable(key).map(drop);
        }
        let (options, ids) = {
            let state = self.state();
            (state.options.clone(), state.built_for(key.domain))
        };
        let native = self.built(key, &options, ids)?;
        let result = native.executable().map(drop);
        let mut state = self.state();
        let known = state.natives.iter().any(|native| native.key == key);
        if state.options == options && !known {
            state.natives.push(native);
        }
        result
    }

    fn built(&self, key: ProgramKey, options: &CStr, ids: Vec<cl_device_id>) -> Fallible<Native> {
        let program = self.create(key)?;
        let mut options = options.to_bytes().to_vec();
        options.extend(format!(" -DPDAWL_QUEUE={}", key.variant).bytes());
        let options = CString::new(options).map_err(|_| CL_INVALID_BUILD_OPTIONS)?;
        let built = self.context.domains[key.domain].build(program.handle(), &ids, &options);
        let mut native = Native::new(key, program, ids);
        if built.is_ok() {
            native.built.clone_from(&native.ids);
        }
        Ok(native)
    }

    /// The driver's built program.
    pub fn executable(&self, mut key: ProgramKey) -> Fallible<cl_program> {
        if let Origin::Opaque = self.origin {
            key.variant = 0;
        }
        let mut state = self.state();
        let mut natives = state.natives.iter();
        if let Some(native) = natives.find(|native| native.key == key) {
            return native.executable();
        }
        let ids = state.built_for(key.domain);
        let native = self.built(key, &state.options, ids)?;
        let executable = native.executable();
        state.natives.push(native);
        executable
    }

    /// Whether kernels can run at a place.
    pub fn is_built_for(&self, place: usize) -> bool {
        let (domain, id) = (
            self.context.places[place].domain,
            self.context.places[place].real.id,
        );
        let state = self.state();
        let mut natives = state.natives.iter();
        natives.any(|native| native.key.domain == domain && native.built.contains(&id))
    }

    /// The driver's devices of a domain that this program is for.
    fn ids(&self, domain: usize) -> Vec<cl_device_id> {
        ids(&self.context, domain, &self.devices)
    }

    /// The program's text and options as profiles know them.
    pub fn identity(&self) -> Identity {
        let mut state = self.state();
        if let Some(identity) = state.identity {
            return identity;
        }
        let options = state.options.to_string_lossy().into_owned();
        let text = match (&state.included, &self.origin) {
            (Some(text), _) => text.as_bytes(),
            (None, Origin::Source(text)) => text.as_bytes(),
            (None, Origin::Opaque) => &[],
        };
        let identity = Identity::new(text, &options);
        state.identity = Some(identity);
        identity
    }

    /// The seconds of its last build. Another form of it takes about as long: where a driver
    /// keeps what it has built, both were built in an earlier run.
    pub fn build_seconds(&self) -> f64 {
        self.state().build_seconds
    }

    /// Notes that a kernel was made, or that one is gone.
    pub fn count_kernels(&self, change: isize) {
        let mut state = self.state();
        state.kernels = state.kernels.saturating_add_signed(change);
    }

    /// Builds for some devices, with every driver at once.
    fn build(&self, devices: &[Ref<Device>], options: &CStr) -> Fallible<()> {
        let mut state = self.state();
        if state.kernels > 0 {
            return Err(CL_INVALID_OPERATION);
        }
        state.begin(options);
        if let Origin::Source(text) = &self.origin {
            state.included = text::included(&text.to_string_lossy(), &options.to_string_lossy());
        }
        // Other variants were built with other options.
        (state.natives).retain(|native| native.key == ProgramKey::first(native.key.domain));
        let work = |job: &Job| {
            let domain = &self.context.domains[job.native.key.domain];
            domain.build(job.native.program.handle(), &job.ids, options)
        };
        let begin = Instant::now();
        let results = self.run(&state.natives, devices, work);
        state.build_seconds = begin.elapsed().as_secs_f64();
        for (index, ids, result) in &results {
            state.natives[*index].note(&self.context, ids, *result);
        }
        self.verdict(&state.natives, devices, &results)
    }

    /// Does work with every driver's program at once, for its devices of a list. The
    /// results have the indices of the programs, and these devices.
    fn run(
        &self,
        natives: &[Native],
        devices: &[Ref<Device>],
        work: impl Fn(&Job) -> Fallible<()> + Sync,
    ) -> Vec<Done> {
        let mut jobs = Vec::new();
        for (index, native) in natives.iter().enumerate() {
            let ids = native.ids.iter().copied();
            let ids: Vec<_> = ids.filter(|id| stands_for(devices, *id)).collect();
            if !ids.is_empty() {
                jobs.push(Job { index, native, ids });
            }
        }
        let work = &work;
        match &jobs[..] {
            [job] => vec![(job.index, job.ids.clone(), work(job))],
            jobs => thread::scope(|scope| {
                let run = |job| (scope.spawn(move || work(job)), job);
                let running: Vec<_> = jobs.iter().map(run).collect();
                let done = running.into_iter().map(|(thread, job): (_, &Job)| {
                    let result = thread.join().unwrap_or(Err(CL_OUT_OF_HOST_MEMORY));
                    (job.index, job.ids.clone(), result)
                });
                done.collect()
            }),
        }
    }

    /// A device that stands for several needs one driver that did it. Each device of its
    /// own needs its driver.
    fn verdict(
        &self,
        natives: &[Native],
        devices: &[Ref<Device>],
        results: &[Done],
    ) -> Fallible<()> {
        for device in devices {
            let has = |id: cl_device_id| {
                let domain = self.context.domain_of(id);
                let result = results
                    .iter()
                    .find(|(index, ..)| Some(natives[*index].key.domain) == domain);
                result.map_or(Err(CL_INVALID_PROGRAM), |(.., result)| *result)
            };
            let results = device.members.iter().map(|member| has(member.id));
            let results: Vec<Fallible<()>> = results.collect();
            if results.iter().all(Result::is_err) {
                return results[0];
            }
        }
        Ok(())
    }
}

/// The driver's devices of a domain that are members of some devices.
fn ids(context: &Context, domain: usize, devices: &[Ref<Device>]) -> Vec<cl_device_id> {
    let places = context.places.iter().filter(|place| place.domain == domain);
    let ids = places.map(|place| place.real.id);
    ids.filter(|id| stands_for(devices, *id)).collect()
}

/// Whether a driver's device is a member of some devices.
fn stands_for(devices: &[Ref<Device>], id: cl_device_id) -> bool {
    let mut members = devices.iter().flat_map(|device| &device.members);
    members.any(|member| member.id == id)
}

/// A program's index, the devices for which it was built or compiled, and the result.
type Done = (usize, Vec<cl_device_id>, Fallible<()>);

struct Job<'a> {
    index: usize,
    native: &'a Native,
    ids: Vec<cl_device_id>,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Job<'_> {}
// SAFETY: as above.
unsafe impl Sync for Job<'_> {}
// SAFETY: as above.
unsafe impl Sync for Native {}
