//! What a machine file says of a device and the host that it is in, for one
//! codelet, as numbers. A figure that the file does not have is `None`.

/// The figures that a model may read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Descriptors {
    pub host: HostFigures,
    /// `None` for the host's own cores.
    pub device: Option<DeviceFigures>,
}

/// The host's. Rates are a second, times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostFigures {
    pub cores: u32,
    pub sockets: u32,
    pub clock_mhz: Option<u32>,
    /// Bytes of a core's L2 and of a socket's L3 cache.
    pub l2: Option<u64>,
    pub l3: Option<u64>,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes a second of a copy by all cores, and by one.
    pub bandwidth: f64,
    pub core_bandwidth: f64,
    /// Operations a second of all cores, in the codelet's precision.
    pub flops: Option<f64>,
    pub launch_seconds: f64,
    pub completion_seconds: f64,
    /// The fraction of a copy's bandwidth that the codelet reaches.
    pub efficiency: f64,
}

/// A device's with memory of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceFigures {
    pub compute_units: u32,
    pub clock_mhz: Option<u32>,
    pub memory: u64,
    pub bandwidth: f64,
    pub flops: Option<f64>,
    pub copy_engines: u32,
    pub launch_seconds: f64,
    pub enqueue_seconds: f64,
    pub completion_seconds: f64,
    pub efficiency: f64,
    /// Bytes a second of the link alone, and each way while both are busy.
    pub h2d: f64,
    pub d2h: f64,
    pub both_ways: f64,
    pub link_latency_seconds: f64,
}
