//! How a deployment is deleted from the inside, whatever Azure answers.

use std::time::Duration;

use cudock_azure::Call;
use cudock_watchdog::{DeletionCalls, DeletionEnd, EndReason};
use proptest::prelude::*;

use crate::simulation::{Course, dollars, gpu, limits, sample, seconds, simulate};

const REAPER: &str = "POST /subscriptions/s/resourceGroups/cudock-0123456789ab-reaper/providers/Microsoft.Logic/workflows/reaper/triggers/At_the_deadline/run?api-version=2019-05-01";
const GROUP: &str = "DELETE /subscriptions/s/resourceGroups/cudock-0123456789ab?api-version=2021-04-01&forceDeletionTypes=Microsoft.Compute%2FvirtualMachines";
const DEALLOCATE: &str = "POST /subscriptions/s/resourceGroups/cudock-0123456789ab/providers/Microsoft.Compute/virtualMachines/main/deallocate?api-version=2024-07-01";

fn calls() -> DeletionCalls {
    DeletionCalls::of_run("s", "0123456789ab", Some("main"))
}

/// Deletes at once, with an Azure that answers like this.
fn delete(calls: &DeletionCalls, mut azure: impl FnMut(Duration, &str) -> Option<u16>) -> Course {
    let limits = limits(None, Some(dollars(0, 1)));
    simulate(&limits, calls, |_| sample(gpu(100)), move |now, call: &Call| azure(now, call.method.as_str()))
}

/// Answers each kind of request with its own status.
fn delete_by(
    calls: &DeletionCalls,
    reaper: Option<u16>,
    group: Option<u16>,
    deallocate: Option<u16>,
) -> Course {
    let limits = limits(None, Some(dollars(0, 1)));
    simulate(
        &limits,
        calls,
        |_| sample(gpu(100)),
        move |_, call: &Call| match call.path.as_str() {
            path if path.contains("/triggers/") => reaper,
            path if path.contains("/deallocate") => deallocate,
            _ => group,
        },
    )
}

fn kinds(course: &Course) -> Vec<&str> {
    course.sent.iter().map(|(_, call)| call.as_str()).collect()
}

#[test]
fn the_reaper_is_called_first_and_the_group_is_deleted_if_it_fails() {
    let course = delete_by(&calls(), Some(202), Some(202), None);
    assert_eq!(kinds(&course), [REAPER, GROUP]);
    assert_eq!(
        (course.end, course.ended_at),
        (DeletionEnd::Deleted, seconds(300)),
        "the reaper had five minutes"
    );
    for reaper in [None, Some(403), Some(404), Some(500)] {
        let course = delete_by(&calls(), reaper, Some(202), None);
        assert_eq!(kinds(&course), [REAPER, GROUP], "{reaper:?}");
        assert_eq!((course.end, course.ended_at), (DeletionEnd::Deleted, Duration::ZERO));
    }
    assert_eq!(
        delete_by(&calls(), Some(404), Some(404), None).end,
        DeletionEnd::Deleted,
        "it is gone already"
    );
}

#[test]
fn a_role_that_takes_effect_late_is_waited_for() {
    let course = delete(&calls(), |now, method| {
        Some(if method == "DELETE" && now >= seconds(600) { 202 } else { 403 })
    });
    assert_eq!(course.end, DeletionEnd::Deleted);
    assert_eq!(course.ended_at, seconds(600));
    assert_eq!(course.sent.len(), 42, "both every 30 s");
}

#[test]
fn after_fifteen_minutes_of_refusals_the_machine_is_deallocated() {
    let course = delete_by(&calls(), Some(403), Some(403), Some(202));
    assert_eq!((course.end, course.ended_at), (DeletionEnd::Deallocated, seconds(900)));
    assert_eq!(kinds(&course).last(), Some(&DEALLOCATE));
    let course = delete_by(&calls(), Some(403), Some(403), Some(403));
    assert_eq!((course.end, course.ended_at), (DeletionEnd::Failed, seconds(960)));
    let without_vm = DeletionCalls::of_run("s", "0123456789ab", None);
    assert_eq!(delete_by(&without_vm, Some(403), None, None).end, DeletionEnd::Failed);
    assert_eq!(delete_by(&DeletionCalls::default(), None, None, None).end, DeletionEnd::Failed);
}

#[test]
fn the_log_says_why_and_what_was_answered() {
    let course = delete_by(&calls(), Some(403), Some(202), None);
    assert!(matches!(course.reason, EndReason::Budget(_)));
    assert_eq!(course.log[0], "deleting the deployment: budget used up: $0.00 spent");
    assert!(course.log[1].ends_with("/triggers/At_the_deadline/run: 403"), "{:?}", course.log);
    assert_eq!(course.log[2], "DELETE /subscriptions/s/resourceGroups/cudock-0123456789ab: 202");
}

proptest! {
    #[test]
    fn every_deletion_ends(
        has in any::<[bool; 3]>(),
        statuses in prop::collection::vec(prop::option::of(prop::sample::select(vec![200_u16, 202, 204, 400, 401, 403, 404, 409, 429, 500, 503])), 1..20),
    ) {
        let all = calls();
        let some = DeletionCalls {
            reaper: all.reaper.filter(|_| has[0]),
            group: all.group.filter(|_| has[1]),
            deallocate: all.deallocate.filter(|_| has[2]),
        };
        let mut answers = statuses.into_iter().cycle();
        let mut last = None;
        let course = delete(&some, |_, _| {
            last = answers.next().unwrap();
            last
        });
        // Fifteen minutes, the time of a reaper that began just before, and the attempts to deallocate.
        prop_assert!(course.ended_at <= seconds(900 + 330 + 90), "{:?}", course.ended_at);
        prop_assert!(course.sent.len() <= 70, "{}", course.sent.len());
        if course.end != DeletionEnd::Failed {
            prop_assert!(matches!(last, Some(200..=299 | 404)));
        }
    }
}
