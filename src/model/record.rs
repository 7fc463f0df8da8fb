//! A case as the named features of a dataset's row, and back.

use std::collections::BTreeMap;

use pdawl_profiler::Sample;
use thiserror::Error;

use super::case::{Case, DevicePart, StepWork};
use super::descriptors::{Descriptors, DeviceFigures, HostFigures, LinkFigures};
use super::features;
use super::matrix::MatrixFigures;

/// Why a row cannot be read as a case.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum RecordError {
    #[error(
        "{configuration}, repeat {repeat}: `{feature}` is missing; a model needs it to know what \
         was run, so measure the configuration again"
    )]
    Missing {
        configuration: String,
        repeat: u32,
        feature: &'static str,
    },
    #[error(
        "{configuration}, repeat {repeat}: `{feature}` is {value}; it must be {wanted}, so correct \
         or remove the row"
    )]
    Impossible {
        configuration: String,
        repeat: u32,
        feature: &'static str,
        value: f64,
        wanted: &'static str,
    },
}

/// The features of a row that are known before its run, by name. What the
/// machine file does not say is absent.
pub fn features(case: &Case, descriptors: &Descriptors) -> BTreeMap<String, f64> {
    let values = features::values(case, descriptors);
    (features::NAMES.iter().zip(values))
        .filter(|(name, value)| features::is_kept(name) && !value.is_nan())
        .map(|(name, value)| ((*name).to_owned(), value))
        .collect()
}

/// The case and the machine that a row tells of: the inverse of
/// [`features()`].
///
/// # Errors
/// A feature that is missing, or that cannot be, with the row's configuration.
pub fn read(sample: &Sample) -> Result<(Case, Descriptors), RecordError> {
    let row = Row(sample);
    let work = StepWork {
        codelet: sample.codelet.clone(),
        units: row.count("known.units_count")?,
        unit_bytes: row.count("known.unit_bytes")?,
        unit_points: row.count("known.unit_points_count")?,
        element_bytes: row.count("known.element_bytes")?,
        dimensions: row.small("known.dimensions_count")?,
        unit_flops: row.number("known.unit_flops")?,
        unit_traffic: row.number("known.unit_traffic_bytes")?,
        matrix: match row.has("known.matrix_rows_count") {
            true => Some(row.matrix()?),
            false => None,
        },
    };
    let part = match row.has("known.pool_units_count") {
        true => row.host_part()?,
        false => row.own_part()?,
    };
    let descriptors = Descriptors {
        host: row.host()?,
        device: match row.has("machine.device_units_count") {
            true => Some(row.device()?),
            false => None,
        },
    };
    Ok((Case { work, part }, descriptors))
}

/// A sample, asked for features.
struct Row<'a>(&'a Sample);

impl Row<'_> {
    fn has(&self, feature: &str) -> bool {
        self.0.features.contains_key(feature)
    }

    fn number(&self, feature: &'static str) -> Result<f64, RecordError> {
        let value = self.0.features.get(feature).copied();
        let value = value.ok_or_else(|| RecordError::Missing {
            configuration: self.0.configuration.clone(),
            repeat: self.0.repeat,
            feature,
        })?;
        match value.is_finite() && value >= 0.0 {
            true => Ok(value),
            false => Err(self.impossible(feature, value, "a number, 0 or more")),
        }
    }

    fn count(&self, feature: &'static str) -> Result<u64, RecordError> {
        let value = self.number(feature)?;
        // Up to here every whole number is exact.
        match value.fract() == 0.0 && value <= (1u64 << 53) as f64 {
            true => Ok(value as u64),
            false => Err(self.impossible(feature, value, "a whole number")),
        }
    }

    fn small(&self, feature: &'static str) -> Result<u32, RecordError> {
        let count = self.count(feature)?;
        u32::try_from(count)
            .map_err(|_| self.impossible(feature, count as f64, "a whole number below 2^32"))
    }

    /// A figure that the machine file may lack.
    fn maybe<T>(
        &self,
        feature: &'static str,
        read: impl Fn(&Self, &'static str) -> Result<T, RecordError>,
    ) -> Result<Option<T>, RecordError> {
        match self.has(feature) {
            true => read(self, feature).map(Some),
            false => Ok(None),
        }
    }

    fn impossible(&self, feature: &'static str, value: f64, wanted: &'static str) -> RecordError {
        RecordError::Impossible {
            configuration: self.0.configuration.clone(),
            repeat: self.0.repeat,
            feature,
            value,
            wanted,
        }
    }

    fn matrix(&self) -> Result<MatrixFigures, RecordError> {
        Ok(MatrixFigures {
            rows: self.count("known.matrix_rows_count")?,
            columns: self.count("known.matrix_columns_count")?,
            nonzeros: self.count("known.matrix_nonzeros_count")?,
            mean: self.number("known.nonzeros_over_rows_ratio")?,
            variation: self.number("known.deviation_over_mean_ratio")?,
            most: self.count("known.row_most_count")?,
            bandwidth: self.count("known.matrix_bandwidth_count")?,
            irregular: self.number("known.irregular_ratio")?,
            near_lines: self.number("known.near_lines_ratio")?,
            far_lines: self.number("known.far_lines_ratio")?,
            near_jumps: self.number("known.near_jumps_ratio")?,
            far_jumps: self.number("known.far_jumps_ratio")?,
        })
    }

    fn host_part(&self) -> Result<DevicePart, RecordError> {
        Ok(DevicePart::Host {
            workers: self.small("known.workers_count")?,
            sockets: self.small("known.sockets_count")?,
            units: self.count("known.pool_units_count")?,
            chunk: self.count("known.chunk_units_count")?,
        })
    }

    fn own_part(&self) -> Result<DevicePart, RecordError> {
        let solo = self.number("known.solo_ratio")?;
        Ok(DevicePart::Discrete {
            held: self.count("known.held_units_count")?,
            slots: self.count("known.slots_count")?,
            streamed: self.count("known.streamed_units_count")?,
            chunk: self.count("known.chunk_units_count")?,
            queues: self.small("known.queues_count")?,
            solo: match solo {
                0.0 => false,
                1.0 => true,
                _ => return Err(self.impossible("known.solo_ratio", solo, "0 or 1")),
            },
        })
    }

    fn host(&self) -> Result<HostFigures, RecordError> {
        Ok(HostFigures {
            cores: self.small("machine.cores_count")?,
            sockets: self.small("machine.sockets_count")?,
            clock_mhz: self.maybe("machine.clock_mhz", Self::small)?,
            l2: self.maybe("machine.l2_bytes", Self::count)?,
            l3: self.maybe("machine.l3_bytes", Self::count)?,
            memory: self.count("machine.memory_bytes")?,
            bandwidth: self.number("machine.bandwidth_bytes_per_second")?,
            // Nothing shared it with a device that ran by itself.
            shared_bandwidth: self.number("machine.bandwidth_bytes_per_second")?,
            core_bandwidth: self.number("machine.core_bandwidth_bytes_per_second")?,
            flops: self.maybe("machine.flops_per_second", Self::number)?,
            launch_seconds: self.number("machine.launch_seconds")?,
            completion_seconds: self.number("machine.completion_seconds")?,
            efficiency: self.number("machine.efficiency_ratio")?,
        })
    }

    fn device(&self) -> Result<DeviceFigures, RecordError> {
        Ok(DeviceFigures {
            compute_units: self.small("machine.device_units_count")?,
            clock_mhz: self.maybe("machine.device_clock_mhz", Self::small)?,
            memory: self.count("machine.device_memory_bytes")?,
            bandwidth: self.number("machine.device_bandwidth_bytes_per_second")?,
            flops: self.maybe("machine.device_flops_per_second", Self::number)?,
            copy_engines: self.small("machine.copy_engines_count")?,
            turns: self.maybe("machine.turns_ratio", Self::number)? == Some(1.0),
            launch_seconds: self.number("machine.device_launch_seconds")?,
            enqueue_seconds: self.number("machine.device_enqueue_seconds")?,
            completion_seconds: self.number("machine.device_completion_seconds")?,
            efficiency: self.number("machine.device_efficiency_ratio")?,
            link: match self.has("machine.h2d_bytes_per_second") {
                true => Some(self.link()?),
                false => None,
            },
        })
    }

    fn link(&self) -> Result<LinkFigures, RecordError> {
        Ok(LinkFigures {
            h2d: self.number("machine.h2d_bytes_per_second")?,
            d2h: self.number("machine.d2h_bytes_per_second")?,
            both_ways: self.number("machine.both_ways_bytes_per_second")?,
            latency_seconds: self.number("machine.link_latency_seconds")?,
            launch_delay_seconds: self
                .maybe("machine.launch_delay_seconds", Self::number)?
                .unwrap_or(0.0),
        })
    }
}

#[cfg(test)]
mod tests;
