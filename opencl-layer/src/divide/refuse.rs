//! What of a single launch keeps it from being divided, whatever is known of its kernel.

use std::borrow::Cow;

use crate::argument::Argument;
use crate::command::Command;
use crate::cut::Cut;
use crate::launch::Launch;
use crate::queue::Queue;

/// Why a launch is not divided, if there is a reason beside its kernel's text.
pub fn reason(
    queue: &Queue,
    command: &Command,
    launch: &Launch,
    cuts: &[Cut],
) -> Option<Cow<'static, str>> {
    if command.fixed_place().is_some() {
        return Some("it uses an image, which is at one place".into());
    }
    if (queue.places.iter()).any(|place| launch.shape_of(*place).is_some()) {
        return Some("the program gives its launches other shapes by device".into());
    }
    let offset = launch.shape.offset.iter().flatten();
    if offset.copied().any(|offset| offset > 0) {
        return Some("the launch has an offset".into());
    }
    if cuts.is_empty() {
        return Some("it has one group along every axis".into());
    }
    if launch.writes().next().is_none() {
        return Some("it writes no buffer".into());
    }
    if launch
        .arguments
        .iter()
        .any(|set| matches!(set.argument, Argument::Sampler(_)))
    {
        return Some("it has a sampler".into());
    }
    overlap(launch).map(Cow::Owned)
}

/// Two arguments that share bytes, one of which is written.
fn overlap(launch: &Launch) -> Option<String> {
    for (written, other) in launch.writes() {
        for (index, mem) in launch.mems() {
            if index != written && mem.overlaps(0..mem.size, other, 0..other.size) {
                return Some(format!(
                    "arguments {} and {} share bytes",
                    index.min(written),
                    index.max(written)
                ));
            }
        }
    }
    None
}

/// The places that can run parts of a launch.
pub fn able(queue: &Queue, launch: &Launch, cut: &Cut) -> Vec<usize> {
    let fits = |place: &usize| {
        let most = launch.kernel.group_limit(*place);
        most.is_some_and(|most| cut.items_of_group() <= most)
    };
    launch.able(queue).filter(fits).collect()
}
