//! Which options do nothing, of which workloads and where.

use super::Place::{self, Cluster, Here, Nodes, OneNode, Simulated};
use crate::failure::Failure;

/// Options that do nothing.
pub struct Rule {
    /// Their names, without dashes.
    options: &'static [&'static str],
    /// These values of them; all if none is named.
    values: &'static [&'static str],
    /// With these workloads; with all if none is named.
    of: &'static [&'static str],
    at: &'static [Place],
    /// What they are for.
    purpose: &'static str,
    remedy: &'static str,
}

const ANYWHERE: &[Place] = &[Here, Simulated, OneNode, Cluster, Nodes];
const DESCRIBED: &[Place] = &[OneNode, Cluster];
const ONE_MACHINE: &[Place] = &[Here, Simulated, OneNode];
const SEVERAL: &[Place] = &[Cluster, Nodes];

/// Workloads of users' kernels, and those whose data are all in host memory.
const OPENCL: &[&str] = &["kernel", "dag"];
const GRAPHS: &[&str] = &[
    "dag",
    "transformer",
    "matmul",
    "cholesky",
    "convolution",
    "lu",
    "fft",
    "sort",
];
/// Those of which a real device cannot be lost on purpose.
const KEPT: &[&str] = &[
    "stencil",
    "spmv",
    "pagerank",
    "kernel",
    "dag",
    "transformer",
    "tasks",
];

/// A graph that is a recorded run, as rules name it.
pub const RECORDING: &str = "dag --starpu";

const WITHOUT: &str = "the command without it";
const ON_ONE_MACHINE: &str = "the run without it, or on one machine";
const NOT_SIMULATED: &str = "the run without it, or without --cluster";
const COMPUTES: &str = "runs that compute, and --cluster simulates one";
const REAL: &str = "simulated machines, and this run is on real devices";
const OTHER_MACHINE: &str = "--machine NAME of another machine; `pdawl machine list` shows them";

const ANY: Rule = Rule {
    options: &[],
    values: &[],
    of: &[],
    at: ANYWHERE,
    purpose: "",
    remedy: WITHOUT,
};

/// The first that suits counts.
const RULES: &[Rule] = &[
    Rule {
        options: &[
            "machine",
            "load",
            "save",
            "sources",
            "verify",
            "component-queues",
            "search",
        ],
        of: &[RECORDING],
        purpose: "graphs of kernels, and a recording has single tasks and their times on its \
                  own machine",
        ..ANY
    },
    Rule {
        options: &["policy"],
        values: &["recorded"],
        of: GRAPHS,
        purpose: "recordings, whose schedule it repeats",
        remedy: "another policy, or `pdawl run dag --starpu FOLDER`",
        ..ANY
    },
    Rule {
        options: &["machine"],
        of: OPENCL,
        at: &[Simulated],
        purpose: "workloads whose cost is known: a kernel in OpenCL C cannot be simulated",
        remedy: "no --machine, for the devices that are here",
        ..ANY
    },
    Rule {
        options: &["cluster"],
        of: OPENCL,
        at: DESCRIBED,
        purpose: "workloads whose cost is known: a kernel in OpenCL C cannot be simulated",
        remedy: "mpirun, for the nodes that are there",
        ..ANY
    },
    Rule {
        options: &["noise"],
        at: &[Here],
        purpose: REAL,
        remedy: OTHER_MACHINE,
        ..ANY
    },
    Rule {
        options: &["noise"],
        at: &[Nodes],
        purpose: "simulated runs",
        remedy: "--cluster NAME; `pdawl cluster list` shows them",
        ..ANY
    },
    Rule {
        options: &["fault"],
        of: KEPT,
        at: &[Here],
        purpose: REAL,
        remedy: OTHER_MACHINE,
        ..ANY
    },
    Rule {
        options: &["machine", "devices", "gpu-memory", "host-memory", "fault"],
        at: DESCRIBED,
        purpose: "runs on one machine, and --cluster names a cluster",
        remedy: NOT_SIMULATED,
        ..ANY
    },
    Rule {
        options: &["machine", "gpu-memory", "host-memory", "fault"],
        at: &[Nodes],
        purpose: "runs on one machine",
        remedy: ON_ONE_MACHINE,
        ..ANY
    },
    Rule {
        options: &["host-memory"],
        of: GRAPHS,
        purpose: "workloads that are streamed, and all data of this one are in host memory",
        ..ANY
    },
    Rule {
        options: &["runtime", "libraries"],
        at: &[Simulated, OneNode, Cluster],
        purpose: "real devices, and this run is simulated",
        ..ANY
    },
    Rule {
        options: &[
            "verify",
            "input",
            "output",
            "a",
            "b",
            "image",
            "filter-file",
            "pivots",
            "vector",
            "until",
            "check-every",
            "wire",
        ],
        at: DESCRIBED,
        purpose: COMPUTES,
        remedy: NOT_SIMULATED,
        ..ANY
    },
    Rule {
        options: &["tolerance"],
        at: &[Cluster],
        purpose: COMPUTES,
        remedy: "--steps N, for a number of steps",
        ..ANY
    },
    Rule {
        options: &["fresh"],
        at: &[Simulated, OneNode, Cluster, Nodes],
        purpose: "runs on this machine's devices, which alone are kept",
        ..ANY
    },
    Rule {
        options: &["spread", "prefetch", "placement"],
        at: ONE_MACHINE,
        purpose: "a run over several nodes",
        remedy: "the run with mpirun or --cluster NAME, or without it",
        ..ANY
    },
    Rule {
        options: &["spread", "prefetch", "placement"],
        of: &["stencil", "spmv", "pagerank"],
        purpose: "subtasks, and the nodes share this workload in one co-run",
        ..ANY
    },
    Rule {
        options: &["placement"],
        of: &["kernel", "sort"],
        purpose: "blocks of dense matrices and images",
        ..ANY
    },
    Rule {
        options: &["strategy", "adaptive", "model"],
        at: SEVERAL,
        purpose: "a run on one node",
        remedy: "--spread for the policy between nodes, or the run on one node",
        ..ANY
    },
    Rule {
        options: &["superstep"],
        values: &["auto"],
        at: SEVERAL,
        purpose: "a run on one machine, for which it plans",
        remedy: "--superstep K",
        ..ANY
    },
    Rule {
        options: &["policy", "window", "order", "repeats"],
        at: SEVERAL,
        purpose: "runs on one machine",
        remedy: ON_ONE_MACHINE,
        ..ANY
    },
    Rule {
        options: &["precision"],
        values: &["f64", "f16", "bf16", "tf32"],
        of: &["matmul"],
        at: SEVERAL,
        purpose: "products on one machine",
        remedy: ON_ONE_MACHINE,
    },
    Rule {
        options: &["policy", "gpu-memory"],
        of: &["sort"],
        purpose: "several subtasks, and one machine sorts in one, on its host",
        ..ANY
    },
    Rule {
        options: &["tile"],
        of: &["sort"],
        at: ONE_MACHINE,
        purpose: "sorts over nodes, and one machine sorts in one subtask",
        ..ANY
    },
];

/// Why an option of a workload with these values does nothing at a place, if so.
pub fn rule(
    workload: &str,
    option: &str,
    place: Place,
    values: &[String],
) -> Option<&'static Rule> {
    RULES.iter().find(|rule| {
        rule.options.contains(&option)
            && rule.at.contains(&place)
            && (rule.of.is_empty() || rule.of.contains(&workload))
            && (rule.values.is_empty() || rule.value(values).is_some())
    })
}

impl Rule {
    /// The first of these values that is one of the rule's.
    fn value<'a>(&self, values: &'a [String]) -> Option<&'a String> {
        values
            .iter()
            .find(|value| self.values.contains(&value.as_str()))
    }

    /// The failure of such an option.
    pub fn refusal(&self, option: &str, values: &[String]) -> Failure {
        let value = self
            .value(values)
            .map_or_else(String::new, |value| format!(" {value}"));
        let what = format!("--{option}{value} is for {}", self.purpose);
        Failure::usage(what, self.remedy)
    }
}
