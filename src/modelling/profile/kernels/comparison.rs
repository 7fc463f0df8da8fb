//! The times of codelets' implementations, ours and a library's, kept from run to run.

use std::collections::BTreeMap;

use super::key::CODELET;
use super::{KernelKey, KernelProfiles};
use crate::machine::Device;
use crate::runtime::Comparison;

/// The implementation that is ours, in keys; a library has its name and version.
const OWN: &str = "own";

/// A device as files name it: devices of one model share their times, and another driver has
/// its own.
fn name(device: &Device) -> String {
    format!("{} ({})", device.model, device.driver)
}

impl KernelProfiles {
    /// Notes what was measured of a codelet's implementations, if both were.
    pub fn record_comparison(&mut self, device: &Device, comparison: &Comparison) {
        let (Some(library), Some(own_seconds), Some(library_seconds)) = (
            &comparison.library,
            comparison.own_seconds,
            comparison.library_seconds,
        ) else {
            return;
        };
        for (implementation, seconds) in [(OWN, own_seconds), (library, library_seconds)] {
            let (codelet, sizes) = (&comparison.codelet, &comparison.sizes);
            let key = KernelKey::of_codelet(codelet, sizes, implementation);
            self.record(&key, &name(device), seconds);
        }
    }

    /// What is known of codelets' implementations on a device.
    pub fn comparisons(&self, device: &Device) -> Vec<Comparison> {
        let name = name(device);
        // By codelet and sizes: the seconds by implementation.
        let mut known: BTreeMap<(&str, Vec<u64>), BTreeMap<&str, f64>> = BTreeMap::new();
        let of_codelets = (self.kept.kernels.range(CODELET.to_owned()..))
            .take_while(|(key, _)| key.starts_with(CODELET));
        for (key, devices) in of_codelets {
            if let (Some((codelet, sizes, implementation)), Some(times)) =
                (KernelKey::codelet_of(key), devices.get(&name))
            {
                let of_both = known.entry((codelet, sizes)).or_default();
                of_both.insert(implementation, times.median());
            }
        }
        let mut comparisons = Vec::new();
        for ((codelet, sizes), of_both) in known {
            let Some(own) = of_both.get(OWN) else {
                continue;
            };
            let libraries = of_both
                .iter()
                .filter(|(implementation, _)| **implementation != OWN);
            comparisons.extend(libraries.map(|(library, seconds)| Comparison {
                device: device.name.clone(),
                codelet: codelet.to_owned(),
                sizes: sizes.clone(),
                library: Some((*library).to_owned()),
                own_seconds: Some(*own),
                library_seconds: Some(*seconds),
                serves: None,
                refusal: None,
            }));
        }
        comparisons
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Fingerprint, MachineStore};
    use crate::profile::kernels::Program;
    use crate::runtime::sim::{Sim, SimOptions};
    use crate::runtime::{Devices, Implementation};

    fn device() -> Device {
        let machine = MachineStore::of_user().find("k40").unwrap();
        let sim = Sim::new(&machine, SimOptions::default()).unwrap();
        sim.devices().last().unwrap().clone()
    }

    fn comparison(device: &Device, library: &str, seconds: [f64; 2]) -> Comparison {
        Comparison {
            device: device.name.clone(),
            codelet: "gemm-tile-f32".to_owned(),
            sizes: vec![512, 1024, 8],
            library: Some(library.to_owned()),
            own_seconds: Some(seconds[0]),
            library_seconds: Some(seconds[1]),
            serves: None,
            refusal: None,
        }
    }

    #[test]
    fn comparisons_outlive_a_process_beside_kernels() {
        let folder = tempfile::tempdir().unwrap();
        let (path, here) = (
            folder.path().join("here.json"),
            Fingerprint::of("Xeon", 8, ["A GPU"]),
        );
        let device = device();
        let mut profiles = KernelProfiles::open(&path, &here).unwrap();
        let kernel = KernelKey::new(Program::new(b"text", ""), "f", &[64], None, &[256]);
        profiles.record(&kernel, "gpu", 1.0);
        let known = comparison(&device, "cublas-130002", [2.0, 1.0]);
        profiles.record_comparison(&device, &known);
        let unknown = Comparison {
            own_seconds: None,
            ..comparison(&device, "cufft-12000", [1.0, 1.0])
        };
        profiles.record_comparison(&device, &unknown);
        profiles.save().unwrap();
        let again = KernelProfiles::open(&path, &here).unwrap();
        assert_eq!(again.comparisons(&device), std::slice::from_ref(&known));
        assert_eq!(known.faster(), Some(Implementation::Library));
        assert_eq!(again.seconds(&kernel, "gpu"), Some(1.0));
        let other = Device {
            driver: "another driver".to_owned(),
            ..device
        };
        assert_eq!(again.comparisons(&other), []);
    }

    #[test]
    fn keys_of_codelets_are_read_as_they_are_written() {
        let key = KernelKey::of_codelet("lu-row-f32", &[4, 16, 2], "cublas-130002");
        let read = KernelKey::codelet_of(key.as_str());
        assert_eq!(read, Some(("lu-row-f32", vec![4, 16, 2], "cublas-130002")));
        for wrong in [
            "codelet a 1x own",
            "codelet a 1",
            "codelet a 1 own more",
            "a 1 own",
        ] {
            assert_eq!(KernelKey::codelet_of(wrong), None, "{wrong}");
        }
    }
}
