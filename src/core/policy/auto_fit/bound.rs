//! Lower bounds of an iteration of which only the first epochs have a device.

use super::iteration::{Plan, State};

/// What bounds need to know of the epochs that have no device yet.
///
/// Every bound ignores copies that are not certain, gives each such epoch the device where
/// it is fastest, and so never exceeds the time of any map that the given devices allow.
pub(super) struct Bounds {
    /// By epoch: the least seconds of those that wait for it, one after another.
    tail: Vec<f64>,
    /// By number of epochs that have a device: the least seconds of the others.
    left: Vec<f64>,
    /// The same by device, of those that can only run there.
    only: Vec<Vec<f64>>,
    /// Of every map: no iteration is faster.
    least: f64,
}

impl Bounds {
    pub fn new(plan: &Plan) -> Self {
        let devices = plan.situation.costs.devices();
        let epochs = plan.order.len();
        let least: Vec<f64> = (0..epochs)
            .map(|epoch| {
                let all = (0..devices).map(|device| plan.seconds(epoch, device));
                all.fold(f64::INFINITY, f64::min)
            })
            .collect();
        let mut tail = vec![0.0_f64; epochs];
        let mut chain = 0.0_f64;
        let mut left = vec![0.0; epochs + 1];
        let mut only = vec![vec![0.0; devices]; epochs + 1];
        for (position, epoch) in plan.order.iter().copied().enumerate().rev() {
            let whole = least[epoch] + tail[epoch];
            chain = chain.max(whole);
            for before in &plan.situation.epochs[epoch].after {
                tail[*before] = tail[*before].max(whole);
            }
            left[position] = left[position + 1] + least[epoch];
            only[position] = only[position + 1].clone();
            let mut able = (0..devices).filter(|d| plan.seconds(epoch, *d).is_finite());
            if let (Some(device), None) = (able.next(), able.next()) {
                only[position][device] += least[epoch];
            }
        }
        Self {
            tail,
            left,
            only,
            least: chain.max(packed(least, devices)),
        }
    }

    /// The least time of an iteration whose first `given` epochs have led to a state.
    pub fn of(&self, plan: &Plan, state: &State, given: usize) -> f64 {
        let mut bound = self.least.max(state.last);
        for epoch in &plan.order[..given] {
            bound = bound.max(state.end[*epoch] + self.tail[*epoch]);
        }
        for (free, only) in state.free.iter().zip(&self.only[given]) {
            if *only > 0.0 {
                bound = bound.max(free + only);
            }
        }
        bound.max(shared(&state.free, self.left[given]))
    }
}

/// When devices that are free at these times end if they share so many seconds of work
/// evenly. A device that is free later gets none.
fn shared(free: &[f64], work: f64) -> f64 {
    if work <= 0.0 {
        return 0.0;
    }
    let mut free = free.to_vec();
    free.sort_by(f64::total_cmp);
    let mut sum = work;
    for (index, begin) in free.iter().enumerate() {
        sum += begin;
        let level = sum / (index + 1) as f64;
        if free.get(index + 1).is_none_or(|next| level <= *next) {
            return level;
        }
    }
    0.0
}

/// The least time in which so many devices run epochs of these seconds: of the longest
/// `k * devices + 1`, some device has `k + 1`.
fn packed(mut seconds: Vec<f64>, devices: usize) -> f64 {
    seconds.sort_by(|one, other| other.total_cmp(one));
    let mut bound = 0.0_f64;
    let mut count = 1;
    while (count - 1) * devices < seconds.len() {
        let longest = &seconds[..=(count - 1) * devices];
        let fewest = &longest[longest.len().saturating_sub(count)..];
        bound = bound.max(fewest.iter().sum());
        count += 1;
    }
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_devices_share_less() {
        assert_eq!(shared(&[0.0, 0.0], 4.0), 2.0);
        assert_eq!(shared(&[1.0, 0.0], 4.0), 2.5);
        assert_eq!(shared(&[100.0, 0.0, 1.0], 4.0), 2.5);
        assert_eq!(shared(&[3.0, 3.0], 0.0), 0.0);
    }

    #[test]
    fn equal_epochs_are_packed() {
        assert_eq!(packed(vec![1.0; 16], 8), 2.0);
        assert_eq!(packed(vec![1.0; 17], 8), 3.0);
        assert_eq!(packed(vec![5.0, 1.0, 1.0], 2), 5.0);
        assert_eq!(packed(vec![5.0, 4.0, 3.0], 2), 7.0);
        assert_eq!(packed(Vec::new(), 2), 0.0);
    }
}
