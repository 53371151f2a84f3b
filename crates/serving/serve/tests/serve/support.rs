//! A server in this process, and a client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cudock_engine::EngineSettings;
use cudock_engine_onnx::OnnxSettings;
use cudock_project::ServeOptions;
use cudock_serve::{ModelService, ModelSettings, ModelSource, ServeSettings, Server};
pub(crate) use cudock_testkit::client::eventually;
use serde_json::{Value, json};

use crate::engine::{DoublingEngine, EngineControl};

/// Bytes of a model file. They are not ONNX, so the memory of a model is estimated to be the same.
pub(crate) const MODEL_SIZE: usize = 1000;

const PATIENCE: Duration = Duration::from_secs(60);

/// A running server; it ends with the tests.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) control: Arc<EngineControl>,
    pub(crate) models: tempfile::TempDir,
}

/// A response, complete.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    head: String,
    pub(crate) text: String,
}

impl TestResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}

impl TestServer {
    /// Serves the model `double`, version 1, with changed settings.
    pub(crate) fn start(change: impl FnOnce(&mut ServeSettings)) -> Self {
        Self::serve(&["double"], ServeOptions::default(), change)
    }

    /// Serves version 1 of models with these names, in files of [`MODEL_SIZE`].
    pub(crate) fn serve(
        names: &[&str],
        options: ServeOptions,
        change: impl FnOnce(&mut ServeSettings),
    ) -> Self {
        let models = tempfile::tempdir().unwrap();
        for name in names {
            let directory = models.path().join(name).join("1");
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("model.onnx"), vec![b'-'; MODEL_SIZE]).unwrap();
        }
        let options = ServeOptions {
            listen: Some(vec!["127.0.0.1:0".parse().unwrap()]),
            io_threads: Some(2),
            ..options
        };
        let engine = EngineSettings::new("", OnnxSettings::new("libonnxruntime.so"));
        let model_settings = ModelSettings::new(&options, Path::new("model.onnx"), Some(engine)).unwrap();
        let control = Arc::<EngineControl>::default();
        let engines = Arc::clone(&control);
        let mut settings = ServeSettings::new(
            &options,
            ModelSource::Directory(models.path().to_owned()),
            Arc::new(move |_, _| Ok(model_settings.clone())),
            Arc::new(move |settings, _| {
                Ok(Box::new(DoublingEngine::start(&engines, settings.providers[0])?))
            }),
        );
        change(&mut settings);
        let server = Server::bind(Arc::new(ModelService::new(settings))).unwrap();
        let address = server.addresses()[0];
        thread::spawn(move || server.run(&mut |_| ()).unwrap());
        let server = Self { address, control, models };
        eventually("the server is ready", || server.get("/ready").status == 200);
        server
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub(crate) fn get(&self, path: &str) -> TestResponse {
        self.send("GET", path, "", "")
    }

    pub(crate) fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> TestResponse {
        let mut stream = self.connect();
        stream.write_all(request(method, path, headers, body).as_bytes()).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        let text = String::from_utf8_lossy(&received);
        let (head, text) = text.split_once("\r\n\r\n").unwrap();
        TestResponse { status: head[9..12].parse().unwrap(), head: head.to_owned(), text: text.to_owned() }
    }

    /// Sends a row to the model from another thread, which returns status and prediction.
    pub(crate) fn predict(self: &Arc<Self>, value: f32) -> JoinHandle<(u16, Value)> {
        let server = Arc::clone(self);
        thread::spawn(move || {
            let body = json!({ "input": [[value, 1.0]] }).to_string();
            let response = server.send("POST", "/predict", "", &body);
            (response.status, response.json()["prediction"].clone())
        })
    }

    /// Asks a model to double a number, and returns the response.
    pub(crate) fn double(&self, model: &str, value: f32, headers: &str) -> TestResponse {
        let body = json!({ "input": [[value, 1.0]] }).to_string();
        self.send("POST", &format!("/predict/{model}"), headers, &body)
    }

    /// The value of a counter or gauge of the model.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let page = self.get("/metrics").text;
        let sample = page.lines().find(|line| line.starts_with(name) && !line.contains("model=\"\""));
        sample.and_then(|line| line.split(' ').next_back()).unwrap().parse().unwrap()
    }
}

/// A request after which the connection is closed.
pub(crate) fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )
}
