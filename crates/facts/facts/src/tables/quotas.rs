use serde::{Deserialize, Serialize};

use super::header::table_file;

table_file! {
    /// `azure_quotas.toml`: names of quotas that differ from those of Compute.
    pub struct Quotas = "azure_quotas" {
        pub alias: Vec<QuotaAlias> by |row| format!("{}/{}/{}", row.service, row.family, row.name),
    }
}

/// A service's name for the quota of a size family or a workload profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaAlias {
    pub service: String,
    /// The quota family of sizes, as Compute spells it, or the name of a workload profile.
    pub family: String,
    pub name: String,
    pub source: Vec<String>,
}
