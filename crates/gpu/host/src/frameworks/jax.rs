//! JAX, which uses GPUs through a plugin.

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::version::{CudaRelease, SmArch};

use super::{Build, MissingLibraryEffect, Support, ptx_isa};
use crate::host::{Distribution, PythonEnvironment};

pub(super) fn build(facts: &Facts, python: &PythonEnvironment) -> Option<Build> {
    let jax = python.get("jax").or_else(|| python.get("jaxlib"))?;
    let plugin = python
        .distributions
        .iter()
        .find(|found| found.name.starts_with("jax-cuda") && found.name.ends_with("-plugin"));
    let Some(plugin) = plugin else {
        let fix =
            "pip install -U 'jax[cuda13]' (or cuda12 for drivers before R580), if it should use the GPU"
                .to_owned();
        let reason = "has no CUDA plugin, it uses the CPU".to_owned();
        let support = Support::Cpu { reason, severity: Severity::Warning, fix };
        let path = Some(jax.path.clone());
        return Some(Build::new("jax", jax.version.to_string(), "CPU build".to_owned(), path, support));
    };
    let row = facts.frameworks().jax_plugin(&plugin.name, &plugin.version);
    let cuda = row.and_then(|row| row.built_with).map(CudaRelease::version);
    // The name of the package has the major version, even if the tables do not.
    let named = plugin.name.strip_prefix("jax-cuda").and_then(|rest| rest.split('-').next()?.parse().ok());
    let label = format!("{} {}", plugin.name, plugin.version);
    let path = Some(plugin.path.clone());
    Some(Build {
        cuda_major: row.map(|row| row.cuda_major).or(named),
        cuda,
        min_driver: row.map(|row| row.min_driver),
        sass: row.and_then(|row| row.sass.clone()).or_else(|| nearest_code(facts, plugin).map(<[_]>::to_vec)),
        ptx: row.and_then(|row| row.ptx.clone()),
        ptx_isa: ptx_isa(facts, cuda),
        without: MissingLibraryEffect::UsesCpu {
            fix: "pip install 'jax[cuda12]' or 'jax[cuda13]', which bring the libraries".to_owned(),
            how: "JAX warns and uses the CPU".to_owned(),
            loads_first: false,
        },
        ..Build::new("jax", jax.version.to_string(), label, path, Support::Cuda)
    })
}

/// Not every JAX release is in the tables; its GPU code has only grown between releases.
fn nearest_code<'a>(facts: &'a Facts, plugin: &Distribution) -> Option<&'a [SmArch]> {
    let rows = facts.frameworks().jax_plugin.iter();
    let known = rows.filter(|row| row.package == plugin.name && row.version <= plugin.version);
    known.filter_map(|row| row.sass.as_deref()).next_back()
}
