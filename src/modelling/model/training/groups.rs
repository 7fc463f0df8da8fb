//! The runs of a machine in groups, each of which gets models.

use std::collections::BTreeMap;

use pdawl_profiler::Sample;

/// Runs of one codelet on one kind of device.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleGroup<'a> {
    /// `cpu` or `gpu`.
    pub kind: &'a str,
    pub codelet: &'a str,
    pub samples: Vec<&'a Sample>,
}

/// The groups of some samples, sorted by kind and codelet; samples keep their
/// order.
pub fn groups(samples: &[Sample]) -> Vec<SampleGroup<'_>> {
    let mut groups: BTreeMap<(&str, &str), Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        let key = (sample.kind.as_str(), sample.codelet.as_str());
        groups.entry(key).or_default().push(sample);
    }
    (groups.into_iter())
        .map(|((kind, codelet), samples)| SampleGroup {
            kind,
            codelet,
            samples,
        })
        .collect()
}
