use crate::tables::Quotas;

impl Quotas {
    /// Whether a service's quota with this name limits a size family or workload profile. Services spell the same family
    /// differently.
    pub fn limits(&self, service: &str, name: &str, family: &str) -> bool {
        let wanted = bare_family(name);
        let aliases = self
            .alias
            .iter()
            .filter(|row| row.service == service && bare_family(&row.family) == bare_family(family));
        bare_family(family) == wanted || aliases.into_iter().any(|row| bare_family(&row.name) == wanted)
    }
}

/// A family without case, blanks, punctuation, and without `standard` and `family` around it.
pub(crate) fn bare_family(name: &str) -> String {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix("standard").unwrap_or(&name);
    name.strip_suffix("family").unwrap_or(name).to_owned()
}
