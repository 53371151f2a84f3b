use std::collections::BTreeMap;
use std::sync::Arc;

use cudock_base::Arch;
use cudock_build::{
    BuildError, FileOrigin, FileSource, ImageFile, ImagePlan, LayerJob, PlanInput, RuleSet, group,
};
use cudock_facts::Facts;
use cudock_http::BlobStore;
use cudock_image::FileKind;
use cudock_image::write::Compression;
use cudock_lock::LayerGroup;
use cudock_testkit::random::{Random, cases, seed};

fn large(path: &str, size: u64, origin: &Arc<FileOrigin>) -> ImageFile {
    let source = FileSource::Disk { path: "/dev/null".into(), size, identity: path.to_owned() };
    ImageFile { path: path.to_owned(), mode: 0o644, kind: FileKind::File(source), origin: origin.clone() }
}

fn plan(files: Vec<ImageFile>) -> ImagePlan {
    try_plan(files).unwrap()
}

fn try_plan(files: Vec<ImageFile>) -> Result<ImagePlan, BuildError> {
    let (facts, rules) = (Facts::embedded(), RuleSet::new(&BTreeMap::new()).unwrap());
    let input = PlanInput {
        facts: &facts,
        arch: Arch::X86_64,
        python: None,
        packages: &[],
        own: files,
        rules: &rules,
        operators: None,
        user: (65532, 65532),
    };
    ImagePlan::new(&input)
}

#[test]
fn nothing_is_below_a_file_whatever_the_parts_of_an_image_are_called() {
    let mut random = Random::new(seed());
    let (mut planned, mut refused) = (0, 0);
    for _ in 0..cases(500) {
        let mut files: BTreeMap<String, ImageFile> = BTreeMap::new();
        for number in 0..=random.below(8) {
            let parts: Vec<&str> =
                (0..=random.below(3)).map(|_| *random.pick(&["a", "a.py", "b", "a-b"])).collect();
            let path = format!("app/{}", parts.join("/"));
            let origin = FileOrigin::new(LayerGroup::Program, format!("package {}", number % 3), "");
            let file = if random.one_in(2) {
                ImageFile::directory(path.clone(), 0o755, &origin)
            } else {
                ImageFile::generated(path.clone(), "x", &origin)
            };
            files.insert(path, file);
        }
        let is_file = |path: &str| files.get(path).is_some_and(|file| !file.kind.is_directory());
        let conflict = files.keys().any(|path| {
            let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
            parents.into_iter().any(is_file)
        });
        match try_plan(files.values().cloned().collect()) {
            Ok(_) => {
                assert!(!conflict, "{:?}", files.keys());
                planned += 1;
            }
            Err(error) => {
                assert!(
                    conflict && error.to_string().contains("refused package"),
                    "{error}: {:?}",
                    files.keys()
                );
                refused += 1;
            }
        }
    }
    assert!(planned > 0 && refused > 0, "{planned} planned, {refused} refused");
}

#[test]
fn layers_are_ordered_by_rate_of_change_and_large_groups_are_cut() {
    let cuda = FileOrigin::new(LayerGroup::Cuda, "cublas", "");
    let program = FileOrigin::new(LayerGroup::Program, "app", "");
    let mut files: Vec<ImageFile> =
        (0..6).map(|index| large(&format!("usr/local/cuda/lib64/{index}"), 200 << 20, &cuda)).collect();
    files.push(ImageFile::generated("app/main.py", "x", &program));
    let plan = plan(files);
    let layers = group(&plan);
    let groups: Vec<LayerGroup> = layers.iter().map(|layer| layer.group).collect();
    let cuda = [LayerGroup::Cuda; 4];
    assert_eq!(groups, [&[LayerGroup::System], &cuda[..], &[LayerGroup::Program]].concat());
    let sizes: Vec<u64> =
        layers.iter().skip(1).take(4).map(|layer| layer.files.iter().map(|file| file.size()).sum()).collect();
    assert!(sizes.iter().all(|size| *size <= 400 << 20), "{sizes:?}");
}

#[test]
fn an_image_has_users_links_and_what_the_loader_reads() {
    let system = FileOrigin::new(LayerGroup::System, "libc6 2", "");
    let plan = plan(vec![ImageFile::generated("usr/lib/x86_64-linux-gnu/libc.so.6", "", &system)]);
    assert_eq!(plan.files["lib"].kind, FileKind::Symlink("usr/lib".to_owned()));
    assert!(!plan.files.contains_key("bin"));
    assert_eq!(plan.files["tmp"].mode, 0o1777);
    for path in ["etc/passwd", "etc/group", "etc/ld.so.conf", "etc/ld.so.cache", "etc/nsswitch.conf"] {
        assert!(plan.files.contains_key(path), "{path}");
    }
}

#[test]
fn the_same_files_give_the_same_layers_in_any_cache() {
    let program = FileOrigin::new(LayerGroup::Program, "app", "");
    let write = || {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("model");
        std::fs::write(&source, "weights").unwrap();
        let kind = FileKind::File(FileSource::Disk { path: source, size: 7, identity: "weights".to_owned() });
        let model = FileOrigin::new(LayerGroup::Model, "model", "");
        let file = ImageFile { path: "app/model".to_owned(), mode: 0o644, kind, origin: model };
        let plan = plan(vec![ImageFile::generated("app/main.py", "x = 1\n", &program), file]);
        let store = BlobStore::open(directory.path().join("cache")).unwrap();
        let job = LayerJob { store: &store, compression: Compression::default(), time: 0, targets: &[] };
        let layers = job.write(&plan, &group(&plan)).unwrap();
        assert!(layers.iter().all(|layer| !layer.cached));
        let again = job.write(&plan, &group(&plan)).unwrap();
        assert!(again.iter().all(|layer| layer.cached));
        let digests = |layers: Vec<cudock_build::WrittenLayer>| -> Vec<String> {
            layers.iter().map(|layer| layer.blob.digest.to_string()).collect()
        };
        let (first, second) = (digests(layers), digests(again));
        assert_eq!(first, second);
        first
    };
    let (first, second) = (write(), write());
    assert_eq!(first, second);
    assert_eq!(first.len(), 3);
}
