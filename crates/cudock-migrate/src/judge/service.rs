//! Assesses choices other than sizes: GPUs of services without them, client libraries, options.

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::tables::ServiceGpu;
use cudock_facts::version::Date;

use super::assess::{Assessment, gpus_of_service, outdated, replacement_of_gpu};
use super::codes;
use super::replacement;
use super::status::Status;
use crate::choice::Interface;

/// The text of the tables on unexpected behavior of a service.
pub(super) fn behavior(facts: &Facts, service: &str, id: &str) -> Option<String> {
    let rows = &facts.services().behaviour;
    rows.iter().find(|row| row.service == service && row.id == id).map(|row| row.text.clone())
}

/// Assesses a GPU of a container instance.
pub(super) fn container_gpu(
    facts: &Facts,
    day: Date,
    region: Option<&str>,
    sku: Option<&str>,
    count: Option<u32>,
    by_option: bool,
) -> Assessment {
    let service = facts.services().service.iter().find(|service| service.id == "aci");
    let name = service.map_or("Container Instances", |service| service.name.as_str());
    let end = service.and_then(|service| service.gpu_retired_on);
    let over =
        service.is_some_and(|service| service.gpu == ServiceGpu::Retired) && end.is_none_or(|end| end <= day);
    let (status, code, severity, message) = match end {
        _ if over => {
            let when = end.map_or_else(String::new, |end| format!(" since {end}"));
            let message = format!("{name} has no GPUs{when}");
            (Status::Ended { on: end }, Some(codes::SERVICE_WITHOUT_GPU), Severity::Error, message)
        }
        Some(end) => {
            let message = format!("{name} has GPUs until {end}");
            (Status::Retiring { on: end }, Some(codes::SERVICE_WITHOUT_GPU), Severity::Warning, message)
        }
        None => (Status::OnSale, None, Severity::Note, format!("{name} has GPUs")),
    };
    let old = gpus_of_service(facts, sku, count);
    let mut assessment = Assessment::new(status, code, severity, message);
    if code.is_some() {
        assessment.replacements = replacement::profiles(facts, region, &old);
        let names = old.gpu.as_ref().and_then(|gpu| replacement_of_gpu(facts, &gpu.id));
        assessment.replacements.extend(replacement::for_size(facts, day, region, (None, &old), names));
        let ids = [
            ("aci", if by_option { "no-gpu-flags" } else { "gpu-passes-validation" }),
            ("container-apps", "profiles-environment-only"),
            ("container-apps", "first-container-only"),
        ];
        assessment.notes.extend(ids.iter().filter_map(|(service, id)| behavior(facts, service, id)));
    }
    assessment.old = Some(old);
    assessment
}

/// Assesses a client library.
pub(super) fn interface(facts: &Facts, day: Date, interface: Interface, name: &str) -> Assessment {
    let (library, service, id) = match interface {
        Interface::MachineLearningV1 => ("azureml.core", "ml", "sdk-v1-ended"),
        Interface::BatchBefore15 => ("BatchServiceClient", "batch", "old-client-names"),
    };
    let row = outdated(facts, library);
    // The end is a field of the row, or the last date in its text.
    let end = row.and_then(|row| row.retired_on.or_else(|| last_date(&row.status)));
    let (status, severity) = match end {
        Some(end) if end <= day => (Status::Ended { on: Some(end) }, Severity::Error),
        Some(end) => (Status::Retiring { on: end }, Severity::Warning),
        None => (Status::Outdated, Severity::Warning),
    };
    let status_text = row.map_or("it was renamed", |row| row.status.trim_end_matches('.'));
    let message = format!("{name}: {}", lower_first(status_text));
    let mut assessment = Assessment::new(status, Some(codes::OLD_INTERFACE), severity, message);
    let instead = row.and_then(|row| row.use_instead.as_ref()).map(|names| format!("Use {names}."));
    assessment.notes.extend(instead);
    assessment.notes.extend(behavior(facts, service, id));
    assessment
}

/// Assesses low-priority nodes of Batch.
pub(super) fn low_priority(facts: &Facts, day: Date) -> Assessment {
    let more = "spot-needs-user-subscription";
    ended(facts, day, codes::NO_LOW_PRIORITY, "batch", "low-priority-ended", more)
}

/// Assesses the tag that skips the GPU driver.
pub(super) fn skip_driver(facts: &Facts, day: Date) -> Assessment {
    ended(facts, day, codes::OLD_INTERFACE, "aks", "skip-tag-ended", "driver-installed")
}

/// Assesses something that ended, with the text and date of a service's behavior, and one more as a note.
fn ended(facts: &Facts, day: Date, code: &'static str, service: &str, id: &str, more: &str) -> Assessment {
    let text = behavior(facts, service, id).unwrap_or_default();
    let end = last_date(&text);
    let (status, severity) = match end {
        Some(end) if day < end => (Status::Retiring { on: end }, Severity::Warning),
        end => (Status::Ended { on: end }, Severity::Error),
    };
    let mut assessment = Assessment::new(status, Some(code), severity, text.trim_end_matches('.').to_owned());
    assessment.notes.extend(behavior(facts, service, more));
    assessment
}

/// Assesses an incomplete reference to a machine image.
pub(super) fn image(facts: &Facts, reference: &str) -> Assessment {
    let row = facts.sizes().outdated.iter().find(|row| row.choice.contains("--image"));
    let status = row.map_or("expected publisher:offer:sku:version", |row| row.status.trim_end_matches('.'));
    let message = format!("{reference}: {}", lower_first(status));
    let mut assessment = Assessment::new(Status::Wrong, Some(codes::IMAGE_CUT_OFF), Severity::Error, message);
    let instead = row.and_then(|row| row.use_instead.as_ref());
    assessment.notes.extend(instead.map(|name| format!("With GPU driver and container runtime: {name}.")));
    assessment
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

fn last_date(text: &str) -> Option<Date> {
    let parts = text.split(|ch: char| !ch.is_ascii_digit() && ch != '-');
    parts.filter_map(|part| part.parse().ok()).next_back()
}
