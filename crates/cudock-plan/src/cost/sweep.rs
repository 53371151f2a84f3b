//! Trials of a sweep, each of which reads all of the data.

use super::items::{Copies, Spread};
use super::{RunSetup, Unfit, Usage};

pub(super) fn usage(setup: &RunSetup, trials: u32, at_once: u32, each: u128) -> Result<Usage, Unfit> {
    let workers = u64::from(at_once.min(trials));
    Spread { pieces: u64::from(trials), each, workers, copies: Copies::All }.usage(setup)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::service::ServiceKind;
    use crate::testing::{MINUTE, SECOND, used, workload};
    use crate::workload::{Priority, Work};

    const T4: &str = "Standard_NC4as_T4_v3";

    #[test]
    fn twenty_seven_trials_three_at_a_time_are_nine_waves() {
        let each = Duration::from_secs(20 * 60);
        let sweep = workload(Work::Sweep { trials: 27, at_once: 3, each });
        let usage = used(&sweep, ServiceKind::MlCluster, T4, Priority::Regular).unwrap();
        // 360 s to a node, 20 s pull, 60 s unpack, 5 s ready; then 9 x 20 min.
        assert_eq!(usage.machines, 3);
        assert_eq!(usage.total, 445 * SECOND + 180 * MINUTE);
        // Billed each: 85 s + 180 min = 181 min 25 s, cut to 181 min.
        assert_eq!(usage.bill.start, 3 * 85 * SECOND);
        assert_eq!(usage.bill.work, 3 * (181 * 60 - 85) * SECOND);
    }

    #[test]
    fn a_machine_is_released_when_no_trial_is_left_for_it() {
        // Seven trials, three at a time: one machine does three, two do two. 85 s + 60 min and 85 s + 40 min.
        let each = Duration::from_secs(20 * 60);
        let sweep = workload(Work::Sweep { trials: 7, at_once: 3, each });
        let usage = used(&sweep, ServiceKind::MlCluster, T4, Priority::Regular).unwrap();
        assert_eq!(usage.work, 60 * MINUTE);
        assert_eq!(usage.bill.start + usage.bill.work, (61 + 2 * 41) * MINUTE);
    }
}
