//! Checks an image's requirements on the host before anything is started.

use std::collections::BTreeMap;

use cudock_target::Target;
use cudock_target::gate::{Gate, GateGpu, GateHost, GateVerdict};

use crate::InjectError;

/// The properties of a machine that requirements refer to. Targets are those of the GPUs the
/// container will see.
pub fn host_of(targets: &[Target]) -> GateHost {
    GateHost {
        cuda: targets.iter().find_map(|target| target.cuda),
        driver: targets.iter().find_map(|target| target.driver),
        gpus: targets
            .iter()
            .filter(|target| target.gpu.is_some())
            .map(|target| GateGpu { capability: target.capability, brand: target.traits.brand.clone() })
            .collect(),
    }
}

/// Whether an environment has any requirements, so that the host must be probed.
pub fn are_any(environment: &BTreeMap<String, String>) -> bool {
    let gate = Gate::from_env(environment);
    !gate.disabled && (!gate.requirements.is_empty() || gate.broken.is_some())
}

/// Whether a container with this environment may start on `host`, by the rules of NVIDIA's own
/// tools.
///
/// Returns a warning if that could not be determined: their tools start such a container.
pub fn check(environment: &BTreeMap<String, String>, host: &GateHost) -> Result<Option<String>, InjectError> {
    let verdict = Gate::from_env(environment).judge(host);
    let message = verdict.refusal_message();
    match verdict {
        GateVerdict::Open | GateVerdict::Disabled => Ok(None),
        GateVerdict::Unknown { variable, alternative, missing, .. } => {
            let missing: Vec<&str> = missing.iter().map(|property| property.name()).collect();
            Ok(Some(format!(
                "{variable} asks for `{alternative}`, and the host's {} is not known",
                missing.join(" and ")
            )))
        }
        GateVerdict::Refused { variable, closest, .. } => Err(InjectError::Refused {
            message: message.unwrap_or_default(),
            why: format!(
                "{variable}: nearest is `{}`, where {} does not hold",
                closest.alternative, closest.failed
            ),
        }),
        GateVerdict::Malformed(error) => {
            Err(InjectError::Refused { message: message.unwrap_or_default(), why: error.to_string() })
        }
    }
}

#[cfg(test)]
mod tests {
    use cudock_base::Report as _;

    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn host() -> GateHost {
        GateHost {
            cuda: "12.2".parse().ok(),
            driver: "535.161.08".parse().ok(),
            gpus: vec![GateGpu::default()],
        }
    }

    #[test]
    fn a_newer_cuda_than_the_drivers_is_refused_with_the_message_of_the_gate() {
        let error =
            check(&environment(&[("NVIDIA_REQUIRE_CUDA", "cuda>=12.4 driver>=550")]), &host()).unwrap_err();
        let shown = error.to_string();
        assert!(
            shown.starts_with("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4"),
            "{shown}"
        );
        assert!(shown.contains("nearest is `"), "{shown}");
        assert!(error.hints()[0].contains("NVIDIA_DISABLE_REQUIRE=1"));
    }

    #[test]
    fn requirements_that_are_met_or_turned_off_are_silent() {
        assert_eq!(check(&environment(&[("NVIDIA_REQUIRE_CUDA", "cuda>=12.0")]), &host()).unwrap(), None);
        let off = [("NVIDIA_REQUIRE_CUDA", "cuda>=99.0"), ("NVIDIA_DISABLE_REQUIRE", "1")];
        assert_eq!(check(&environment(&off), &host()).unwrap(), None);
    }

    #[test]
    fn a_host_is_looked_at_only_where_something_is_required() {
        assert!(!are_any(&environment(&[("PATH", "/bin")])));
        assert!(!are_any(&environment(&[
            ("NVIDIA_REQUIRE_CUDA", "cuda>=99"),
            ("NVIDIA_DISABLE_REQUIRE", "true")
        ])));
        assert!(are_any(&environment(&[("NVIDIA_REQUIRE_CUDA", "cuda>=9.0")])));
        assert!(are_any(&environment(&[("CUDA_VERSION", "12.4.1")])));
    }

    #[test]
    fn a_legacy_image_requires_its_own_cuda() {
        assert!(check(&environment(&[("CUDA_VERSION", "12.4.1")]), &host()).is_err());
        assert_eq!(check(&environment(&[("CUDA_VERSION", "11.8.0")]), &host()).unwrap(), None);
    }

    #[test]
    fn unknown_properties_of_the_host_are_reported_and_let_it_start() {
        let variables = environment(&[("NVIDIA_REQUIRE_ARCH", "arch>=9.0")]);
        let note = check(&variables, &host()).unwrap().unwrap();
        assert_eq!(note, "NVIDIA_REQUIRE_ARCH asks for `arch>=9.0`, and the host's arch is not known");
        let variables = environment(&[("NVIDIA_REQUIRE_CUDA", "cuda>=99.0 brand=tesla,driver>=535")]);
        assert!(
            check(&variables, &host()).unwrap().unwrap().contains("brand"),
            "only the card can decide that"
        );
    }

    #[test]
    fn a_requirement_with_an_unknown_key_is_refused() {
        let error = check(&environment(&[("NVIDIA_REQUIRE_X", "memory>=80")]), &host()).unwrap_err();
        assert!(error.to_string().contains("invalid expression"), "{error}");
    }
}
