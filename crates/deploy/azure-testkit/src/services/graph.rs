//! Resource Graph: a small part of its query language, over a view that lags.

use serde_json::{Map, Value, json};

use crate::catalog::REGIONS;
use crate::cloud::Cloud;
use crate::resources::resource::Resource;
use crate::resources::target::GROUP_KIND;
use crate::wire::answer::Answer;

impl Cloud {
    /// `POST /providers/Microsoft.ResourceGraph/resources`.
    pub(crate) fn resource_graph(&self, body: &Value) -> Answer {
        let query = body["query"].as_str().unwrap_or_default();
        match self.query(query) {
            Ok(rows) => Answer::json(
                200,
                json!({"totalRecords": rows.len(), "count": rows.len(), "data": rows, "facets": [], "resultTruncated": "false"}),
            ),
            Err(reason) => Answer::error(400, "BadRequest", format!("unsupported query: {reason}")),
        }
    }

    fn query(&self, query: &str) -> Result<Vec<Value>, String> {
        let mut steps = query.split('|').map(str::trim);
        let table = steps.next().unwrap_or_default().to_ascii_lowercase();
        let mut rows: Vec<Value> = match table.as_str() {
            "resourcecontainers" => self.graph_rows(|resource| resource.target.kind == GROUP_KIND),
            "resources" => self.graph_rows(|resource| {
                resource.target.kind != GROUP_KIND
                    && !resource.target.kind.starts_with("microsoft.authorization/")
            }),
            // The rows of a fixed query: quota in all regions.
            "quotaresources" => return Ok(self.quota_rows()),
            _ => return Err(format!("table {table}")),
        };
        for step in steps {
            let (operator, rest) = step.split_once(char::is_whitespace).unwrap_or((step, ""));
            match operator {
                "where" => {
                    let conditions: Vec<&str> = rest.split(" and ").collect();
                    let mut kept = Vec::new();
                    for row in rows {
                        let mut is_kept = true;
                        for condition in &conditions {
                            is_kept &= holds(condition.trim(), &row)?;
                        }
                        if is_kept {
                            kept.push(row);
                        }
                    }
                    rows = kept;
                }
                "project" => {
                    let fields: Vec<&str> = rest.split(',').map(str::trim).collect();
                    rows = rows
                        .iter()
                        .map(|row| {
                            let columns =
                                fields.iter().map(|field| ((*field).to_owned(), row[field].clone()));
                            Value::Object(columns.collect::<Map<_, _>>())
                        })
                        .collect();
                }
                "order" => {}
                _ => return Err(step.to_owned()),
            }
        }
        Ok(rows)
    }

    /// The resources of some time ago: new ones are missing, and deleted ones are still listed.
    fn graph_rows(&self, is_wanted: impl Fn(&Resource) -> bool) -> Vec<Value> {
        let seen = self.now.saturating_sub(self.settings.graph_lag);
        let present =
            self.resources.values().filter(|resource| resource.created <= seen || resource.is_seeded);
        let ghosts = self.ghosts.iter().filter(|(resource, until)| {
            *until > self.now
                && resource.created <= seen
                && !self.resources.contains_key(&resource.target.key)
        });
        let all = present.chain(ghosts.map(|(resource, _)| resource));
        all.filter(|resource| is_wanted(resource))
            .map(|resource| {
                let kind = match resource.target.kind.as_str() {
                    GROUP_KIND => "microsoft.resources/subscriptions/resourcegroups",
                    kind => kind,
                };
                json!({
                    "id": resource.target.id, "name": resource.target.name, "type": kind,
                    "location": resource.location(), "resourceGroup": resource.target.group,
                    "subscriptionId": crate::resources::target::SUBSCRIPTION,
                    "tags": resource.body.get("tags").cloned().unwrap_or(Value::Null),
                    "properties": resource.body["properties"],
                })
            })
            .collect()
    }

    fn quota_rows(&self) -> Vec<Value> {
        let usages = self.usages();
        let row = |region: &str, usage: &Value| {
            let (name, used, limit) = (&usage["name"]["value"], &usage["currentValue"], &usage["limit"]);
            json!({"location": region, "n": name, "used": used, "max": limit})
        };
        REGIONS.iter().flat_map(|region| usages.iter().map(move |usage| row(region, usage))).collect()
    }
}

/// `type =~ 'x'`, `tags['a'] == 'b'`, `isnotempty(tags['a'])`.
fn holds(condition: &str, row: &Value) -> Result<bool, String> {
    for function in ["isnotempty", "isnotnull"] {
        if let Some(argument) =
            condition.strip_prefix(function).and_then(|rest| rest.trim().strip_prefix('('))
        {
            let value = operand(argument.trim_end_matches(')').trim(), row)?;
            return Ok(!value.is_null() && value != "");
        }
    }
    for (operator, ignores_case) in [("=~", true), ("==", false)] {
        let Some((left, right)) = condition.split_once(operator) else { continue };
        let (left, right) = (operand(left.trim(), row)?, operand(right.trim(), row)?);
        return Ok(match (left.as_str(), right.as_str()) {
            (Some(left), Some(right)) if ignores_case => left.eq_ignore_ascii_case(right),
            (left, right) => left.is_some() && left == right,
        });
    }
    Err(condition.to_owned())
}

fn operand(text: &str, row: &Value) -> Result<Value, String> {
    if let Some(literal) = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return Ok(json!(literal));
    }
    if let Some(inner) = text.strip_prefix("tostring(").and_then(|rest| rest.strip_suffix(')')) {
        return operand(inner, row);
    }
    if let Some(key) = text.strip_prefix("tags['").and_then(|rest| rest.strip_suffix("']")) {
        return Ok(row["tags"][key].clone());
    }
    let is_column = row.get(text).is_some();
    if is_column { Ok(row[text].clone()) } else { Err(text.to_owned()) }
}
