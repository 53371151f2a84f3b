//! Choices that are no sizes: GPUs of services that have none, client libraries, options.

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::tables::ServiceGpu;
use cudock_facts::version::Date;

use super::assess::{Assessment, gpus_of_service, outdated, replacement_of_gpu};
use super::codes;
use super::price::Place;
use super::replacement;
use super::status::Status;
use crate::choice::Interface;

/// What a service does where one would not expect it, in the tables' words.
pub(super) fn behaviour(facts: &Facts, service: &str, id: &str) -> Option<String> {
    let rows = &facts.services().behaviour;
    rows.iter().find(|row| row.service == service && row.id == id).map(|row| row.text.clone())
}

/// A GPU of a container instance.
pub(super) fn container_gpu(
    facts: &Facts,
    day: Date,
    place: &Place<'_>,
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
        assessment.replacements = replacement::profiles(facts, place, &old);
        let words = old.gpu.as_ref().and_then(|gpu| replacement_of_gpu(facts, &gpu.id));
        assessment.replacements.extend(replacement::for_size(facts, day, place, (None, &old), words));
        let ids: &[(&str, &str)] = if by_option {
            &[("aci", "no-gpu-flags"), ("container-apps", "profiles-environment-only")]
        } else {
            &[("aci", "gpu-passes-validation"), ("container-apps", "profiles-environment-only")]
        };
        let first = ("container-apps", "first-container-only");
        assessment
            .notes
            .extend(ids.iter().chain([&first]).filter_map(|(service, id)| behaviour(facts, service, id)));
    }
    assessment.old = Some(old);
    assessment
}

/// A client library.
pub(super) fn interface(facts: &Facts, day: Date, interface: Interface, name: &str) -> Assessment {
    let (word, service, id) = match interface {
        Interface::MachineLearningV1 => ("azureml.core", "ml", "sdk-v1-ended"),
        Interface::BatchBefore15 => ("BatchServiceClient", "batch", "old-client-names"),
    };
    let row = outdated(facts, word);
    // The end is a field of the row, or the last day its words name.
    let end = row.and_then(|row| row.retired_on.or_else(|| last_date(&row.status)));
    let (status, severity) = match end {
        Some(end) if end <= day => (Status::Ended { on: Some(end) }, Severity::Error),
        Some(end) => (Status::Retiring { on: end }, Severity::Warning),
        None => (Status::Outdated, Severity::Warning),
    };
    let words = row.map_or("it has another name now", |row| row.status.trim_end_matches('.'));
    let message = format!("{name}: {}", lower_first(words));
    let mut assessment = Assessment::new(status, Some(codes::OLD_INTERFACE), severity, message);
    let instead = row.and_then(|row| row.use_instead.as_ref()).map(|names| format!("Use {names}."));
    assessment.notes.extend(instead);
    assessment.notes.extend(behaviour(facts, service, id));
    assessment
}

/// Low-priority nodes of Batch.
pub(super) fn low_priority(facts: &Facts, day: Date) -> Assessment {
    ended(
        facts,
        day,
        codes::NO_LOW_PRIORITY,
        "batch",
        "low-priority-ended",
        &["spot-needs-user-subscription"],
    )
}

/// The tag that left the GPU driver out.
pub(super) fn skip_driver(facts: &Facts, day: Date) -> Assessment {
    ended(facts, day, codes::OLD_INTERFACE, "aks", "skip-tag-ended", &["driver-installed"])
}

/// Something whose end a behaviour of a service tells.
fn ended(facts: &Facts, day: Date, code: &'static str, service: &str, id: &str, more: &[&str]) -> Assessment {
    let text = behaviour(facts, service, id).unwrap_or_default();
    let end = last_date(&text);
    let (status, severity) = match end {
        Some(end) if day < end => (Status::Retiring { on: end }, Severity::Warning),
        end => (Status::Ended { on: end }, Severity::Error),
    };
    let mut assessment = Assessment::new(status, Some(code), severity, text.trim_end_matches('.').to_owned());
    assessment.notes.extend(more.iter().filter_map(|id| behaviour(facts, service, id)));
    assessment
}

/// A machine image that is not named in full.
pub(super) fn image(facts: &Facts, reference: &str) -> Assessment {
    let row = facts.sizes().outdated.iter().find(|row| row.choice.contains("--image"));
    let words = row.map_or("an image is publisher:offer:sku:version", |row| row.status.trim_end_matches('.'));
    let message = format!("{reference}: {}", lower_first(words));
    let mut assessment = Assessment::new(Status::Wrong, Some(codes::IMAGE_CUT_OFF), Severity::Error, message);
    let instead = row.and_then(|row| row.use_instead.as_ref());
    assessment.notes.extend(instead.map(|name| format!("With GPU driver and container runtime: {name}.")));
    assessment
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// The last day a text names.
fn last_date(text: &str) -> Option<Date> {
    let words = text.split(|letter: char| !letter.is_ascii_digit() && letter != '-');
    words.filter_map(|word| word.parse().ok()).next_back()
}
