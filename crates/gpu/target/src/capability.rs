//! Finds the compute capability of a GPU by the names that users give it.

use cudock_base::UsageError;
use cudock_facts::Facts;
use cudock_facts::lookup::NameMatch;
use cudock_facts::version::{Capability, SmArch};

/// All compute capabilities of the tables.
pub fn capabilities(facts: &Facts) -> Vec<Capability> {
    facts.drivers().architecture.iter().flat_map(|row| row.capabilities.iter().copied()).collect()
}

/// The compute capability of a name: a target such as `sm_75`, an Azure size, or a GPU.
pub fn capability_named(facts: &Facts, name: &str) -> Result<Capability, UsageError> {
    if let Ok(arch) = name.parse::<SmArch>() {
        let known = capabilities(facts);
        return known.contains(&arch.capability()).then(|| arch.capability()).ok_or_else(|| {
            let known: Vec<String> = known.iter().map(|card| format!("sm_{}", card.number())).collect();
            UsageError::new(format!(
                "unknown target `{name}`: no GPU has compute capability {}",
                arch.capability()
            ))
            .hint(format!("known targets: {}", known.join(", ")))
        });
    }
    if let NameMatch::One(size) = facts.sizes().find(name) {
        let gpu = size.gpu.as_deref().and_then(|gpu| facts.gpus().find(gpu).one());
        return gpu
            .and_then(|gpu| gpu.capability)
            .ok_or_else(|| UsageError::new(format!("the size {name} has no NVIDIA GPU, or an unknown one")));
    }
    let found = facts.gpus().find(name);
    if let NameMatch::NotFound(near) = &found {
        let message = format!("`{name}` is not a GPU, an Azure size or a target such as sm_75");
        return Err(UsageError::new(message).near(near));
    }
    let mut capabilities: Vec<Capability> = found.rows().iter().filter_map(|gpu| gpu.capability).collect();
    capabilities.dedup();
    match capabilities.as_slice() {
        [one] => Ok(*one),
        [] => Err(UsageError::new(format!("{name} is not an NVIDIA GPU"))),
        _ => Err(UsageError::new(format!("`{name}` matches several GPUs"))
            .hint("run `cudock facts gpu` for a list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_sizes_and_gpus_have_a_capability() {
        let facts = Facts::embedded();
        for (name, expected) in [("sm_75", "7.5"), ("Standard_NC4as_T4_v3", "7.5"), ("H100", "9.0")] {
            assert_eq!(capability_named(&facts, name).unwrap().to_string(), expected, "{name}");
        }
        for (name, expected) in [
            ("sm_76", "unknown target `sm_76`: no GPU has compute capability 7.6"),
            ("T5", "`T5` is not a GPU, an Azure size or a target such as sm_75"),
        ] {
            assert_eq!(capability_named(&facts, name).unwrap_err().to_string(), expected);
        }
    }
}
