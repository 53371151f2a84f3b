//! The activity log.

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::resources::target::{GROUP_KIND, Target};
use crate::state::log_entry::LogEntry;
use crate::time::{parse, utc};
use crate::wire::answer::Answer;

impl Cloud {
    /// Writes an event: what was done to a resource, and how far it is.
    pub(crate) fn record(&mut self, target: &Target, verb: &str, status: &'static str) {
        let operation = match target.kind.as_str() {
            GROUP_KIND => format!("Microsoft.Resources/subscriptions/resourceGroups/{verb}"),
            _ => format!("{}/{verb}", target.type_name),
        };
        self.log.push(LogEntry { time: self.now, operation, status, target: target.clone() });
    }

    /// `GET …/eventtypes/management/values`, for a filter of conditions joined by `and`. The newest event comes first.
    pub(crate) fn activity_log(&self, filter: &str) -> Answer {
        let mut since = None;
        let mut until = self.now.saturating_sub(self.settings.activity_lag);
        let mut group = None;
        let mut resource = None;
        for condition in filter.split(" and ") {
            let Some((field, rest)) = condition.trim().split_once(' ') else { continue };
            let (relation, value) = rest.trim().split_once(' ').unwrap_or((rest, ""));
            let value = value.trim().trim_matches('\'');
            match (field, relation) {
                ("eventTimestamp", "ge") => since = parse(value),
                ("eventTimestamp", "le") => until = until.min(parse(value).unwrap_or(until)),
                ("resourceGroupName", "eq") => group = Some(value.to_ascii_lowercase()),
                ("resourceUri" | "resourceId", "eq") => resource = Some(value.to_ascii_lowercase()),
                _ => return Answer::error(400, "BadRequest", format!("unsupported filter: {condition}")),
            }
        }
        let Some(since) = since else {
            return Answer::error(400, "BadRequest", "The filter must contain eventTimestamp ge.");
        };
        let listed = self.log.iter().rev().filter(|entry| {
            (since..=until).contains(&entry.time)
                && group.as_ref().is_none_or(|name| {
                    entry.target.group.as_ref().is_some_and(|group| group.eq_ignore_ascii_case(name))
                })
                && resource.as_ref().is_none_or(|key| entry.target.key == *key)
        });
        Answer::list(listed.map(render).collect())
    }
}

fn render(entry: &LogEntry) -> Value {
    let name = |value: &str| json!({"value": value, "localizedValue": value});
    json!({
        "eventTimestamp": utc(entry.time),
        "submissionTimestamp": utc(entry.time),
        "resourceId": entry.target.id,
        "resourceGroupName": entry.target.group,
        "operationName": name(&entry.operation),
        "status": name(entry.status),
        "subStatus": name(""),
        "category": name("Administrative"),
        "level": "Informational",
        "caller": crate::state::identity::CLIENT_ID,
    })
}
