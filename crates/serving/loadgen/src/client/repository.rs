//! The models of a running `cudock serve`: lists, loads and unloads them.

use std::time::Duration;

use cudock_base::UsageError;
use cudock_base::text::format::{bytes, duration};
use cudock_base::text::percent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::prepare::header;
use crate::{HttpClient, LoadError, LoadRequest, ServerUrl};

/// A load may wait for others, and each may take ten minutes.
const LOAD_TIMEOUT: Duration = Duration::from_secs(1200);

/// The models of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelsReport {
    schema: u8,
    models: Vec<RepositoryModel>,
}

/// One version of a model, as the server describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct RepositoryModel {
    name: String,
    version: String,
    /// `ready`, `restarting`, `loading`, `unloaded` or `failed`.
    state: String,
    /// Bytes on each of its devices while it is loaded, if measured.
    memory: Option<u64>,
    /// Seconds since its last request.
    idle_s: Option<f64>,
    /// Whether it is never unloaded.
    #[serde(default)]
    kept_loaded: bool,
    /// Why it is degraded or cannot be loaded.
    degraded: Option<String>,
}

impl ModelsReport {
    /// The titles of [`Self::rows`].
    pub const TITLES: [&str; 6] = ["NAME", "VERSION", "STATE", "MEMORY", "LAST USE", "NOTE"];

    /// The report as a table.
    pub fn rows(&self) -> Vec<Vec<String>> {
        self.models.iter().map(RepositoryModel::row).collect()
    }
}

impl RepositoryModel {
    fn row(&self) -> Vec<String> {
        let idle = self.idle_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let note = if self.kept_loaded { "kept loaded" } else { "" };
        vec![
            self.name.clone(),
            self.version.clone(),
            self.state.clone(),
            self.memory.map(bytes).unwrap_or_default(),
            idle.map(|idle| format!("{} ago", duration(idle))).unwrap_or_default(),
            self.degraded.clone().unwrap_or_else(|| note.to_owned()),
        ]
    }
}

/// A connection to a server.
#[derive(Debug)]
pub struct ModelRepository {
    client: HttpClient,
    target: ServerUrl,
    headers: Vec<(String, String)>,
}

impl ModelRepository {
    /// Connects to a server; `headers` are added to each request, as `Name: value`.
    pub fn connect(url: &str, headers: &[String]) -> Result<Self, LoadError> {
        let target: ServerUrl = url.parse()?;
        let headers = headers.iter().map(|text| header(text)).collect::<Result<_, _>>()?;
        let client = HttpClient::new(&target, target.reach()?, LOAD_TIMEOUT);
        Ok(Self { client, target, headers })
    }

    pub fn list(&mut self) -> Result<ModelsReport, LoadError> {
        let body = self.send(LoadRequest::get(&self.target, "/status", &self.headers))?;
        serde_json::from_slice(&body).map_err(|error| LoadError::Metadata(error.to_string()))
    }

    /// Loads a model, or reloads it; returns it once it is loaded.
    pub fn load(&mut self, name: &str) -> Result<ModelsReport, LoadError> {
        self.change(name, "load")
    }

    /// Unloads a model; returns it once its memory is free.
    pub fn unload(&mut self, name: &str) -> Result<ModelsReport, LoadError> {
        self.change(name, "unload")
    }

    fn change(&mut self, name: &str, action: &str) -> Result<ModelsReport, LoadError> {
        let path = format!("/v2/repository/models/{}/{action}", percent::encode(name));
        self.send(LoadRequest::post(&self.target, &path, &self.headers, b"{}", 0))?;
        let mut report = self.list()?;
        report.models.retain(|model| model.name == name);
        Ok(report)
    }

    fn send(&mut self, request: LoadRequest) -> Result<Vec<u8>, LoadError> {
        let response = self.client.send(&request)?;
        match response.status {
            200..300 => Ok(response.body),
            401 | 403 | 500.. => {
                let (status, message) = (response.status, response.message());
                Err(LoadError::Refused { path: request.path, status, message })
            }
            // The server says what is wrong with the name.
            _ => Err(UsageError::new(response.message()).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use cudock_testkit::http::{Reply, Server};

    use super::*;

    const STATUS: &str = r#"{"schema": 1, "server": {"version": "1"}, "models": [
        {"name": "a b", "version": "1", "state": "ready", "memory": 5000000, "idle_s": 61.0, "kept_loaded": true,
         "degraded": null},
        {"name": "c", "version": "2", "state": "unloaded", "memory": null, "idle_s": 1e300, "degraded": null},
        {"name": "d", "version": "1", "state": "failed", "memory": null, "idle_s": null, "degraded": "no file"}]}"#;

    fn server() -> Server {
        Server::start(|request| match request.path.as_str() {
            "/status" => Reply::new(200, STATUS),
            "/v2/repository/models/a%20b/load" => Reply::new(200, "{}"),
            "/v2/repository/models/d/load" => Reply::new(500, r#"{"error": "cannot load `d`: no file"}"#),
            _ => Reply::new(409, r#"{"error": "model `c` is kept loaded and cannot be unloaded"}"#),
        })
    }

    #[test]
    fn models_are_listed_and_changed() {
        let server = server();
        let headers = ["X-API-Key: k".to_owned()];
        let mut repository = ModelRepository::connect(&server.host(), &headers).unwrap();
        let rows = repository.list().unwrap().rows();
        let expected = [
            ["a b", "1", "ready", "5 MB", "1 min 1 s ago", "kept loaded"],
            ["c", "2", "unloaded", "", "", ""],
            ["d", "1", "failed", "", "", "no file"],
        ];
        assert_eq!(rows, expected);
        assert_eq!(repository.load("a b").unwrap().rows(), expected[..1]);
        assert!(server.requests().iter().all(|request| request.header("x-api-key") == Some("k")));
    }

    #[test]
    fn what_the_server_rejects_is_an_error_with_its_message() {
        let server = server();
        let mut repository = ModelRepository::connect(&server.host(), &[]).unwrap();
        let kept = repository.unload("c").unwrap_err();
        assert!(matches!(kept, LoadError::Usage(_)), "{kept}");
        assert_eq!(kept.to_string(), "model `c` is kept loaded and cannot be unloaded");
        let failed = repository.load("d").unwrap_err().to_string();
        assert!(failed.ends_with("/d/load: 500 cannot load `d`: no file"), "{failed}");
        let other = Server::start(|_| Reply::new(200, "<html>"));
        let mut repository = ModelRepository::connect(&other.host(), &[]).unwrap();
        assert!(matches!(repository.list(), Err(LoadError::Metadata(_))));
    }
}
