//! Which formats each verb has.

use cudock_cli::FormatArg;
use cudock_facts::formats::ServiceFormat;

use crate::failure::Failure;
use crate::output::{Annotations, Csv, DoctorFormat, FindingFormat, Format, PlanFormat};

/// The format of a verb that has text and JSON alone.
pub(crate) fn plain(format: FormatArg) -> Result<Format, Failure> {
    match format {
        FormatArg::Text => Ok(Format::Text),
        FormatArg::Json => Ok(Format::Json),
        _ => Err(unsupported(format)),
    }
}

/// The format of a verb that reports findings in files.
pub(crate) fn findings(format: FormatArg) -> Result<FindingFormat, Failure> {
    match format {
        FormatArg::Text => Ok(FindingFormat::Text),
        FormatArg::Json => Ok(FindingFormat::Json),
        FormatArg::Service(format) => Ok(FindingFormat::Other(format)),
        _ => Err(unsupported(format)),
    }
}

/// The format of `doctor`, whose findings are not in files.
pub(crate) fn doctor(format: FormatArg) -> Result<DoctorFormat, Failure> {
    match format {
        FormatArg::Text => Ok(DoctorFormat::Text),
        FormatArg::Json => Ok(DoctorFormat::Json),
        FormatArg::Service(ServiceFormat::Github) => Ok(DoctorFormat::Other(Annotations)),
        _ => Err(unsupported(format)),
    }
}

/// The format of `plan`.
pub(crate) fn plan(format: FormatArg) -> Result<PlanFormat, Failure> {
    match format {
        FormatArg::Text => Ok(PlanFormat::Text),
        FormatArg::Json => Ok(PlanFormat::Json),
        FormatArg::Csv => Ok(PlanFormat::Other(Csv)),
        _ => Err(unsupported(format)),
    }
}

/// The format of a CDI specification, which is YAML by default.
pub(crate) fn specification(format: FormatArg) -> Result<Format, Failure> {
    match format {
        FormatArg::Yaml => Ok(Format::Text),
        other => plain(other),
    }
}

fn unsupported(format: FormatArg) -> Failure {
    let message = match format {
        FormatArg::Csv => "--format csv is for `plan` and `sweep`",
        FormatArg::Service(ServiceFormat::Sarif | ServiceFormat::Gitlab) => {
            "--format sarif and gitlab are for `check`, `lint` and `migrate`"
        }
        FormatArg::Service(ServiceFormat::Github) => {
            "--format github is for `check`, `doctor`, `lint` and `migrate`"
        }
        FormatArg::Yaml => "--format yaml is for `cdi generate`",
        FormatArg::Text | FormatArg::Json => "this verb has no such format",
    };
    Failure::input(message).hint("use --format json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_reject_formats_they_do_not_support() {
        use FormatArg::{Csv, Json, Service, Text, Yaml};
        use ServiceFormat::{Github, Sarif};
        for (format, plain, findings, doctor, plan, specification) in [
            (Text, true, true, true, true, true),
            (Json, true, true, true, true, true),
            (Csv, false, false, false, true, false),
            (Service(Sarif), false, true, false, false, false),
            (Service(Github), false, true, true, false, false),
            (Yaml, false, false, false, false, true),
        ] {
            assert_eq!(super::plain(format).is_ok(), plain, "{format:?}");
            assert_eq!(super::findings(format).is_ok(), findings, "{format:?}");
            assert_eq!(super::doctor(format).is_ok(), doctor, "{format:?}");
            assert_eq!(super::plan(format).is_ok(), plan, "{format:?}");
            assert_eq!(super::specification(format).is_ok(), specification, "{format:?}");
        }
    }
}
