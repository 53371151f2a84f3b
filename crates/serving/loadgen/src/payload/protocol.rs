//! The protocols of requests.

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BenchProtocol {
    /// `POST /predict` with `{"input": …}`.
    Predict,
    /// The Open Inference Protocol, version 2, with JSON.
    Oip,
    /// The same with binary tensors.
    OipBinary,
    /// `POST /predict` with the bytes of the rows.
    Raw,
    /// `POST /predict` with a `.npy` file.
    Npy,
}

impl BenchProtocol {
    /// The default path of requests.
    pub fn path(self, model: Option<&str>) -> Option<String> {
        match self {
            Self::Oip | Self::OipBinary => model.map(|model| format!("/v2/models/{model}/infer")),
            Self::Predict | Self::Raw | Self::Npy => Some("/predict".to_owned()),
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Predict | Self::Oip => "application/json",
            Self::OipBinary | Self::Raw => "application/octet-stream",
            Self::Npy => "application/x-npy",
        }
    }
}
