//! The host memory that a workload may use.

use pdawl::machine::Host;
use pdawl::session::{NamedMachine, memories_in_host};

use super::args::MachineArgs;
use super::failure::Failure;
use super::grid::MemoryBudget;
use super::size::ByteSize;

/// The host memory that a workload may use.
///
/// # Errors
/// A wrong list of devices.
pub fn budget(
    args: &MachineArgs,
    named: Option<&NamedMachine>,
    verify: bool,
) -> Result<MemoryBudget, Failure> {
    let reference_grids = if verify { 2 } else { 0 };
    let free = ByteSize(Host::detect().memory.obtainable(0));
    let Some(simulated) = named.filter(|named| named.is_simulated()) else {
        let budget = MemoryBudget {
            // The user's limit may exceed the free memory that the system reports:
            // some machines get more memory as they use it.
            memory: args.host_memory.unwrap_or(free),
            grids: 2 + reference_grids,
        };
        return beside_copies(budget, args);
    };
    let budget = MemoryBudget {
        memory: ByteSize(simulated.file.host.memory),
        grids: 2,
    };
    Ok(match verify {
        false => budget,
        // The host also stores the data in the memory of simulated devices.
        true => budget.tighter(MemoryBudget {
            memory: free,
            grids: 4 + reference_grids,
        }),
    })
}

/// Subtracts the memory of devices that keep copies in host memory as if it were
/// their own: two grids each, or their limit.
fn beside_copies(mut budget: MemoryBudget, args: &MachineArgs) -> Result<MemoryBudget, Failure> {
    let Some(list) = &args.devices else {
        return Ok(budget);
    };
    let copies = memories_in_host(list)?;
    match args.gpu_memory {
        None => budget.grids += 2 * copies,
        Some(ByteSize(limit)) => {
            let held = limit.saturating_mul(copies);
            budget.memory = ByteSize(budget.memory.0.saturating_sub(held));
        }
    }
    Ok(budget)
}
