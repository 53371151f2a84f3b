//! Positions of labels next to their lines, without overlap.

/// Positions between `low` and `high`, at least `apart` from each other, for labels that belong at `wanted`. They keep their
/// order; labels that would overlap are moved as a group, as little as possible. If they do not all fit, they are spaced
/// evenly.
#[allow(clippy::cast_precision_loss, reason = "a handful of labels")]
pub(super) fn spread(wanted: &[f64], apart: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    let at = |index: usize| wanted.get(index).copied().unwrap_or(low);
    order.sort_by(|a, b| at(*a).total_cmp(&at(*b)).then(a.cmp(b)));
    let gaps = order.len().saturating_sub(1) as f64;
    let apart = if gaps > 0.0 { apart.min((high - low) / gaps) } else { apart };
    // Groups of labels that touch: where the group begins, and its members.
    let mut groups: Vec<(f64, Vec<usize>)> = Vec::new();
    for index in order {
        groups.push((at(index).clamp(low, high), vec![index]));
        while let [.., (above, upper), (below, lower)] = groups.as_slice() {
            let end = above + apart * upper.len() as f64;
            if *below >= end {
                break;
            }
            let members: Vec<usize> = upper.iter().chain(lower).copied().collect();
            groups.truncate(groups.len() - 2);
            groups.push((begin_of(&members, wanted, apart, low, high), members));
        }
    }
    let mut positions = vec![low; wanted.len()];
    for (begin, members) in groups {
        for (number, index) in members.into_iter().enumerate() {
            let position = begin + apart * number as f64;
            if let Some(slot) = positions.get_mut(index) {
                *slot = position;
            }
        }
    }
    positions
}

/// The start of a group that brings its members nearest to the positions they want, within the
/// bounds.
#[allow(clippy::cast_precision_loss, reason = "a handful of labels")]
fn begin_of(members: &[usize], wanted: &[f64], apart: f64, low: f64, high: f64) -> f64 {
    let count = members.len() as f64;
    let begins = members
        .iter()
        .enumerate()
        .map(|(number, index)| wanted.get(*index).copied().unwrap_or(low) - apart * number as f64);
    let middle = begins.sum::<f64>() / count;
    middle.clamp(low, (high - apart * (count - 1.0)).max(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_with_room_stay_where_they_are() {
        assert_eq!(spread(&[10.0, 50.0, 90.0], 20.0, 0.0, 100.0), [10.0, 50.0, 90.0]);
    }

    #[test]
    fn labels_that_touch_are_moved_apart_around_their_middle() {
        assert_eq!(spread(&[50.0, 50.0, 50.0], 20.0, 0.0, 100.0), [30.0, 50.0, 70.0]);
        assert_eq!(spread(&[98.0, 99.0], 20.0, 0.0, 100.0), [80.0, 100.0]);
    }

    #[test]
    fn whatever_is_wanted_nothing_touches_and_nothing_leaves_the_paper() {
        for seed in 0_u32..200 {
            let wanted: Vec<f64> = (0..8).map(|n: u32| f64::from((seed * 37 + n * n * 53) % 101)).collect();
            let mut positions = spread(&wanted, 12.0, 0.0, 100.0);
            positions.sort_by(f64::total_cmp);
            assert!(
                positions.iter().all(|position| (-1e-9..=100.0 + 1e-9).contains(position)),
                "{positions:?}"
            );
            assert!(
                positions.windows(2).all(|two| two[1] - two[0] > 12.0 - 1e-9),
                "{wanted:?} {positions:?}"
            );
        }
    }

    #[test]
    fn too_many_labels_are_packed_evenly() {
        assert_eq!(spread(&[5.0; 5], 100.0, 0.0, 100.0), [0.0, 25.0, 50.0, 75.0, 100.0]);
    }
}
