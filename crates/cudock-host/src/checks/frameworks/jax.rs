//! JAX, which finds GPUs through a plugin.

use cudock_facts::version::SmArch;

use super::judge::{Build, cpu_only, judge};
use super::tell;
use crate::checks::{Check, FrameworkReport, Situation, Status, codes};
use crate::host::{Distribution, PythonEnvironment};

pub(super) fn check(
    situation: &Situation<'_>,
    python: &PythonEnvironment,
    checks: &mut Vec<Check>,
    reports: &mut Vec<FrameworkReport>,
) {
    let Some(jax) = python.get("jax").or_else(|| python.get("jaxlib")) else { return };
    let plugin = python
        .distributions
        .iter()
        .find(|found| found.name.starts_with("jax-cuda") && found.name.ends_with("-plugin"));
    let Some(plugin) = plugin else {
        let fix =
            "pip install -U 'jax[cuda13]' (or cuda12 for drivers before R580), if it is meant to use the GPU"
                .to_owned();
        let judgement = cpu_only(
            situation,
            "has no CUDA plugin, it uses the CPU",
            codes::CPU_BUILD,
            Status::Warning,
            fix,
        );
        tell(checks, reports, ("jax", jax.version.to_string(), "CPU build".to_owned()), judgement);
        return;
    };
    let row = situation.facts.frameworks().jax_plugin(&plugin.name, &plugin.version);
    let cuda_major = row.map_or(12, |row| row.cuda_major);
    let build = Build {
        name: "jax",
        version: jax.version.to_string(),
        label: format!("{} {}", plugin.name, plugin.version),
        cuda_major,
        cuda: row.and_then(|row| row.built_with).map(cudock_facts::version::CudaRelease::version),
        min_driver: row.map(|row| row.min_driver),
        sass: row.and_then(|row| row.sass.as_deref()).or_else(|| nearest_jax_code(situation, plugin)),
        ptx: row.and_then(|row| row.ptx.as_deref()),
        fix_for_old_driver: "update the driver, or pip install 'jax[cuda12]'".to_owned(),
        fix_for_no_code: "take a newer JAX".to_owned(),
    };
    let judgement = judge(situation, &build);
    tell(checks, reports, (build.name, build.version, build.label), judgement);
}

/// Not every JAX release's code was read; between two releases that were, it did not shrink.
fn nearest_jax_code<'a>(situation: &Situation<'a>, plugin: &Distribution) -> Option<&'a [SmArch]> {
    let rows = situation.facts.frameworks().jax_plugin.iter();
    let known = rows.filter(|row| row.package == plugin.name && row.version <= plugin.version);
    known.filter_map(|row| row.sass.as_deref()).next_back()
}
