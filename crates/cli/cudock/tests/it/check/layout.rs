//! Images as OCI layouts, and their content.

use cudock_base::Digest;
use cudock_testkit::tar::Tar;
use serde_json::{Value, json};

use super::workdir::Directory;

/// The directory of packages in these images.
pub const SITE: &str = "usr/local/lib/python3.12/site-packages";

/// An image for one processor.
pub struct Image {
    architecture: &'static str,
    environment: Vec<String>,
    layers: Vec<Vec<u8>>,
}

impl Image {
    /// An image with a base layer: a distribution and its Python.
    pub fn new() -> Self {
        let base = Tar::default()
            .file("etc/os-release", "ID=debian\nVERSION_ID=\"12\"\n")
            .program("usr/local/bin/python3", "#!/bin/sh\n");
        Self { architecture: "amd64", environment: Vec::new(), layers: vec![base.end()] }
    }

    pub fn architecture(mut self, name: &'static str) -> Self {
        self.architecture = name;
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push(format!("{name}={value}"));
        self
    }

    pub fn layer(self, layer: Tar) -> Self {
        self.raw_layer(layer.end())
    }

    /// A layer of any bytes.
    pub fn raw_layer(mut self, bytes: Vec<u8>) -> Self {
        self.layers.push(bytes);
        self
    }

    /// Writes the parts of the image, and returns the descriptor of its manifest.
    fn write(&self, directory: &Directory, layout: &str) -> Value {
        let layers: Vec<Value> = self
            .layers
            .iter()
            .map(|layer| blob(directory, layout, "application/vnd.oci.image.layer.v1.tar", layer))
            .collect();
        let configuration = json!({
            "architecture": self.architecture,
            "os": "linux",
            "config": {"Env": self.environment, "Cmd": ["python3", "serve.py"]},
            "rootfs": {"type": "layers", "diff_ids": layers.iter().map(|layer| &layer["digest"]).collect::<Vec<_>>()},
        });
        let config = document(directory, layout, "application/vnd.oci.image.config.v1+json", &configuration);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config,
            "layers": layers,
        });
        let mut descriptor =
            document(directory, layout, "application/vnd.oci.image.manifest.v1+json", &manifest);
        descriptor["platform"] = json!({"os": "linux", "architecture": self.architecture});
        descriptor
    }
}

/// Writes an OCI layout with these images into `directory`, as one image for several processors.
pub fn write(directory: &Directory, layout: &str, images: &[Image]) {
    let manifests: Vec<Value> = images.iter().map(|image| image.write(directory, layout)).collect();
    let index = json!({"schemaVersion": 2, "manifests": manifests});
    directory.write(&format!("{layout}/oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#);
    directory.write(&format!("{layout}/index.json"), index.to_string());
}

/// A directory with the layout `image` of one image.
pub fn directory_with(image: Image) -> Directory {
    let directory = Directory::new();
    write(&directory, "image", &[image]);
    directory
}

fn document(directory: &Directory, layout: &str, media_type: &str, value: &Value) -> Value {
    blob(directory, layout, media_type, value.to_string().as_bytes())
}

fn blob(directory: &Directory, layout: &str, media_type: &str, bytes: &[u8]) -> Value {
    let digest = Digest::sha256_of(bytes);
    directory.write(&format!("{layout}/blobs/sha256/{}", digest.hex()), bytes);
    json!({"mediaType": media_type, "digest": digest.to_string(), "size": bytes.len()})
}

/// A layer as `pip install` leaves it: the metadata of a package.
pub fn package(layer: Tar, name: &str, version: &str) -> Tar {
    let directory = format!("{SITE}/{}-{version}.dist-info", name.replace('-', "_"));
    layer.file(
        &format!("{directory}/METADATA"),
        format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nA package.\n"),
    )
}

/// A layer with torch: its metadata, and the file with its CUDA version. No CUDA means a CPU build.
pub fn torch(version: &str, cuda: Option<&str>) -> Tar {
    let tag = cuda.map_or_else(|| "cpu".to_owned(), |cuda| format!("cu{}", cuda.replace('.', "")));
    let written = cuda.map_or_else(|| "None".to_owned(), |cuda| format!("'{cuda}'"));
    package(Tar::default(), "torch", &format!("{version}+{tag}")).file(
        &format!("{SITE}/torch/version.py"),
        format!(
            "__version__ = '{version}+{tag}'\ndebug = False\ncuda: Optional[str] = {written}\nhip: Optional[str] = None\n"
        ),
    )
}
