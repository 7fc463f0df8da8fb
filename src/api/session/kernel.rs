//! OpenCL kernels of the user's, divided among the devices.

mod arguments;

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

use arguments::{Given, Lent, Targets, base};
use bytemuck::Pod;

use super::divided::{Divided, Division, Work};
use super::{Error, Run, Session};
use crate::engine::first_launch::Words;
use crate::graph::spec::scalar::ElementType;
use crate::graph::spec::source::{Access, KernelInfo, Parameter, Source};
use crate::graph::spec::{self, Argument, Direction, Sizes, check_required, check_sizes};
use crate::workload::Supersteps;
use crate::workload::kernel::{Sink, UserKernel};

/// A kernel of a source in OpenCL C, and what earlier launches have found of how it divides.
#[derive(Debug)]
pub struct Kernel {
    text: String,
    info: KernelInfo,
    /// Whether the data of a launch do not decide how it divides.
    divides_alike: bool,
    /// Whether the data of a launch decide which memory it touches.
    touches_by_data: bool,
    /// How launches divide.
    known: BTreeMap<LaunchKey, Division>,
    /// The launches that touch nothing but their buffers, whatever these have.
    examined: BTreeSet<LaunchKey>,
}

/// A launch: its devices, its sizes, the bytes of its buffers, and its values.
type LaunchKey = (Vec<String>, Vec<u64>, Option<Vec<u64>>, Vec<Vec<u8>>);

impl Kernel {
    /// Its name in the source.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// Its parameters, in their order, with what it does with the memory behind pointers.
    pub fn parameters(&self) -> impl Iterator<Item = (&Parameter, Access)> {
        let accesses = self.info.accesses.iter().copied();
        self.info.parameters.iter().zip(accesses)
    }

    /// Bytes of an element of a parameter's type, or of what it points to; `None` for a
    /// structure of the user's.
    pub fn element_bytes(&self, parameter: &Parameter) -> Option<u64> {
        let element = parameter.type_name.parse::<ElementType>().ok();
        element.map(ElementType::bytes)
    }
}

impl Session {
    /// The kernel of a source in OpenCL C: its only one.
    ///
    /// # Errors
    /// When the source cannot be read, and when it has none or several kernels.
    pub fn kernel(&self, source: &str) -> Result<Kernel, Error> {
        let kernels = kernels(source)?;
        match <[KernelInfo; 1]>::try_from(kernels) {
            Ok([info]) => Ok(Kernel::of(source, info)),
            Err(kernels) => {
                let names: Vec<&str> = kernels.iter().map(|info| info.name.as_str()).collect();
                Err(Error::Arguments(match names[..] {
                    [] => "the source has no function that is a `__kernel`".to_owned(),
                    _ => format!(
                        "the source has the kernels {}; `kernel_named` takes one by its name",
                        names.join(", ")
                    ),
                }))
            }
        }
    }

    /// The kernel of this name of a source in OpenCL C.
    ///
    /// # Errors
    /// When the source cannot be read, and when it has no such kernel.
    pub fn kernel_named(&self, source: &str, name: &str) -> Result<Kernel, Error> {
        let kernels = kernels(source)?;
        let names: Vec<String> = kernels.iter().map(|info| info.name.clone()).collect();
        let found = kernels.into_iter().find(|info| info.name == name);
        found.map(|info| Kernel::of(source, info)).ok_or_else(|| {
            Error::Arguments(format!(
                "the source has no kernel `{name}`; it has {}",
                names.join(", ")
            ))
        })
    }

    /// A launch of a kernel over so many work-items, in one to three dimensions. Its arguments
    /// follow in the order of the kernel's parameters.
    ///
    /// Before a kernel runs on a device that computes in this process, as PoCL's do, it is
    /// launched once in a second process of this program, between guard zones, and is refused
    /// if it leaves its buffers there. This takes a tenth of a second and more, once for each
    /// shape, lengths of buffers and values; where the data decide which memory the kernel
    /// touches, in each call. docs/specifications.md says what it cannot see.
    ///
    /// ```no_run
    /// use pdawl::session::Session;
    ///
    /// # fn main() -> Result<(), pdawl::session::Error> {
    /// let mut session = Session::open()?;
    /// let mut saxpy = session.kernel(
    ///     "__kernel void saxpy(__global const float *x, __global float *y, float a) {
    ///          size_t i = get_global_id(0);
    ///          y[i] += a * x[i];
    ///      }",
    /// )?;
    /// let (x, mut y) = (vec![1.0f32; 1 << 20], vec![2.0f32; 1 << 20]);
    /// session.launch(&mut saxpy, &[1 << 20]).reads(&x).updates(&mut y).value(3.0f32).run()?;
    /// assert!(y.iter().all(|y| *y == 5.0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn launch<'a>(&'a mut self, kernel: &'a mut Kernel, items: &[u64]) -> KernelRun<'a> {
        KernelRun {
            gpu_memory: self.gpu_memory,
            session: self,
            kernel,
            items: items.to_vec(),
            groups: None,
            arguments: Vec::new(),
            steps: 1,
            traced: false,
            unchecked: false,
        }
    }

    /// As [`Self::launch`], for a kernel that need not be examined first. Sizes and types are
    /// checked all the same.
    ///
    /// # Safety
    /// With the arguments and the sizes that it will have, no work-item reads or writes outside
    /// of the kernel's buffers.
    pub unsafe fn launch_unchecked<'a>(
        &'a mut self,
        kernel: &'a mut Kernel,
        items: &[u64],
    ) -> KernelRun<'a> {
        KernelRun {
            unchecked: true,
            ..self.launch(kernel, items)
        }
    }
}

fn kernels(source: &str) -> Result<Vec<KernelInfo>, Error> {
    let read = Source::new(source, &BTreeMap::new()).kernels();
    read.map_err(|unclosed| Error::Arguments(format!("the source cannot be read: {unclosed}")))
}

impl Kernel {
    fn of(source: &str, info: KernelInfo) -> Self {
        let read = Source::new(source, &BTreeMap::new());
        let division = read.divisible(&info.name);
        Self {
            text: source.to_owned(),
            divides_alike: division
                .as_ref()
                .is_ok_and(|division| !division.is_by_data()),
            touches_by_data: division.map_or(true, |division| division.touches_by_data),
            info,
            known: BTreeMap::new(),
            examined: BTreeSet::new(),
        }
    }
}

/// A launch that is about to run.
pub struct KernelRun<'a> {
    session: &'a mut Session,
    kernel: &'a mut Kernel,
    items: Vec<u64>,
    groups: Option<Vec<u64>>,
    arguments: Vec<Given<'a>>,
    steps: u32,
    gpu_memory: Option<u64>,
    traced: bool,
    /// Whether the caller answers for what the kernel touches.
    unchecked: bool,
}

impl<'a> KernelRun<'a> {
    fn buffer<T: 'static>(mut self, direction: Direction, bytes: NonNull<[u8]>) -> Self {
        self.arguments.push(Given::Buffer {
            direction,
            bytes,
            base: base::<T>(),
            _borrowed: PhantomData,
        });
        self
    }

    /// The next argument is a buffer that the kernel reads. Its elements are those that the
    /// kernel's pointer has, or the numbers of its vectors; `u8` and types of the user's may be
    /// any.
    pub fn reads<T: Pod>(self, elements: &'a [T]) -> Self {
        let bytes = NonNull::from(bytemuck::cast_slice::<T, u8>(elements));
        self.buffer::<T>(Direction::Input, bytes)
    }

    /// The next argument is a buffer that the kernel writes. What it does not write keeps its
    /// value.
    pub fn writes<T: Pod>(self, elements: &'a mut [T]) -> Self {
        let bytes = NonNull::from(bytemuck::cast_slice_mut::<T, u8>(elements));
        self.buffer::<T>(Direction::Output, bytes)
    }

    /// The next argument is a buffer that the kernel reads and writes.
    pub fn updates<T: Pod>(self, elements: &'a mut [T]) -> Self {
        let bytes = NonNull::from(bytemuck::cast_slice_mut::<T, u8>(elements));
        self.buffer::<T>(Direction::Both, bytes)
    }

    /// The next argument is a value.
    pub fn value<T: Pod>(mut self, value: T) -> Self {
        let bytes = bytemuck::bytes_of(&value).to_vec();
        self.arguments.push(Given::Value(bytes, base::<T>()));
        self
    }

    /// The next argument is a value of these bytes.
    pub fn value_of_bytes(mut self, bytes: &[u8]) -> Self {
        self.arguments.push(Given::Value(bytes.to_vec(), None));
        self
    }

    /// Work-items of a work-group; otherwise they are chosen.
    pub fn groups(self, items: &[u64]) -> Self {
        Self {
            groups: Some(items.to_vec()),
            ..self
        }
    }

    /// So many launches one after the other, each with what the one before it has written.
    pub fn steps(self, steps: u32) -> Self {
        Self { steps, ..self }
    }

    /// At most so many bytes of each GPU's memory.
    pub fn gpu_memory(self, bytes: u64) -> Self {
        Self {
            gpu_memory: Some(bytes),
            ..self
        }
    }

    /// Keeps the times of every command.
    pub fn traced(self) -> Self {
        Self {
            traced: true,
            ..self
        }
    }

    /// Runs it. The first launch of each size finds out by trials how the kernel divides; one
    /// that cannot be divided runs on one device, and the report says why.
    ///
    /// # Errors
    /// Arguments and sizes that the kernel does not take, a kernel that does not compile or
    /// leaves its buffers, or of which that was not found out, too little memory, and the loss
    /// of all devices.
    pub fn run(self) -> Result<Run, Error> {
        let session = self.session;
        session.with_kernel_devices(|session| KernelRun { session, ..self }.on_devices())
    }

    fn on_devices(self) -> Result<Run, Error> {
        if self.steps == 0 {
            return Err(Error::Arguments(
                "a kernel runs at least once, and 0 steps are asked for".into(),
            ));
        }
        let (user, lent, written) = self.user()?;
        let Self {
            session, kernel, ..
        } = self;
        let devices = session.devices().iter().map(|device| device.name.clone());
        let key = (devices.collect(), self.items, self.groups, key(&user));
        if !self.unchecked && !kernel.examined.contains(&key) {
            // Where data decide, they may be others in each step.
            let launches = match kernel.touches_by_data {
                true => self.steps,
                false => 1,
            };
            let graph = user.graph(launches)?;
            let words = vec![Words::of(user.kernel(), user.info()); launches as usize];
            session.examine_first(&graph, &words, kernel.touches_by_data)?;
            if !kernel.touches_by_data {
                kernel.examined.insert(key.clone());
            }
        }
        let write = move |position: usize, bytes: &[u8]| written.write(position, bytes);
        let work = Work::Kernel {
            user: Box::new(user.with_sink(Sink::new(write))),
            division: kernel.known.get(&key).cloned(),
        };
        let divided = Divided {
            gpu_memory: self.gpu_memory,
            traced: self.traced,
            ..Divided::new(work, Supersteps::new(self.steps, 1), session.learned())
        };
        let stop = session.stop();
        let mut run = session.divide(divided, &stop.0)?;
        if let Work::Kernel {
            division: Some(division),
            ..
        } = &run.divided().work
            && kernel.divides_alike
        {
            kernel.known.insert(key, division.clone());
        }
        let ran = run.run(&stop.0, &mut |_, _| {});
        drop(run);
        let mut lent = lent.iter();
        assert!(
            lent.all(|memory| memory.strong_count() == 0),
            "a run that has ended has the user's memory"
        );
        ran
    }

    /// The kernel with its arguments, whose memory is lent, and where the buffers go that it writes.
    fn user(&self) -> Result<(UserKernel, Vec<Weak<Lent>>, Targets), Error> {
        let info = &self.kernel.info;
        let wrong = |what: String| Error::Arguments(format!("kernel {}: {what}", info.name));
        let groups = self.groups.as_deref();
        let required = info.required_local.as_deref();
        (check_sizes(&self.items, groups))
            .and_then(|()| match required {
                Some(required) => check_required(required, &self.items, groups),
                None => Ok(()),
            })
            .map_err(|(sizes, why)| match sizes {
                Sizes::Items => wrong(why),
                Sizes::Groups => wrong(format!("groups: {why}")),
            })?;
        if self.arguments.len() != info.parameters.len() {
            let names: Vec<&str> = info.parameters.iter().map(|of| of.name.as_str()).collect();
            return Err(wrong(format!(
                "it takes {} arguments ({}), and {} are given",
                names.len(),
                names.join(", "),
                self.arguments.len()
            )));
        }
        let given = || self.arguments.iter().zip(&info.parameters);
        let read = info.accesses.iter().map(|access| access.read);
        let arguments = given()
            .zip(read)
            .map(|((given, parameter), read)| given.argument(parameter, read));
        let arguments: Vec<Argument> = arguments.collect::<Result<_, _>>().map_err(wrong)?;
        let written = self.arguments.iter().enumerate();
        let written = written.filter_map(|(position, given)| Some((position, given.written()?)));
        let targets = Targets(written.collect());
        if targets.0.is_empty() {
            return Err(wrong(
                "none of its arguments is given to be written".to_owned(),
            ));
        }
        let kernel = spec::Kernel {
            name: info.name.clone(),
            source: PathBuf::from("kernel.cl"),
            text: self.kernel.text.clone(),
            options: String::new(),
            global: self.items.clone(),
            local: self.groups.clone(),
            arguments,
            partition: None,
        };
        let (mut user, mut lent) = (UserKernel::new(kernel, info.clone(), 0), Vec::new());
        for (position, given) in self.arguments.iter().enumerate() {
            if let Given::Buffer { bytes, .. } = given {
                let contents = Arc::new(Lent(*bytes));
                lent.push(Arc::downgrade(&contents));
                user = user
                    .with_contents(position, contents)
                    .map_err(|_| wrong(format!("argument {position} has another size")))?;
            }
        }
        Ok((user, lent, targets))
    }
}

/// The bytes of values, and the lengths of buffers.
fn key(user: &UserKernel) -> Vec<Vec<u8>> {
    let arguments = user.kernel().arguments.iter();
    let of = |argument: &Argument| match argument {
        Argument::Buffer(buffer) => buffer.bytes().to_ne_bytes().to_vec(),
        Argument::Scalar { bytes, .. } => bytes.clone(),
        Argument::Local { bytes, .. } => bytes.to_ne_bytes().to_vec(),
    };
    arguments.map(of).collect()
}
