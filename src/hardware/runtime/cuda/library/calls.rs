//! Calls for one launch. What is stored by rows is for a library, which stores matrices by
//! columns, the transposed matrix: a product's factors change places, lower triangles are upper
//! ones, and sides are the other ones.

use std::ffi::c_int;
use std::sync::Arc;

use super::Libraries;
use super::functions::{Input, Pointer, check};
use super::handles::{Blas, Shape, Solver};
use crate::codelet::library::{LibraryCall, Lines, Operand, Side};
use crate::codelet::{Element, NumberFormat, Precision, ProductPrecision};
use crate::runtime::cuda::device::OpenDevice;
use crate::runtime::cuda::handle::Stream;

/// The libraries' numbers for what a call is to do.
const PLAIN: c_int = 0;
const TRANSPOSED: c_int = 1;
const UPPER: c_int = 1;
const LEFT: c_int = 0;
const RIGHT: c_int = 1;
const NON_UNIT: c_int = 0;
const UNIT: c_int = 1;
const FORWARD: c_int = -1;
/// The algorithm of a product.
const CHOSEN_BY_LIBRARY: c_int = -1;

/// Bytes of memory that is lent to cuBLAS at least.
const LEAST_ROOM: u64 = 1 << 20;

/// Bytes of a complex single.
const COMPLEX: u64 = 8;

/// A prepared call.
pub(in crate::runtime::cuda) struct Call {
    /// Bytes of the memory that is lent to the library: what it wants, and what it needs.
    pub room: u64,
    pub least_room: u64,
    run: Run,
}

/// Memory that is lent to a library: its address and bytes.
pub(in crate::runtime::cuda) type Room = (u64, u64);

/// Enqueues a call on a stream.
type Run = Box<dyn Fn(&Stream, Room) -> Result<(), String> + Send + Sync>;

impl Call {
    /// Enqueues the call. `room` is as much memory as it needs, at least.
    pub(in crate::runtime::cuda) fn enqueue(
        &self,
        stream: &Stream,
        room: Room,
    ) -> Result<(), String> {
        (self.run)(stream, room)
    }
}

/// Where the memory of a launch is on the device.
pub(super) struct Place<'a> {
    /// By argument; 0 for what is no memory.
    pub arguments: &'a [u64],
    /// The launch's own memory.
    pub scratch: u64,
}

impl Place<'_> {
    fn of(&self, operand: &Operand, element: impl Into<Element>) -> u64 {
        self.arguments[operand.argument] + operand.first * element.into().bytes()
    }

    fn of_lines(&self, lines: &Lines) -> u64 {
        self.arguments[lines.argument] + lines.first * COMPLEX
    }
}

/// Prepares a call on a device.
///
/// # Errors
/// Why the library cannot make it.
pub(super) fn prepare(
    libraries: &mut Libraries,
    (index, device): (usize, &OpenDevice),
    call: &LibraryCall,
    place: &Place<'_>,
) -> Result<Call, String> {
    match call {
        LibraryCall::Gemm { .. } | LibraryCall::Syrk { .. } | LibraryCall::Trsm { .. } => {
            Ok(of_blas(libraries.blas(index, device)?, call, place))
        }
        LibraryCall::Potrf { .. } | LibraryCall::Getrf { .. } => {
            of_solver(libraries.solver(index, device)?, call, place)
        }
        LibraryCall::Fft {
            length,
            lines,
            x,
            y,
        } => {
            let shape = Shape::new(*length, *lines, x, y);
            let plan = libraries.plans(index)?.plan(shape, &device.context)?;
            let (x, y) = (place.of_lines(x), place.of_lines(y));
            Ok(Call {
                room: plan.room,
                least_room: plan.room,
                run: Box::new(move |stream, (room, _)| {
                    let (functions, number) = (&plan.functions, plan.plan);
                    // SAFETY: the plan is alive, and the memory that the queue lends is as
                    // large as it needs. Who enqueues the launch keeps x and y, of which the
                    // launch's description tells the lengths, until it has ended.
                    unsafe {
                        let set = (functions.set_stream)(number, stream.raw().cast());
                        check("cufftSetStream", set)?;
                        let set = (functions.set_room)(number, pointer(room));
                        check("cufftSetWorkArea", set)?;
                        let done = (functions.transform)(number, pointer(x), pointer(y), FORWARD);
                        check("cufftExecC2C", done)
                    }
                }),
            })
        }
    }
}

/// A number of either precision, as the libraries read it.
#[repr(align(8))]
struct Scalar([u8; 8]);

impl Scalar {
    fn new(precision: Precision, number: f64) -> Self {
        let mut bytes = [0; 8];
        match precision {
            Precision::F32 => bytes[..4].copy_from_slice(&(number as f32).to_ne_bytes()),
            Precision::F64 => bytes.copy_from_slice(&number.to_ne_bytes()),
        }
        Self(bytes)
    }

    fn input(&self) -> Input {
        self.0.as_ptr().cast()
    }
}

/// An address on the device as the libraries take it.
fn pointer(address: u64) -> Pointer {
    std::ptr::without_provenance_mut(address as usize)
}

/// A size or a stride; the description of a call has those that fit.
fn number(size: u32) -> c_int {
    size as c_int
}

fn transposition(is_transposed: bool) -> c_int {
    match is_transposed {
        true => TRANSPOSED,
        false => PLAIN,
    }
}

/// cuBLAS's number for how a number is stored.
fn data_type(element: Element) -> c_int {
    match element {
        Element::F32 => 0,
        Element::F64 => 1,
        Element::F16 => 2,
        Element::Bf16 => 14,
    }
}

/// cuBLAS's number for how the products are computed: in single precision, in the same with
/// factors rounded to TF32, or in double precision.
fn compute_type(precision: ProductPrecision) -> c_int {
    match precision {
        ProductPrecision::Single(NumberFormat::F16 | NumberFormat::Bf16 | NumberFormat::F32) => 68,
        ProductPrecision::Single(NumberFormat::Tf32) => 77,
        ProductPrecision::Double => 70,
    }
}

/// A call of cuBLAS, which is told the queue's stream and memory first.
fn of_blas(blas: Arc<Blas>, call: &LibraryCall, place: &Place<'_>) -> Call {
    let room = blas.room;
    let made = made_for(&blas, call, place);
    Call {
        room,
        // With less it makes other calls.
        least_room: room.min(LEAST_ROOM),
        run: Box::new(move |stream, (lent, room)| {
            let functions = &blas.functions;
            // SAFETY: the handle and the stream are alive, and as much memory is lent as is
            // said.
            unsafe {
                // This gives up the memory that was set before.
                let set = (functions.set_stream)(blas.handle, stream.raw().cast());
                check("cublasSetStream", set)?;
                let set = (functions.set_workspace)(blas.handle, pointer(lent), room as usize);
                check("cublasSetWorkspace", set)?;
            }
            made(&blas)
        }),
    }
}

/// A call of cuBLAS, whose handle knows stream and memory.
type Made = Box<dyn Fn(&Blas) -> Result<(), String> + Send + Sync>;

/// The call itself.
fn made_for(blas: &Blas, call: &LibraryCall, place: &Place<'_>) -> Made {
    match *call {
        LibraryCall::Gemm {
            precision,
            result,
            rows,
            columns,
            depth,
            transposed,
            alpha,
            beta,
            a,
            b,
            c,
            batch,
            distance,
        } => {
            let factors = precision.factors();
            let [at_a, at_b] = [a, b].map(|operand| place.of(&operand, factors));
            let at_c = place.of(&c, result);
            let [of_a, of_b, of_c] = [a, b, c].map(|operand| number(operand.stride));
            let [alpha, beta] = [alpha, beta].map(|factor| Scalar::new(precision.sums(), factor));
            let [rows, columns, depth, count] = [rows, columns, depth, batch].map(number);
            // Numbers of a memory are less than 2^63.
            let [a_distance, b_distance, c_distance] = distance.map(|numbers| numbers as i64);
            let (one, many) = (blas.functions.gemm, blas.functions.gemm_batch);
            let (factors, result) = (data_type(factors), data_type(result));
            let sums = compute_type(precision);
            // C^T = B^T A^T.
            Box::new(move |blas| {
                let (handle, first) = (blas.handle, transposition(transposed));
                // SAFETY: the handle is alive, and the factors are in host memory. Who
                // enqueues the launch keeps the matrices, of which the launch's description
                // tells the sizes, until it has ended.
                unsafe {
                    match batch {
                        1 => check(
                            "cublasGemmEx",
                            one(
                                handle,
                                first,
                                PLAIN,
                                columns,
                                rows,
                                depth,
                                alpha.input(),
                                pointer(at_b),
                                factors,
                                of_b,
                                pointer(at_a),
                                factors,
                                of_a,
                                beta.input(),
                                pointer(at_c),
                                result,
                                of_c,
                                sums,
                                CHOSEN_BY_LIBRARY,
                            ),
                        ),
                        _ => check(
                            "cublasGemmStridedBatchedEx",
                            many(
                                handle,
                                first,
                                PLAIN,
                                columns,
                                rows,
                                depth,
                                alpha.input(),
                                pointer(at_b),
                                factors,
                                of_b,
                                b_distance,
                                pointer(at_a),
                                factors,
                                of_a,
                                a_distance,
                                beta.input(),
                                pointer(at_c),
                                result,
                                of_c,
                                c_distance,
                                count,
                                sums,
                                CHOSEN_BY_LIBRARY,
                            ),
                        ),
                    }
                }
            })
        }
        LibraryCall::Syrk {
            precision,
            rows,
            depth,
            alpha,
            beta,
            a,
            c,
        } => {
            let [at_a, at_c] = [a, c].map(|operand| place.of(&operand, precision));
            let (alpha, beta) = (Scalar::new(precision, alpha), Scalar::new(precision, beta));
            let update = blas.functions.syrk[precision.choose(0, 1)];
            // The upper triangle of C = (A^T)^T A^T.
            Box::new(move |blas| {
                // SAFETY: as for a product.
                let code = unsafe {
                    update(
                        blas.handle,
                        UPPER,
                        TRANSPOSED,
                        number(rows),
                        number(depth),
                        alpha.input(),
                        pointer(at_a),
                        number(a.stride),
                        beta.input(),
                        pointer(at_c),
                        number(c.stride),
                    )
                };
                check("cublasSyrk", code)
            })
        }
        LibraryCall::Trsm {
            precision,
            rows,
            columns,
            side,
            transposed,
            unit,
            l,
            b,
        } => {
            let [at_l, at_b] = [l, b].map(|operand| place.of(&operand, precision));
            let one = Scalar::new(precision, 1.0);
            let solve = blas.functions.trsm[precision.choose(0, 1)];
            // op(L) X = B is X^T op(L)^T = B^T, and the library's triangle is L^T.
            let side = match side {
                Side::Left => RIGHT,
                Side::Right => LEFT,
            };
            let diagonal = match unit {
                true => UNIT,
                false => NON_UNIT,
            };
            Box::new(move |blas| {
                // SAFETY: as for a product.
                let code = unsafe {
                    solve(
                        blas.handle,
                        side,
                        UPPER,
                        transposition(transposed),
                        diagonal,
                        number(columns),
                        number(rows),
                        one.input(),
                        pointer(at_l),
                        number(l.stride),
                        pointer(at_b),
                        number(b.stride),
                    )
                };
                check("cublasTrsm", code)
            })
        }
        // `prepare` gives other calls to other libraries.
        LibraryCall::Potrf { .. } | LibraryCall::Getrf { .. } | LibraryCall::Fft { .. } => {
            Box::new(|_| Err("cuBLAS has no such call".to_owned()))
        }
    }
}

/// A call of cuSOLVER.
fn of_solver(solver: Arc<Solver>, call: &LibraryCall, place: &Place<'_>) -> Result<Call, String> {
    let (precision, a, rows, columns, stride) = match *call {
        LibraryCall::Potrf {
            precision, rows, a, ..
        } => (precision, place.of(&a, precision), rows, rows, a.stride),
        LibraryCall::Getrf {
            precision,
            rows,
            columns,
            ..
        } => (precision, place.scratch, rows, columns, rows),
        _ => return Err("cuSOLVER has no such call".to_owned()),
    };
    let which = precision.choose(0, 1);
    let [rows, columns, stride] = [rows, columns, stride].map(number);
    let functions = &solver.functions;
    let mut numbers = 0;
    let handle = solver.handle;
    let (name, first, room) = match call {
        LibraryCall::Potrf { .. } => ("cusolverDnPotrf_bufferSize", UPPER, functions.potrf_room),
        _ => ("cusolverDnGetrf_bufferSize", rows, functions.getrf_room),
    };
    // SAFETY: the handle is alive, the library writes a number, and does not read the matrix.
    let code = unsafe { room[which](handle, first, columns, pointer(a), stride, &mut numbers) };
    check(name, code)?;
    let room = u64::try_from(numbers).unwrap_or(0) * precision.bytes();
    let scratch = place.scratch;
    let call = *call;
    Ok(Call {
        room,
        least_room: room,
        run: Box::new(move |stream, (lent, _)| {
            let (functions, handle) = (&solver.functions, solver.handle);
            // SAFETY: the handle and the stream are alive, and the queue lends as much memory
            // as the library has asked for. Who enqueues the launch keeps the matrix, of which
            // the launch's description tells the size, and the launch's own memory, which has
            // room for the numbers behind it, until it has ended.
            unsafe {
                let set = (functions.set_stream)(handle, stream.raw().cast());
                check("cusolverDnSetStream", set)?;
                match call {
                    LibraryCall::Potrf { info, .. } => {
                        let code = functions.potrf[which](
                            handle,
                            UPPER,
                            rows,
                            pointer(a),
                            stride,
                            pointer(lent),
                            numbers,
                            pointer(scratch + info),
                        );
                        check("cusolverDnPotrf", code)
                    }
                    LibraryCall::Getrf { pivots, info, .. } => {
                        let code = functions.getrf[which](
                            handle,
                            rows,
                            columns,
                            pointer(a),
                            stride,
                            pointer(lent),
                            pointer(scratch + pivots),
                            pointer(scratch + info),
                        );
                        check("cusolverDnGetrf", code)
                    }
                    _ => Ok(()),
                }
            }
        }),
    })
}
