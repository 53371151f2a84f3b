//! Cost Management: what was billed, hours late.

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::resources::target::{Target, is_within};
use crate::wire::answer::Answer;

/// The service is this far behind, in seconds.
const LAG: u64 = 8 * 3600;

impl Cloud {
    /// `POST …/Microsoft.CostManagement/query`: one dollar an hour for everything that is billed.
    pub(crate) fn cost(&self, target: &Target) -> Answer {
        let scope = target.key.split("/providers/").next().unwrap_or_default();
        let known = self.now.saturating_sub(LAG);
        let rows: Vec<Value> = self
            .charges
            .iter()
            .filter(|charge| is_within(&charge.key, scope) && charge.from < known)
            .map(|charge| {
                let seconds =
                    u32::try_from(charge.until.unwrap_or(known).min(known) - charge.from).unwrap_or(u32::MAX);
                json!([f64::from(seconds) / 3600.0, charge.key, "USD"])
            })
            .collect();
        if rows.is_empty() {
            return Answer::empty(204);
        }
        let column = |name: &str, kind: &str| json!({"name": name, "type": kind});
        let columns =
            [column("Cost", "Number"), column("ResourceId", "String"), column("Currency", "String")];
        Answer::json(200, json!({"properties": {"nextLink": null, "columns": columns, "rows": rows}}))
    }
}
