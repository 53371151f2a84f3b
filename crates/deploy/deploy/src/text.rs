//! Reports as people read them.

use std::time::Duration;

use cudock_azure::{Outputs, Step};
use cudock_base::Usd;
use cudock_base::text::format::{age, count, duration};
use cudock_base::text::table::{Align, TextTable};
use cudock_plan::report::format::{dollars, hourly};

use crate::cost::{CostReport, DeploymentCost};
use crate::create::phase::PhaseProgress;
use crate::create::run::PlannedDeployment;
use crate::delete::gc::GcReport;
use crate::journal::DeploymentRecord;
use crate::names::phase_activity;
use crate::observe::DeploymentSummary;
use crate::observe::verify::{DeviceVerdict, VerifyReport};

/// Progress in one line: "pulling image, 3 min 10 s, billed $0.04".
pub fn progress(progress: &PhaseProgress<'_>) -> String {
    let mut parts = vec![phase_activity(progress.phase).to_owned()];
    if !progress.elapsed.is_zero() {
        parts.push(duration(progress.elapsed));
    }
    parts.extend(progress.billed.map(|billed| format!("billed {}", dollars(billed))));
    let line = parts.join(", ");
    match progress.detail {
        Some(detail) => format!("{line} ({detail})"),
        None => line,
    }
}

/// Describes a deployment and its price before it begins.
pub fn announcement(planned: &PlannedDeployment) -> String {
    let PlannedDeployment { spec, deployment } = planned;
    let size = spec.size.as_deref().unwrap_or("no size");
    let spot = if spec.is_spot { ", Spot" } else { "" };
    let outputs = spec.outputs.as_ref().map(|outputs| Outputs::place(&outputs.storage, &spec.run_id));
    let outputs = outputs.map_or_else(String::new, |place| format!(", outputs in {place}"));
    format!(
        "{} on {} in {} ({size}{spot}), {}, deleted by Azure at {}{outputs}",
        deployment.name,
        deployment.service.title(),
        deployment.region,
        price(deployment.price_per_hour),
        spec.expires,
    )
}

fn price(per_hour: Usd) -> String {
    if per_hour == Usd::ZERO { "price unknown".to_owned() } else { format!("${} per hour", hourly(per_hour)) }
}

/// Every request of a deployment, as it would be sent.
pub fn dry_run(planned: &PlannedDeployment) -> String {
    let deployment = &planned.deployment;
    let losses = deployment
        .losses
        .iter()
        .map(|loss| format!("# {}: {} [{}]", loss.severity.name(), loss.message, loss.code));
    let requests = (1..).zip(&deployment.steps).map(|(number, step)| request(number, step));
    let deleted = format!("\n# deleted by {}:", count(deployment.cleanup.len(), "request"));
    let deletions = deployment.cleanup.iter().map(|step| format!("{} {}", step.call.method, step.call.path));
    let lines = std::iter::once(format!("# {}", announcement(planned))).chain(losses).chain(requests);
    lines.chain([deleted]).chain(deletions).collect::<Vec<_>>().join("\n")
}

fn request(number: usize, step: &Step) -> String {
    let billed = if step.is_billed { ", billed from here on" } else { "" };
    let head = format!("\n# {number} {}{billed}\n{} {}", step.id, step.call.method, step.call.path);
    match &step.call.body {
        Some(body) => format!("{head}\n{:#}", body.redacted()),
        None => head,
    }
}

/// The deployments of `ps`.
pub fn ps(deployments: &[DeploymentSummary]) -> TextTable {
    let mut table = TextTable::report([
        ("DEPLOYMENT", Align::Left),
        ("TARGET", Align::Left),
        ("SIZE", Align::Left),
        ("REGION", Align::Left),
        ("STATE", Align::Left),
        ("AGE", Align::Right),
        ("USD/H", Align::Right),
        ("USD", Align::Right),
        ("URL", Align::Left),
    ]);
    for deployment in deployments {
        let name = &deployment.deployment;
        let state = match deployment.exit_code {
            Some(code) => format!("{} ({code})", name.state),
            None => name.state.to_owned(),
        };
        table.row(vec![
            name.name.clone(),
            name.service.to_owned(),
            name.size.clone().unwrap_or_default(),
            name.region.clone(),
            state,
            age(Duration::from_secs(deployment.age)),
            hourly(deployment.cost_per_hour),
            deployment.cost_so_far.rounded(),
            deployment.url.clone().unwrap_or_default(),
        ]);
    }
    table
}

/// One line about the deleted deployment.
pub fn deleted(record: &DeploymentRecord) -> String {
    let cost = match (record.billed.from, record.billed.until) {
        (None, _) => "never billed".to_owned(),
        (Some(_), Some(end)) => format!(
            "billed for {}{}: {}",
            if record.billed.is_at_most { "at most " } else { "" },
            duration(record.billed_length(end)),
            dollars(record.billed_cost(end))
        ),
        (Some(_), None) => "the end of billing is not in Azure's activity log yet (`cudock cost`)".to_owned(),
    };
    format!("{}: deleted, {cost}", record.name)
}

/// The results of `gc`, one line each.
pub fn gc(report: &GcReport) -> Vec<String> {
    let mut lines: Vec<String> = report
        .found
        .iter()
        .map(|leftover| {
            let name = leftover.name.as_deref().unwrap_or("unnamed");
            let (run_id, reason) = (&leftover.run_id, &leftover.reason);
            let outcome = match (&leftover.error, leftover.deleted) {
                _ if leftover.kept => format!("not deleted: `cudock gc --run {run_id}` does it"),
                (Some(error), _) => format!("not deleted: {error}"),
                (None, true) => "deleted".to_owned(),
                (None, false) => "would be deleted".to_owned(),
            };
            let expires = leftover.expires.as_ref().filter(|_| leftover.kept);
            let expires = expires.map_or_else(String::new, |time| format!(", and it expires at {time}"));
            format!("{name} ({run_id}): {reason}{expires}; {outcome}")
        })
        .collect();
    if lines.is_empty() {
        lines.push("nothing was left behind".to_owned());
    }
    lines
}

/// The report of `cost`: the totals, then the table.
pub fn cost(report: &CostReport) -> (Vec<String>, TextTable) {
    let mut lines = vec![
        format!(
            "now: {} per hour, {} so far, {} until everything expires",
            dollars(report.per_hour),
            dollars(report.so_far),
            dollars(report.until_expiry)
        ),
        format!("{}: {}", report.month, dollars(report.this_month)),
    ];
    for deployment in &report.deployments {
        lines.push(deployment_line(deployment));
        lines.extend(phases_line(deployment));
        lines.extend(alternative_line(deployment));
    }
    let mut table = TextTable::report([
        ("WORKLOAD", Align::Left),
        ("RUNS", Align::Right),
        ("BILLED", Align::Right),
        ("LOST", Align::Right),
        ("USD", Align::Right),
    ]);
    for workload in &report.workloads {
        let time =
            |seconds: u64| if seconds == 0 { String::new() } else { duration(Duration::from_secs(seconds)) };
        table.row(vec![
            workload.name.clone(),
            workload.deployments.to_string(),
            time(workload.billed_seconds),
            time(workload.lost_seconds),
            workload.cost.rounded(),
        ]);
    }
    (lines, table)
}

fn deployment_line(deployment: &DeploymentCost) -> String {
    let rest = deployment
        .until_expiry
        .map_or_else(String::new, |total| format!(", {} until it expires", dollars(total)));
    format!(
        "{}: {}, billed for {}{}, {}{rest}",
        deployment.deployment.name,
        deployment.deployment.state,
        if deployment.exact { "" } else { "at most " },
        duration(Duration::from_secs(deployment.billed_seconds)),
        dollars(deployment.cost),
    )
}

fn phases_line(deployment: &DeploymentCost) -> Option<String> {
    let phases: Vec<String> = deployment
        .phases
        .iter()
        .map(|entry| {
            let billed = if entry.billed { "" } else { " (free)" };
            format!("{} {}{billed}", entry.phase, duration(Duration::from_secs(entry.seconds)))
        })
        .collect();
    (!phases.is_empty()).then(|| format!("  {}", phases.join(", ")))
}

fn alternative_line(deployment: &DeploymentCost) -> Option<String> {
    let other = deployment.alternative.as_ref()?;
    Some(format!(
        "  {} on {} in {} ({}) would have cost {}",
        other.size,
        other.service,
        other.region,
        other.priority,
        dollars(other.cost)
    ))
}

/// The verdict of `verify`, and what to do next.
pub fn verify(report: &VerifyReport) -> Vec<String> {
    let paid = match &report.paid_gpu {
        Some(gpu) => format!("{} {gpu}", report.paid_count),
        None => count(usize::try_from(report.paid_count).unwrap_or(usize::MAX), "GPU"),
    };
    let name = &report.deployment.name;
    let found = if report.found.is_empty() { "no GPU".to_owned() } else { report.found.join(", ") };
    match report.verdict {
        DeviceVerdict::Complete => vec![format!("{name}: sees {found}, as paid for")],
        DeviceVerdict::Missing | DeviceVerdict::Different => {
            vec![format!("{name}: sees {found}, but {paid} are paid for")]
        }
        DeviceVerdict::Unknown => vec![
            format!("{name}: its log lists no GPU; {paid} are paid for"),
            "let the program run `nvidia-smi -L` when it starts".to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use cudock_azure::Phase;

    use super::*;

    #[test]
    fn progress_has_the_phase_the_time_and_the_bill() {
        let pulling = PhaseProgress {
            phase: Phase::Pull,
            elapsed: Duration::from_secs(190),
            billed: Some(Usd::from_cents(4)),
            detail: None,
        };
        assert_eq!(progress(&pulling), "pulling image, 3 min 10 s, billed $0.04");
        let creating = PhaseProgress::beginning(Phase::Create, Some("group"));
        assert_eq!(progress(&creating), "creating resources (group)");
    }
}
