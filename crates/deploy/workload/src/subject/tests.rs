use cudock_facts::services::AzureOffering;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use cudock_base::text::error_chain;
use cudock_base::{Algorithm, Arch, Codec, Digest};
use cudock_facts::Facts;
use cudock_http::NoProgress;
use cudock_project::{Project, WorkloadFlags};

use cudock_compat::Target;
use cudock_plan::{Catalog, ImageLayer};
use cudock_testkit::tar::Tar;

use super::{Inspection, Processor, inspect, relative_to, targets};

use crate::{Notify, resolve};

fn quiet() -> Notify<'static> {
    Notify { progress: Arc::new(NoProgress), on_read: &|_| {} }
}

fn inspected(name: &str) -> Result<Inspection, String> {
    let flags = WorkloadFlags { image: Some(name.to_owned()), offline: true, ..WorkloadFlags::default() };
    let project = Project::without_file(Path::new("."));
    let today = "2026-11-15".parse().unwrap();
    inspect(&Facts::embedded(), &project, &flags, today, &quiet()).map_err(|error| error_chain(&error))
}

/// Puts a document into a layout, and gives its descriptor.
fn put(directory: &Path, kind: &str, bytes: &[u8]) -> serde_json::Value {
    let digest = Digest::of(Algorithm::Sha256, bytes);
    let blobs = directory.join("blobs/sha256");
    fs::create_dir_all(&blobs).unwrap();
    fs::write(blobs.join(digest.hex()), bytes).unwrap();
    serde_json::json!({"mediaType": kind, "digest": digest.to_string(), "size": bytes.len()})
}

/// Writes a layout of an image with one file of `length` bytes.
fn layout(directory: &Path, architecture: &str, length: usize) {
    let layer = Tar::default().file("data", vec![0; length]).end();
    let diff = Digest::of(Algorithm::Sha256, &layer).to_string();
    let config = serde_json::json!({
        "architecture": architecture, "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [diff]},
    });
    let layer = put(directory, "application/vnd.oci.image.layer.v1.tar", &layer);
    let config = put(directory, "application/vnd.oci.image.config.v1+json", config.to_string().as_bytes());
    let manifest = serde_json::json!({"schemaVersion": 2, "config": config, "layers": [layer]});
    let manifest =
        put(directory, "application/vnd.oci.image.manifest.v1+json", manifest.to_string().as_bytes());
    let index = serde_json::json!({"schemaVersion": 2, "manifests": [manifest]});
    fs::write(directory.join("index.json"), index.to_string()).unwrap();
    fs::write(directory.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
}

#[test]
fn an_image_determines_size_architecture_and_verdicts() {
    let directory = tempfile::tempdir().unwrap();
    layout(directory.path(), Arch::X86_64.oci_name(), 3000);
    let inspection = inspected(&format!("oci:{}", directory.path().display())).unwrap();
    let image = inspection.image.unwrap();
    // One header, six blocks of data, two blocks at the end.
    assert_eq!((image.compressed, image.unpacked), (512 * 9, Some(3000)));
    let layer = ImageLayer { compressed: 512 * 9, codec: Codec::Plain };
    assert_eq!(image.layers, [layer]);
    assert_eq!(inspection.architecture, Some(Processor::One(Arch::X86_64.into())));
    // Nothing in it uses a GPU, so it runs on none.
    let verdict = inspection.verdicts.of("Standard_NC4as_T4_v3").unwrap();
    assert!(!verdict.runs && !verdict.jit, "{verdict:?}");
    let capability = inspection.assumptions.iter().find(|one| one.about == "needs.capability").unwrap();
    assert!(capability.value.starts_with("none: runs on 0 of "), "{capability:?}");
}

#[test]
fn an_image_for_another_processor_does_not_run_on_x86() {
    let directory = tempfile::tempdir().unwrap();
    layout(directory.path(), Arch::Aarch64.oci_name(), 10);
    let inspection = inspected(&format!("oci:{}", directory.path().display())).unwrap();
    assert_eq!(inspection.architecture, Some(Processor::One(Arch::Aarch64.into())));
    let verdict = inspection.verdicts.of("Standard_NC4as_T4_v3").unwrap();
    assert!(!verdict.runs && verdict.reason.contains("arm64"), "{verdict:?}");
}

#[test]
fn a_program_runs_on_the_sizes_its_code_is_for() {
    let cubin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gpu/fatbin/tests/fixtures/sm_90a.cubin");
    let inspection = inspected(&cubin.display().to_string()).unwrap();
    assert!(inspection.verdicts.of("Standard_NC40ads_H100_v5").unwrap().runs);
    let older = inspection.verdicts.of("Standard_NC24ads_A100_v4").unwrap();
    assert!(!older.runs && !older.reason.is_empty(), "{older:?}");
    assert!(!inspection.verdicts.of("Consumption-GPU-NC8as-T4").unwrap().runs);
    let capability = inspection.assumptions.iter().find(|one| one.about == "needs.capability").unwrap();
    assert!(capability.value.starts_with("9.0 only: runs on "), "{capability:?}");
}

#[test]
fn a_missing_file_is_an_error() {
    assert!(inspected("./gone.tar").unwrap_err().contains("gone.tar"));
}

/// A project with one file next to its `cudock.toml`.
fn of_project(name: &str, text: &str) -> Inspection {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("cudock.toml"), "").unwrap();
    fs::write(directory.path().join(name), text).unwrap();
    let project = Project::open(directory.path()).unwrap();
    let today = "2026-11-15".parse().unwrap();
    inspect(&Facts::embedded(), &project, &WorkloadFlags::default(), today, &quiet()).unwrap()
}

#[test]
fn requirements_determine_which_gpus_the_framework_supports() {
    // PyTorch's wheels for CUDA 12.1 have no code for Blackwell, and all for the T4.
    let inspection =
        of_project("requirements.txt", "--index-url https://download.pytorch.org/whl/cu121\ntorch==2.3.1\n");
    assert!(inspection.verdicts.of("Standard_NC4as_T4_v3").unwrap().runs);
}

#[test]
fn requirements_without_a_framework_reject_nothing() {
    let inspection = of_project("requirements.txt", "requests==2.32.0\n");
    assert!(inspection.verdicts.of("Standard_NC4as_T4_v3").is_none());
    assert!(inspection.assumptions.is_empty(), "{:?}", inspection.assumptions);
}

#[test]
fn unreadable_requirements_do_not_prevent_planning() {
    let inspection = of_project("pyproject.toml", "[project\n");
    assert!(inspection.verdicts.of("Standard_NC4as_T4_v3").is_none());
    assert_eq!(inspection.assumptions[0].about, "workload.image");
}

#[test]
fn a_path_in_the_file_is_relative_to_it_and_an_image_name_is_not() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("app.tar"), "").unwrap();
    let inside = directory.path().display().to_string();
    assert_eq!(relative_to(directory.path(), "oci:layout"), format!("oci:{inside}/layout"));
    assert_eq!(relative_to(directory.path(), "app.tar"), format!("{inside}/app.tar"));
    assert_eq!(relative_to(directory.path(), "team/app:1.0"), "team/app:1.0");
    assert_eq!(relative_to(directory.path(), "docker://team/app"), "docker://team/app");
}

#[test]
fn check_and_plan_consider_the_same_sizes() {
    let facts = Facts::embedded();
    let today = "2026-11-16".parse().unwrap();
    let judged: Vec<String> = targets(&facts, today).into_iter().filter_map(|target| target.sku).collect();
    assert!(judged.iter().any(|name| name == "Consumption-GPU-NC8as-T4"), "{judged:?}");
    let is_size = |name: &&str| facts.sizes().find(name).one().is_some();
    let mut judged: Vec<&str> = judged.iter().map(String::as_str).filter(is_size).collect();
    judged.sort_unstable();

    let all = Target::all_sizes(&facts, None, today);
    let mut checked: Vec<&str> = all.iter().filter_map(|target| target.sku.as_deref()).collect();
    checked.sort_unstable();
    assert_eq!(judged, checked, "what a plan has verdicts for is what check --all-skus looks at");

    // The plan drops the others because they ended, or because no page describes them.
    let flags = WorkloadFlags { duration: "1h".parse().ok(), ..WorkloadFlags::default() };
    let project = Project::without_file(Path::new("."));
    let resolved = resolve(&facts, &project, &flags, today, &quiet()).unwrap();
    let catalog = Catalog::of(&facts);
    let plan = cudock_plan::plan(&catalog, &facts, &resolved.workload, &resolved.verdicts);
    let gone = |name: &str| {
        let known = plan.rules(AzureOffering::Vm, name);
        let ended = known.iter().any(|rule| !rule.holds && ["CD0801", "CD0812"].contains(&rule.code));
        let barred = || {
            let of_size = plan
                .rejected()
                .iter()
                .filter(|one| one.size.as_deref() == Some(name) && one.service == Some(AzureOffering::Vm));
            let codes: Vec<&str> = of_size.map(|one| one.code).collect();
            codes.contains(&"CD0801") && plan.find(AzureOffering::Vm, name, None, None).is_none()
        };
        ended || barred()
    };
    let mut considered: Vec<&str> = catalog.sizes().map(|size| catalog.size_name(size)).collect();
    considered.retain(|name| is_size(name) && !gone(name));
    considered.sort_unstable();
    assert_eq!(considered, checked);
}
