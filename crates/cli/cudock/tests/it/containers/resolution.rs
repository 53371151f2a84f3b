//! Names of images: every verb finds the same image, and the one that was verified is the one that runs.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cudock_http::NoProgress;
use cudock_image::write::{Destination, WriteOptions};
use cudock_image::{ImageSource, OpenOptions, ResolvedImage};
use cudock_testkit::ambiguous::AmbiguousLayout;
use cudock_testkit::http::{Reply, Server};
use cudock_testkit::random::{Random, cases, seed};
use cudock_testkit::tar::Tar;
use cudock_trust::{ImageSigner, Proof, ProvenDriver, ProvenGpu, proof_statement, sign};
use serde_json::Value;

use super::images::Image;
use super::machine::{Machine, machine};
use crate::support::{code, json, shown};

/// Makes a key pair, `key` and `public`.
fn keys(machine: &Machine) -> Option<ImageSigner> {
    let openssl = cudock_testkit::require_program("openssl")?;
    for arguments in [
        &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "key"][..],
        &["pkey", "-in", "key", "-pubout", "-out", "public"],
    ] {
        let output = Command::new(&openssl).args(arguments).current_dir(machine.path()).output().unwrap();
        assert!(output.status.success(), "{}", shown(&output));
    }
    Some(ImageSigner::read(&machine.path().join("key")).unwrap())
}

/// Attaches a proof to the image of a layout.
fn prove(machine: &Machine, layout: &str, signer: &ImageSigner) {
    let source = ImageSource::Layout { directory: machine.path().join(layout), name: None };
    let scratch = machine.path().join("scratch");
    let (client, sockets) = (None, Vec::new());
    let open = OpenOptions { platform: None, client, sockets, progress: None, scratch: scratch.clone() };
    let image = ResolvedImage::resolve(&source, &open).unwrap();
    let gpu = ProvenGpu { name: "GPU".to_owned(), capability: "9.0".to_owned(), uuid: None };
    let proof = Proof {
        gpus: vec![gpu],
        driver: ProvenDriver { cuda: "13.0".to_owned(), library: "libcuda.so.1".to_owned() },
        verifier: "test".to_owned(),
        output: String::new(),
        time: "2026-01-01T00:00:00Z".to_owned(),
    };
    let write = WriteOptions {
        platform: None,
        client: None,
        sockets: Vec::new(),
        scratch,
        progress: Arc::new(NoProgress),
    };
    let statement = proof_statement(&image.digest().unwrap(), &proof);
    sign(image.descriptor(), &statement, signer, &Destination::of(&source), &write).unwrap();
}

/// Stops a thread also if a test fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Puts a file in the place of another one, as a whole.
fn replace(from: &Path, to: &Path) {
    let beside = to.with_extension("new");
    fs::copy(from, &beside).unwrap();
    fs::rename(&beside, to).unwrap();
}

#[test]
fn an_unproven_image_never_runs_whatever_is_swapped_meanwhile() {
    let Some(machine) = machine() else { return };
    let Some(signer) = keys(&machine) else { return };
    for name in ["proven", "evil"] {
        Image::of(&machine).layer(&[("marker", name)]).command(&["cat", "/marker"]).write(name);
    }
    prove(&machine, "proven", &signer);
    // One layout with the blobs of both. What changes is which of them it lists, and the bytes of the layer that differs.
    let [proven, evil] = ["proven", "evil"].map(|name| machine.path().join(name));
    let image = machine.path().join("image");
    let copied = Command::new("cp").arg("-r").args([&evil, &image]).status();
    assert!(copied.unwrap().success());
    for blob in fs::read_dir(proven.join("blobs/sha256")).unwrap().flatten() {
        fs::copy(blob.path(), image.join("blobs/sha256").join(blob.file_name())).unwrap();
    }
    let layer_of = |layout: &Path| {
        let read =
            |path: &str| -> Value { serde_json::from_slice(&fs::read(layout.join(path)).unwrap()).unwrap() };
        let path = |digest: &Value| format!("blobs/{}", digest.as_str().unwrap().replace(':', "/"));
        let manifest = read(&path(&read("index.json")["manifests"][0]["digest"]));
        path(&manifest["layers"][1]["digest"])
    };
    let (good, bad) = (layer_of(&proven), layer_of(&evil));
    let stop = AtomicBool::new(false);
    let (mut ran, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        scope.spawn(|| {
            let mut random = Random::new(seed());
            while !stop.load(Ordering::Relaxed) {
                let source = if random.one_in(2) { &proven } else { &evil };
                replace(&source.join("index.json"), &image.join("index.json"));
                // In place, so that a file that is mapped changes as well. Both have the same size.
                let bytes =
                    fs::read(if random.one_in(8) { evil.join(&bad) } else { proven.join(&good) }).unwrap();
                let mut file = fs::OpenOptions::new().write(true).open(image.join(&good)).unwrap();
                file.write_all(&bytes).unwrap();
            }
        });
        for _ in 0..cases(10) {
            // A layer that was unpacked before is not read again.
            let _ = fs::remove_dir_all(machine.data().join("images"));
            let output =
                machine.call(&["run", "--rm", "--network", "none", "--require-proof", "public", "oci:image"]);
            match (code(&output), output.stdout.as_slice()) {
                (0, b"proven") => ran += 1,
                (2 | 3, b"") => refused += 1,
                _ => panic!("an unproven image ran: {}", shown(&output)),
            }
        }
    });
    eprintln!("{ran} ran, {refused} were refused");
}

#[test]
fn every_verb_finds_the_image_that_a_layout_stands_for() {
    let Some(machine) = machine() else { return };
    let Some(_) = keys(&machine) else { return };
    let base = Tar::default().tree(&machine.root(), "").end();
    let mut random = Random::new(seed());
    let (mut found, mut refused) = (0, 0);
    for case in 0..cases(5) {
        let layout = format!("image-{case}");
        // Most random layouts are refused; the others take longer to check.
        let made = loop {
            let made = AmbiguousLayout::new(&mut random, std::slice::from_ref(&base));
            if made.meant.is_some() || random.one_in(10) {
                break made;
            }
        };
        made.write_layout(&machine.path().join(&layout));
        let source = match &made.name {
            Some(name) => format!("oci:{layout}:{name}"),
            None => format!("oci:{layout}"),
        };
        let call = |arguments: &[&str]| machine.call(&[arguments, &["--format", "json"]].concat());
        let verified = call(&["verify", &source, "--key", "public"]);
        let Some(meant) = &made.meant else {
            refused += 1;
            for arguments in [
                &["verify", &source, "--key", "public"][..],
                &["sign", &source, "--key", "key"],
                &["copy", &source, "oci:copy"],
                &["check", &source, "--gpu", "T4"],
                &["slim", &source, "--for", "T4", "-o", "oci:slim"],
                &["run", "--rm", "--network", "none", &source],
            ] {
                machine.bad(2, arguments);
            }
            continue;
        };
        found += 1;
        assert_eq!(json(&verified)["digest"], meant.digest, "verify, case {case}");
        if let Some((_, marker)) = &meant.manifest {
            let name = format!("case-{case}");
            let printed = machine.good(&["run", "--name", &name, "--network", "none", &source]);
            assert_eq!(printed.trim(), marker, "run, case {case}");
            assert_eq!(machine.inspect(&name)["config"]["digest"], meant.digest, "inspect, case {case}");
            machine.good(&["rm", &name]);
            let checked = call(&["check", &source, "--gpu", "T4"]);
            assert_eq!(json(&checked)["digest"], meant.digest, "check, case {case}");
        }
        let copied = call(&["copy", &source, &format!("oci:copy-{case}")]);
        if made.is_whole {
            assert_eq!(json(&copied)["digest"], meant.digest, "copy, case {case}");
            let slimmed = call(&["slim", &source, "--for", "T4", "-o", &format!("oci:slim-{case}")]);
            assert_eq!(json(&slimmed)["image"]["digest_before"], meant.digest, "slim, case {case}");
        } else {
            assert_ne!(code(&copied), 0, "copy, case {case}");
        }
        // Signing changes the layout, so it comes last.
        let signed = call(&["sign", &source, "--key", "key"]);
        if signed.status.success() {
            assert_eq!(json(&signed)["digest"], meant.digest, "sign, case {case}");
            let verified = call(&["verify", &source, "--key", "public"]);
            assert_eq!(json(&verified)["digest"], meant.digest, "verify again, case {case}");
            assert_eq!(json(&verified)["statements"].as_array().unwrap().len(), 1, "case {case}");
        } else {
            assert!(shown(&signed).contains("index.json does not list it"), "{}", shown(&signed));
        }
    }
    eprintln!("{found} found, {refused} refused");
    assert!(found > 0);
}

#[test]
fn a_name_is_never_a_file_that_somebody_put_there() {
    let Some(machine) = machine() else { return };
    let Some(_) = keys(&machine) else { return };
    Image::of(&machine).command(&["echo", "from a file"]).write("app");
    let digest = format!("sha256:{}", "0".repeat(64));
    // A registry without images.
    let server = Server::start(|_| Reply::new(404, r#"{"errors":[{"code":"NAME_UNKNOWN"}]}"#));
    let registry = server.host();
    let names = [format!("{registry}/app"), format!("{registry}/app@{digest}"), format!("{registry}/tar:1")];
    fs::create_dir(machine.path().join(&registry)).unwrap();
    for name in &names {
        let to = machine.path().join(name);
        let status = if name.contains("tar") {
            Command::new("tar")
                .arg("-cf")
                .args([&to, Path::new(".")])
                .current_dir(machine.path().join("app"))
                .status()
        } else {
            Command::new("cp").arg("-r").args([&machine.path().join("app"), &to]).status()
        };
        assert!(status.unwrap().success());
    }
    let group = "properties:\n  osType: Linux\n  containers:\n  - name: a\n    properties:\n      image: NAME\n      \
                 resources: {requests: {cpu: 1, memoryInGB: 0.1}}\nname: g\n";
    for name in &names {
        machine.write("group.yaml", group.replace("NAME", name));
        for arguments in [
            &["run", "--rm", "--network", "none", name][..],
            &["run", "--rm", "--network", "none", "--pull", "always", name],
            &["pull", name],
            &["copy", name, "oci:copy"],
            &["push", name, &format!("{registry}/other:1")],
            &["sign", name, "--key", "key"],
            &["verify", name, "--key", "public"],
            &["up", "-f", "group.yaml"],
        ] {
            let text = machine.bad(2, arguments);
            assert!(text.contains("not found"), "{arguments:?}: {text}");
            assert!(
                text.contains(&format!("hint: `./{name}` names the image at that path")),
                "{arguments:?}: {text}"
            );
        }
        let output = machine.call(&["run", "--rm", "--network", "none", "--require-proof", "public", name]);
        assert_eq!(code(&output), 2, "{}", shown(&output));
        assert_eq!(
            machine.good(&["run", "--rm", "--network", "none", &format!("./{name}")]),
            "from a file\n",
            "a path is a path"
        );
    }
    // Verbs that are about files take them, and report it; but not for a name with a digest.
    let text = shown(&machine.call(&["check", &names[0], "--gpu", "T4"]));
    assert!(text.contains(&format!("note: {} is a directory here, which is taken", names[0])), "{text}");
    for verb in
        [&["check", "--gpu", "T4"][..], &["inspect"], &["lint"], &["slim", "--for", "T4", "-o", "out"]]
    {
        let text = machine.bad(2, &[verb, &[names[1].as_str()]].concat());
        assert!(text.contains("its name is that of an image with a digest"), "{verb:?}: {text}");
    }
}

/// Every file below a directory.
fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let is_directory = entry.file_type().unwrap().is_dir();
        if is_directory { files_below(&entry.path(), found) } else { found.push(entry.path()) }
    }
}

#[test]
fn only_the_crate_of_images_reads_what_a_layout_lists() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    files_below(&crates, &mut files);
    let is_reader = |file: &&PathBuf| {
        let name = file.display().to_string();
        let is_product = name.contains("/src/")
            && file.extension().is_some_and(|extension| extension == "rs")
            && !name.contains("testkit")
            && !name.ends_with("tests.rs");
        is_product && !name.contains("image/image/src/") && {
            let text = fs::read_to_string(file).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            ["index.json", "manifest.json", "oci-layout"]
                .iter()
                .any(|name| text.contains(&format!("\"{name}\"")))
        }
    };
    assert!(files.len() > 1000);
    assert_eq!(files.iter().filter(is_reader).collect::<Vec<_>>(), Vec::<&PathBuf>::new());
}
