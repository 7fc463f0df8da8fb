//! Which GPU a device is, so that the same one is recognised through two drivers.

/// What drivers say about a GPU's identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuIdentity {
    /// Unique in the world.
    pub uuid: Option<[u8; 16]>,
    /// Number of its PCI bus, and of the device there.
    pub pci: Option<(u32, u32)>,
}

impl GpuIdentity {
    /// Whether both are of one GPU. Without anything that both know they are not.
    pub fn is(&self, other: &Self) -> bool {
        match (self.uuid, other.uuid) {
            (Some(own), Some(others)) => own == others,
            _ => self.pci.is_some() && self.pci == other.pci,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_known_by_its_uuid_or_else_by_its_place() {
        let of = |uuid: Option<u8>, pci| GpuIdentity {
            uuid: uuid.map(|byte| [byte; 16]),
            pci,
        };
        let place = Some((3, 0));
        assert!(of(Some(1), place).is(&of(Some(1), None)));
        assert!(!of(Some(1), place).is(&of(Some(2), place)));
        assert!(of(None, place).is(&of(Some(2), place)));
        assert!(!of(None, place).is(&of(None, Some((3, 1)))));
        assert!(!of(None, None).is(&of(None, None)));
    }
}
