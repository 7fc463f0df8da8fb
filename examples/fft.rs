//! The Fourier transform of each row of a matrix, as in Unicorn's figure 1.
use pdawl::program::{Block, NdRange, Program, ProgramTask, SubtaskKernel};
use pdawl::session::{ClusterOptions, Nodes};
use rustfft::{FftPlanner, num_complex::Complex};

pub const ROWS: u64 = 64;
pub const COLUMNS: u64 = 1024;

pub fn number(row: u64, column: u64) -> [f32; 2] {
    [(row * column % 11) as f32, (row + column) as f32 / 512.0]
}

pub fn fft() -> Result<Program, Box<dyn std::error::Error>> {
    let mut program = Program::new("fft");
    let input = program.given(ROWS, COLUMNS, number);
    let output = program.space::<[f32; 2]>(ROWS, COLUMNS);
    // A subtask subscribes to its row of both. OpenCL devices run the kernel, hosts the function.
    let row = |subtask: u64| Block::new(subtask..subtask + 1, 0..COLUMNS);
    let accesses = (input.read(row), output.write(row).full().undivided());
    let launch = |_| NdRange::new(vec![256]).exactly(vec![256]);
    let kernel = SubtaskKernel::new(include_str!("fft.cl"), "fft_ocl", launch)?;
    let plan = FftPlanner::new().plan_fft_forward(COLUMNS as usize);
    let task = ProgramTask::new("fft", ROWS, accesses, move |_, (input, mut output)| {
        let line = input.slice().iter().map(|[re, im]| Complex::new(*re, *im));
        let mut line: Vec<Complex<f32>> = line.collect();
        plan.process(&mut line);
        (output.slice().iter_mut().zip(line)).for_each(|(to, from)| *to = [from.re, from.im]);
    });
    program.add_task(task.with_kernel(kernel));
    program.set_result(output);
    Ok(program)
}

pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers = Nodes::join(ClusterOptions::default())?
        .run(fft()?)?
        .to_vec::<[f32; 2]>()?;
    println!("{:?}", numbers.map(|all| all[..4].to_vec()));
    Ok(())
}
