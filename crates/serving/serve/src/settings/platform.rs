//! Settings of a server that container platforms pass in environment variables.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use cudock_base::Environment;
use cudock_project::{Dialect, Precision, ServeOptions};

use super::SettingsError;

/// The port that platforms such as Cloud Run and Heroku choose.
const PORT: &str = "PORT";

/// The variable in which a platform names the port, and the address on which servers with its API listen by default.
const fn port(dialect: Dialect) -> (Option<&'static str>, SocketAddr) {
    const fn on(address: Ipv4Addr, port: u16) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(address), port)
    }
    let everywhere = Ipv4Addr::UNSPECIFIED;
    match dialect {
        Dialect::TorchServe => (None, on(Ipv4Addr::LOCALHOST, 8080)),
        Dialect::SageMaker => (Some("SAGEMAKER_BIND_TO_PORT"), on(everywhere, 8080)),
        Dialect::Vertex => (Some("AIP_HTTP_PORT"), on(everywhere, 8080)),
        Dialect::AzureMl => (None, on(everywhere, 5001)),
        Dialect::TensorFlowServing => (None, on(everywhere, 8501)),
        Dialect::KServeV1 | Dialect::Flask => (None, on(everywhere, 8080)),
    }
}

/// Where the platforms whose APIs are served put the model.
pub fn platform_model(dialects: &[Dialect], environment: &Environment) -> Option<PathBuf> {
    dialects.iter().find_map(|dialect| match dialect {
        Dialect::SageMaker => Some(environment.system("opt/ml/model")).filter(|path| path.is_dir()),
        Dialect::AzureMl => environment.path("AZUREML_MODEL_DIR"),
        Dialect::Flask => environment.path("MODEL_PATH"),
        Dialect::TorchServe | Dialect::Vertex | Dialect::KServeV1 | Dialect::TensorFlowServing => None,
    })
}

/// Options in environment variables, for what neither flags nor `cudock.toml` set: those of the platforms whose APIs are
/// served, and `PORT`.
pub fn platform_options(
    dialects: &[Dialect],
    environment: &Environment,
) -> Result<ServeOptions, SettingsError> {
    let mut names = dialects.iter().filter_map(|dialect| port(*dialect).0).chain([PORT]);
    let listen = match names.find_map(|name| Some((name, environment.get(name)?))) {
        Some((name, value)) => {
            let value = value.to_string_lossy();
            let port = value.parse().map_err(|_| SettingsError::Port { name, value: value.into_owned() })?;
            // A platform that chooses a port connects from outside the container.
            Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))
        }
        None => dialects.first().map(|dialect| port(*dialect).1),
    };
    let is_true = |value: &OsStr| value == "1" || value.eq_ignore_ascii_case("true");
    let fp16 = dialects.contains(&Dialect::Flask) && environment.get("USE_FP16").is_some_and(is_true);
    Ok(ServeOptions {
        listen: listen.map(|address| vec![address]),
        precision: fp16.then_some(Precision::Fp16),
        ..ServeOptions::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::of("/", variables.iter().copied())
    }

    #[test]
    fn a_port_comes_from_the_platform_then_from_port_then_from_the_api() {
        let both = [("AIP_HTTP_PORT", "7000"), ("PORT", "9000")];
        for (dialects, variables, expected) in [
            (&[][..], &[][..], None),
            (&[], &[("AIP_HTTP_PORT", "7000")], None),
            (&[], &both, Some("0.0.0.0:9000")),
            (&[Dialect::Vertex], &both, Some("0.0.0.0:7000")),
            (&[Dialect::SageMaker], &[("SAGEMAKER_BIND_TO_PORT", "8081")], Some("0.0.0.0:8081")),
            (&[Dialect::TorchServe, Dialect::Vertex], &[], Some("127.0.0.1:8080")),
            (&[Dialect::TensorFlowServing], &[("PORT", "")], Some("0.0.0.0:8501")),
            (&[Dialect::AzureMl], &[], Some("0.0.0.0:5001")),
        ] {
            let options = platform_options(dialects, &environment(variables)).unwrap();
            let expected = expected.map(|address| vec![address.parse().unwrap()]);
            assert_eq!(options.listen, expected, "{dialects:?} {variables:?}");
        }
        let error = platform_options(&[], &environment(&[("PORT", "http")])).unwrap_err();
        assert_eq!(error.to_string(), "PORT is `http`, which is not a port");
    }

    #[test]
    fn a_model_and_its_precision_come_from_the_platform() {
        let variables = environment(&[("MODEL_PATH", "/m.onnx"), ("USE_FP16", "True")]);
        assert_eq!(platform_model(&[Dialect::Flask], &variables), Some("/m.onnx".into()));
        assert_eq!(platform_model(&[Dialect::AzureMl], &variables), None);
        let precision = |dialects: &[Dialect]| platform_options(dialects, &variables).unwrap().precision;
        assert_eq!((precision(&[Dialect::Flask]), precision(&[])), (Some(Precision::Fp16), None));
    }
}
