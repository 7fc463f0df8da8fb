//! Arguments of a launch: buffers and values of the user's, and whether parameters take them.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::codelet::{AddressSpace, RawValue};
use crate::graph::spec::scalar::{Base, ElementType, is_object};
use crate::graph::spec::source::Parameter;
use crate::graph::spec::{self, Argument, Direction};
use crate::parallel;
use crate::workload::kernel::GivenBytes;

/// An argument of a launch.
pub(super) enum Given<'a> {
    Buffer {
        direction: Direction,
        bytes: NonNull<[u8]>,
        /// The type of its elements; `None`: bytes, or a type of the user's.
        base: Option<Base>,
        /// The memory is borrowed until the launch has run.
        _borrowed: PhantomData<&'a mut [u8]>,
    },
    Value(Vec<u8>, Option<Base>),
}

/// The type of OpenCL C that a type is; `None` for others, and for bytes, which may be anything.
pub(super) fn base<T: 'static>() -> Option<Base> {
    let types = [
        (TypeId::of::<i8>(), Base::Char),
        (TypeId::of::<i16>(), Base::Short),
        (TypeId::of::<u16>(), Base::Ushort),
        (TypeId::of::<i32>(), Base::Int),
        (TypeId::of::<u32>(), Base::Uint),
        (TypeId::of::<i64>(), Base::Long),
        (TypeId::of::<u64>(), Base::Ulong),
        (TypeId::of::<half::f16>(), Base::Half),
        (TypeId::of::<f32>(), Base::Float),
        (TypeId::of::<f64>(), Base::Double),
    ];
    let known = types.iter().find(|(id, _)| *id == TypeId::of::<T>());
    known.map(|(_, base)| *base)
}

impl Given<'_> {
    /// The argument for a parameter, or what is wrong with it. `read` says whether the kernel
    /// may read it.
    pub fn argument(&self, parameter: &Parameter, read: bool) -> Result<Argument, String> {
        let name = &parameter.name;
        if parameter.pointer && parameter.address == AddressSpace::Local {
            return Err(format!(
                "{name} is local memory, which is not given; declare it in the kernel, as an \
                 array of a fixed length"
            ));
        }
        let known = parameter.type_name.parse::<ElementType>();
        if let Err(unknown) = &known
            && is_object(&parameter.type_name)
        {
            return Err(format!("{name}: {unknown}"));
        }
        // A structure of the user's is counted in bytes.
        let known = known.ok();
        let element = known.unwrap_or(ElementType::BYTE);
        match self {
            Self::Buffer { .. } if !parameter.pointer => {
                Err(format!("{name} is a value, and a buffer is given"))
            }
            Self::Value(..) if parameter.pointer => {
                Err(format!("{name} is a buffer, and a value is given"))
            }
            Self::Buffer {
                base: Some(base), ..
            }
            | Self::Value(_, Some(base))
                if known.is_some_and(|element| element.base != *base) =>
            {
                Err(format!(
                    "{name} is of type {element}, and {} is given; give numbers of that type, or \
                     their bytes",
                    base.name()
                ))
            }
            Self::Buffer { direction, .. }
                if *direction != Direction::Input && parameter.read_only =>
            {
                Err(format!(
                    "{name} points to `const`, and is given to be written"
                ))
            }
            Self::Buffer {
                direction, bytes, ..
            } => match bytes.len() as u64 {
                length if length > 0 && length.is_multiple_of(element.bytes()) => {
                    Ok(Argument::Buffer(spec::Buffer {
                        direction: match direction {
                            // What it had before may matter.
                            Direction::Output if read => Direction::Both,
                            direction => *direction,
                        },
                        element,
                        elements: length / element.bytes(),
                        divided: false,
                    }))
                }
                length => Err(format!(
                    "{name} has elements of {} bytes, and {length} bytes are given",
                    element.bytes()
                )),
            },
            Self::Value(bytes, _) if bytes.is_empty() || bytes.len() > RawValue::MOST => {
                Err(format!(
                    "{name} is a value of {} bytes, and 1 to {} are passed by value; give a buffer",
                    bytes.len(),
                    RawValue::MOST
                ))
            }
            Self::Value(bytes, _) => match known {
                Some(element) if element.bytes() != bytes.len() as u64 => Err(format!(
                    "{name} is of type {element} with {} bytes, and a value of {} is given",
                    element.bytes(),
                    bytes.len()
                )),
                _ => Ok(Argument::Scalar {
                    element,
                    bytes: bytes.clone(),
                }),
            },
        }
    }

    /// The memory that the kernel writes.
    pub fn written(&self) -> Option<NonNull<[u8]>> {
        match self {
            Self::Buffer {
                direction, bytes, ..
            } if *direction != Direction::Input => Some(*bytes),
            _ => None,
        }
    }
}

/// Memory of the user's that a run reads where it is.
#[derive(Debug)]
pub(super) struct Lent(pub NonNull<[u8]>);

// SAFETY: nothing writes the memory while runs read it: results replace it when these have ended.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl GivenBytes for Lent {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is borrowed until the launch has run, which looks after that whether
        // anything else has it.
        unsafe { self.0.as_ref() }
    }
}

/// Where the buffers go that a kernel writes.
pub(super) struct Targets(pub BTreeMap<usize, NonNull<[u8]>>);

// SAFETY: one thread at a time uses it, the one that runs the kernel.
unsafe impl Send for Targets {}
// SAFETY: as above.
unsafe impl Sync for Targets {}

impl Targets {
    pub fn write(&self, position: usize, result: &[u8]) {
        let Some(target) = self.0.get(&position) else {
            return;
        };
        // SAFETY: the buffers are borrowed exclusively until the launch has run, and each is
        // another one.
        let target = unsafe { &mut *target.as_ptr() };
        let bytes = target.len();
        parallel::copy(target, &result[..bytes]);
    }
}
