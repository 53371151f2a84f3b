//! Assesses choices other than sizes: GPUs of services without them, client libraries, options.

use cudock_facts::finding::Severity;
use cudock_facts::tables::ServiceGpu;
use cudock_facts::version::Date;

use super::assess::{outdated, replacement_of_gpu};
use super::status::Status;
use super::{Assessor, ChoiceFinding, codes};
use crate::choice::Interface;

impl Assessor<'_> {
    /// The text of the tables on unexpected behavior of a service.
    pub(super) fn behavior(&self, service: &str, id: &str) -> Option<String> {
        let rows = &self.facts.services().behavior;
        rows.iter().find(|row| row.service == service && row.id == id).map(|row| row.text.clone())
    }

    /// Assesses a GPU of a container instance.
    pub(super) fn container_gpu(
        &self,
        sku: Option<&str>,
        count: Option<u32>,
        by_option: bool,
    ) -> ChoiceFinding {
        let service = self.facts.services().service.iter().find(|service| service.id == "aci");
        let name = service.map_or("Container Instances", |service| service.name.as_str());
        let end = service.and_then(|service| service.gpu_retired_on);
        let is_retired = service.is_some_and(|service| service.gpu == ServiceGpu::Retired);
        let code = Some(codes::SERVICE_WITHOUT_GPU);
        let mut finding = match end {
            _ if is_retired && end.is_none_or(|end| end <= self.day) => {
                let when = end.map_or_else(String::new, |end| format!(" since {end}"));
                let message = format!("{name} has no GPUs{when}");
                self.finding(Status::Ended { on: end }, code, Severity::Error, message)
            }
            Some(end) => {
                let message = format!("{name} has GPUs until {end}");
                self.finding(Status::Retiring { on: end }, code, Severity::Warning, message)
            }
            None => self.finding(Status::OnSale, None, Severity::Note, format!("{name} has GPUs")),
        };
        let old = self.gpus_of_service(sku, count);
        if finding.code.is_some() {
            finding.replacements = self.profiles_for(&old);
            let names = old.gpu.as_ref().and_then(|gpu| replacement_of_gpu(self.facts, &gpu.id));
            finding.replacements.extend(self.sizes_for((None, &old), names));
            let ids = [
                ("aci", if by_option { "no-gpu-flags" } else { "gpu-passes-validation" }),
                ("container-apps", "profiles-environment-only"),
                ("container-apps", "first-container-only"),
            ];
            finding.notes.extend(ids.iter().filter_map(|(service, id)| self.behavior(service, id)));
        }
        finding.old = Some(old);
        finding
    }

    /// Assesses a client library.
    pub(super) fn interface(&self, interface: Interface, name: &str) -> ChoiceFinding {
        let (library, service, id) = match interface {
            Interface::MachineLearningV1 => ("azureml.core", "ml", "sdk-v1-ended"),
            Interface::BatchBefore15 => ("BatchServiceClient", "batch", "old-client-names"),
        };
        let row = outdated(self.facts, library);
        // The end is a field of the row, or the last date in its text.
        let end = row.and_then(|row| row.retired_on.or_else(|| last_date(&row.status)));
        let (status, severity) = match end {
            Some(end) if end <= self.day => (Status::Ended { on: Some(end) }, Severity::Error),
            Some(end) => (Status::Retiring { on: end }, Severity::Warning),
            None => (Status::Outdated, Severity::Warning),
        };
        let status_text = row.map_or("it was renamed", |row| row.status.trim_end_matches('.'));
        let message = format!("{name}: {}", lower_first(status_text));
        let mut finding = self.finding(status, Some(codes::OLD_INTERFACE), severity, message);
        let instead = row.and_then(|row| row.use_instead.as_ref()).map(|names| format!("Use {names}."));
        finding.notes.extend(instead.into_iter().chain(self.behavior(service, id)));
        finding
    }

    /// Assesses something that ended, with the text and date of a service's behavior, and one more as a note.
    pub(super) fn ended(&self, code: &'static str, service: &str, id: &str, more: &str) -> ChoiceFinding {
        let text = self.behavior(service, id).unwrap_or_default();
        let (status, severity) = match last_date(&text) {
            Some(end) if self.day < end => (Status::Retiring { on: end }, Severity::Warning),
            end => (Status::Ended { on: end }, Severity::Error),
        };
        let mut finding = self.finding(status, Some(code), severity, text.trim_end_matches('.').to_owned());
        finding.notes.extend(self.behavior(service, more));
        finding
    }

    /// Assesses an incomplete reference to a machine image.
    pub(super) fn image(&self, reference: &str) -> ChoiceFinding {
        let row = self.facts.sizes().outdated.iter().find(|row| row.choice.contains("--image"));
        let expected = "expected publisher:offer:sku:version";
        let status = row.map_or(expected, |row| row.status.trim_end_matches('.'));
        let message = format!("{reference}: {}", lower_first(status));
        let mut finding = self.finding(Status::Wrong, Some(codes::IMAGE_CUT_OFF), Severity::Error, message);
        let instead = row.and_then(|row| row.use_instead.as_ref());
        finding.notes.extend(instead.map(|name| format!("With GPU driver and container runtime: {name}.")));
        finding
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

fn last_date(text: &str) -> Option<Date> {
    let parts = text.split(|ch: char| !ch.is_ascii_digit() && ch != '-');
    parts.filter_map(|part| part.parse().ok()).next_back()
}
