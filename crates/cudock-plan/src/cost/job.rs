//! One job on instances that work together.

use super::billing::{BilledTime, Uptime};
use super::start::Startup;
use super::{RunSetup, Unfit, Usage};

pub(super) fn usage(setup: &RunSetup, length: u128) -> Result<Usage, Unfit> {
    let startup = Startup::of(setup.case, setup.mode, setup.bytes());
    let time = setup.scaled_time(length, &startup)?;
    let machines = setup.machines(1)?;
    let up = Uptime { start: startup.billed, work: time.work, lost: time.billed - time.work, idle: 0 };
    let mut bill = BilledTime::default();
    bill.add(setup.case.terms.billing, u64::from(machines), up);
    let total = startup.total().saturating_add(time.wall);
    Ok(Usage {
        mode: setup.mode,
        pace: setup.pace,
        startup,
        machines,
        bill,
        disks: total.saturating_mul(u128::from(machines)),
        lasts: total,
        work: time.work,
        lost: time.wall - time.work,
        total,
        read: setup.read(1, u64::from(machines)),
        starts: 0,
        requests: 0,
    })
}

#[cfg(test)]
mod tests {
    use crate::cost::Unfit;
    use crate::cost::billing::BilledTime;
    use crate::service::ServiceKind;
    use crate::testing::{HOUR, MINUTE, SECOND, job, spot, used};
    use crate::workload::Priority;

    const T4: &str = "Standard_NC4as_T4_v3";

    #[test]
    fn forty_minutes_on_a_machine_are_a_start_and_forty_minutes_cut_to_whole_minutes() {
        // 160 s to a machine (not billed), 3 GB at 150 MB/s = 20 s, 6 GB at 100 MB/s = 60 s, 5 s to be ready: 245 s.
        // Billed: 85 s + 2400 s = 2485 s = 41 min 25 s, of which 25 s do not count and are taken off the work.
        let usage = used(&job(40), ServiceKind::Vm, T4, Priority::Regular).unwrap();
        assert_eq!(usage.total, 245 * SECOND + 40 * MINUTE);
        assert_eq!(usage.work, 40 * MINUTE);
        let bill = BilledTime { start: 85 * SECOND, work: 2375 * SECOND, ..BilledTime::default() };
        assert_eq!((usage.bill, usage.machines), (bill, 1));
    }

    #[test]
    fn container_apps_bill_by_the_second_from_the_pull_on() {
        // 40 s of platform (not billed), 3 GB at 200 MB/s = 15 s, 6 GB at 1 GB/s = 6 s, 5 s to be ready.
        let usage = used(&job(40), ServiceKind::ContainerApps, "Consumption-GPU-NC8as-T4", Priority::Regular);
        let usage = usage.unwrap();
        assert_eq!(usage.total, 66 * SECOND + 40 * MINUTE);
        assert_eq!(usage.bill, BilledTime { start: 26 * SECOND, work: 40 * MINUTE, ..BilledTime::default() });
    }

    #[test]
    fn instances_that_work_together_are_all_paid_for() {
        let mut workload = job(60);
        workload.gpu.instances = 4;
        let alone = used(&job(60), ServiceKind::Vm, T4, Priority::Regular).unwrap();
        let usage = used(&workload, ServiceKind::Vm, T4, Priority::Regular).unwrap();
        assert_eq!((usage.machines, usage.total), (4, alone.total));
        assert_eq!(usage.bill.work, 4 * alone.bill.work);
        assert_eq!(usage.disks, 4 * usage.total);
    }

    #[test]
    fn a_given_speed_shortens_the_work() {
        let mut workload = job(60);
        workload.gpu.speeds.insert("A100-80".into(), 4000);
        let usage = used(&workload, ServiceKind::Vm, "Standard_NC24ads_A100_v4", Priority::Regular).unwrap();
        assert_eq!(usage.work, 15 * MINUTE);
    }

    #[test]
    fn a_share_of_a_gpu_does_its_share_of_the_work() {
        let mut workload = job(60);
        workload.gpu.measured_on = Some("A10".into());
        let whole = used(&workload, ServiceKind::Vm, "Standard_NV36ads_A10_v5", Priority::Regular).unwrap();
        let half = used(&workload, ServiceKind::Vm, "Standard_NV18ads_A10_v5", Priority::Regular).unwrap();
        assert_eq!((whole.work, half.work), (HOUR, 2 * HOUR));
    }

    #[test]
    fn a_speed_of_zero_never_ends() {
        let mut workload = job(60);
        workload.gpu.speeds.insert("T4".into(), 0);
        assert_eq!(used(&workload, ServiceKind::Vm, T4, Priority::Regular), Err(Unfit::ZeroSpeed));
    }

    #[test]
    fn a_missed_deadline_says_how_long_it_takes() {
        let mut workload = job(60);
        workload.constraints.deadline = Some(std::time::Duration::from_secs(3600));
        let unfit = used(&workload, ServiceKind::Vm, T4, Priority::Regular);
        assert_eq!(unfit, Err(Unfit::Deadline(HOUR + 245 * SECOND)));
    }

    #[test]
    fn machine_learning_ends_a_job_after_21_days_and_on_spot_after_7() {
        let mut workload = job(10 * 24 * 60);
        workload.spot = Some(spot(0));
        assert!(used(&workload, ServiceKind::MlCluster, T4, Priority::Regular).is_ok());
        let unfit = used(&workload, ServiceKind::MlCluster, T4, Priority::Spot);
        assert!(matches!(unfit, Err(Unfit::Lifetime { most, .. }) if most == 7 * 24 * HOUR), "{unfit:?}");
    }

    #[test]
    fn only_spot_is_evicted() {
        let mut workload = job(60);
        workload.spot = Some(spot(100));
        let regular = used(&workload, ServiceKind::Vm, T4, Priority::Regular).unwrap();
        let spot = used(&workload, ServiceKind::Vm, T4, Priority::Spot).unwrap();
        assert_eq!(regular.lost, 0);
        // e^0.1 - 1 = 0.105171 evictions, each a start of 245 s, and 0.105171 / 0.1 h of work in place of 1 h:
        // 25.767 + 186.153 = 211.92 s.
        assert_eq!(spot.lost.div_ceil(SECOND), 212);
        assert!(spot.bill.lost < spot.lost, "the wait for a machine is not billed");
    }
}
