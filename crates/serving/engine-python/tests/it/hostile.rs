//! Model files of authors who are not trusted: no code of theirs runs.
//!
//! The frameworks are not installed where these tests run. Stand-ins do the worst that the real ones have done or may do
//! with a file; `scripts/python-models` tries the same files on the real ones. Each attack is shown to work on a trusted
//! file, so that a file which is refused for another reason proves nothing.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cudock_engine::{EngineError, EngineSettings};
use cudock_engine_python::PythonSettings;

use crate::support::{LONG, Models, Printed, reason, start, start_by};

/// Modules that take the place of frameworks. What is in a file is run wherever the real one might.
const STAND_INS: [(&str, &str); 7] = [
    ("joblib.py", "from pickle import load\n"),
    (
        "torch/__init__.py",
        "import pickle, types, zipfile
__version__ = '2.15.0+cpu'
nn = types.SimpleNamespace(Module=type('Module', (), {}))
device, set_num_threads = lambda name: types.SimpleNamespace(type=name), lambda number: None
def unpickle(path, **_):
    members = [open(path, 'rb').read()]
    if zipfile.is_zipfile(path):
        archive = zipfile.ZipFile(path)
        members = [archive.read(name) for name in archive.namelist()]
    for member in members:
        pickle.loads(member)
    return {}
def load(path, map_location, weights_only):
    if weights_only and tuple(map(int, __version__.split('.')[:2])) >= (2, 6):
        raise pickle.UnpicklingError('Weights only load failed. Re-running `torch.load` with `weights_only` set to `False`')
    return unpickle(path)
jit = types.SimpleNamespace(load=unpickle)
export = types.SimpleNamespace(load=unpickle)
",
    ),
    ("safetensors/__init__.py", ""),
    ("safetensors/torch.py", "import json\ndef load_file(path): json.load(open(path, 'rb'))\n"),
    ("xgboost.py", "import json\ndef Booster(model_file): json.load(open(model_file, 'rb'))\n"),
    (
        "transformers.py",
        "import pathlib, pickle, types
__version__ = '5.23.0'
logging = types.SimpleNamespace(set_verbosity_error=lambda: None, disable_progress_bar=lambda: None)
utils = types.SimpleNamespace(logging=logging)
class PreTrainedModel:
    @classmethod
    def from_pretrained(cls, path, trust_remote_code=None, use_safetensors=None, local_files_only=None, attn_implementation=None, **_):
        path = pathlib.Path(path)
        if trust_remote_code is not False or local_files_only is not True or attn_implementation is None:
            for file in path.glob('*.py'):
                exec(file.read_text())
        if use_safetensors is not True:
            for file in path.glob('*.bin'):
                pickle.loads(file.read_bytes())
        raise RuntimeError('loaded')
class BertForSequenceClassification(PreTrainedModel):
    pass
",
    ),
    (
        "tensorflow.py",
        "import pathlib, pickle, types
threading = types.SimpleNamespace(set_intra_op_parallelism_threads=lambda number: None)
config = types.SimpleNamespace(list_physical_devices=lambda kind: [], threading=threading)
saved_model = types.SimpleNamespace(load=lambda path: pickle.loads((pathlib.Path(path) / 'saved_model.pb').read_bytes()))
",
    ),
];

/// Files of an author, an interpreter with the stand-ins, and a file that exists once the author's code has run.
struct Attack {
    models: Models,
    python: PathBuf,
    marker: PathBuf,
}

impl Attack {
    fn new() -> Option<Self> {
        let models = Models::new()?;
        for (name, source) in STAND_INS {
            write(&models.path("site").join(name), source.as_bytes());
        }
        let python = models.path("python");
        let (site, real) = (models.path("site"), models.python().display());
        let script = format!("#!/bin/sh\nPYTHONPATH={} exec {real} \"$@\"\n", site.display());
        write(&python, script.as_bytes());
        std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
        let marker = models.path("marker");
        Some(Self { models, python, marker })
    }

    /// A pickle that runs a program when it is loaded.
    fn pickle(&self) -> Vec<u8> {
        format!("cos\nsystem\n(S'touch {}'\ntR.", self.marker.display()).into_bytes()
    }

    /// Python code that does the same.
    fn code(&self) -> String {
        format!("open('{}', 'w').close()\n", self.marker.display())
    }

    /// Writes a zip file with the pickle as each of its members.
    fn archive(&self, name: &str, members: &[&str]) {
        write(&self.models.path("pickle"), &self.pickle());
        let script = "import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as archive:
    for member in sys.argv[3:]: archive.write(sys.argv[2], member)";
        let mut python = Command::new(self.models.python());
        python.args(["-c", script]).args([self.models.path(name), self.models.path("pickle")]).args(members);
        assert!(python.status().unwrap().success());
    }

    fn settings(&self, name: &str, trust: bool) -> EngineSettings<PythonSettings> {
        self.models.settings(name, |settings| {
            settings.kind.python = Some(self.python.clone());
            settings.kind.trust = trust;
        })
    }

    /// Loads a model, and tells whether code of its author ran.
    fn load(&self, name: &str, trust: bool) -> (String, bool) {
        let reason = reason(start(&self.settings(name, trust)));
        let has_run = self.marker.exists();
        let _ = std::fs::remove_file(&self.marker);
        (reason, has_run)
    }

    /// A file that is a program: it is refused with this message, and runs if it is trusted.
    #[track_caller]
    fn needs_trust(&self, name: &str, message: &str) {
        let (reason, has_run) = self.load(name, false);
        assert!(!has_run, "{name}: {reason}");
        assert!(reason.contains(message) && reason.contains("pass --trust"), "{name}: {reason}");
        assert!(self.load(name, true).1, "{name}: the attack does not work");
    }
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn pickles_need_trust() {
    let Some(attack) = Attack::new() else { return };
    for name in ["model.pkl", "model.pickle", "model.joblib", "MODEL.PKL"] {
        write(&attack.models.path(name), &attack.pickle());
        attack.needs_trust(name, "is a pickle");
    }
}

#[test]
fn pytorch_files_with_more_than_weights_need_trust() {
    let Some(attack) = Attack::new() else { return };
    for name in ["model.pt", "model.pth", "model.bin", "model.torchscript"] {
        write(&attack.models.path(name), &attack.pickle());
        attack.needs_trust(name, "a pickle of more than weights");
        attack.archive(name, &["archive/data.pkl", "archive/version"]);
        attack.needs_trust(name, "a pickle of more than weights");
    }
}

#[test]
fn a_pytorch_that_cannot_load_weights_alone_needs_trust() {
    let Some(attack) = Attack::new() else { return };
    let init = attack.models.path("site/torch/__init__.py");
    let source = std::fs::read_to_string(&init).unwrap();
    write(&attack.models.path("model.pt"), &attack.pickle());
    for version in ["2.5.1", "1.13.0+cu117"] {
        write(&init, source.replace("2.15.0+cpu", version).as_bytes());
        attack.needs_trust("model.pt", &format!("PyTorch {version} cannot load the weights alone"));
    }
}

#[test]
fn torchscript_needs_trust_whatever_it_is_called() {
    let Some(attack) = Attack::new() else { return };
    for name in ["model.pt", "model.pth", "model.torchscript", "model.bin", "model.pt2", "model.safetensors"]
    {
        attack.archive(name, &["net/data.pkl", "net/constants.pkl", "net/code/__torch__.py"]);
        attack.needs_trust(name, "a TorchScript program");
    }
}

#[test]
fn exported_programs_need_trust() {
    let Some(attack) = Attack::new() else { return };
    for members in [
        &["model/data/weights/weight_0"][..],
        &["serialized_state_dict.pt"],
        &["data/sample_inputs/model.pt"],
    ] {
        attack.archive("model.pt2", members);
        attack.needs_trust("model.pt2", "an exported program");
    }
    write(&attack.models.path("model.pt2"), &attack.pickle());
    attack.needs_trust("model.pt2", "an exported program");
}

#[test]
fn saved_models_need_trust() {
    let Some(attack) = Attack::new() else { return };
    write(&attack.models.path("saved/saved_model.pb"), &attack.pickle());
    attack.needs_trust("saved", "a SavedModel");
}

#[test]
fn safetensors_and_xgboost_files_are_data() {
    let Some(attack) = Attack::new() else { return };
    for name in ["model.safetensors", "model.ubj", "model.json"] {
        write(&attack.models.path(name), &attack.pickle());
        let (reason, has_run) = attack.load(name, false);
        assert!(!has_run && reason.contains("JSONDecodeError"), "{name}: {reason}");
    }
}

#[test]
fn modules_beside_data_are_not_imported() {
    let Some(attack) = Attack::new() else { return };
    let modules =
        ["torch.py", "safetensors.py", "xgboost.py", "joblib.py", "tensorflow.py", "pickle.py", "zipfile.py"];
    for module in modules {
        write(&attack.models.path(module), attack.code().as_bytes());
    }
    for name in ["model.pt", "model.safetensors", "model.ubj", "model.json", "model.pkl", "model.pt2"] {
        write(&attack.models.path(name), b"{}");
        let (reason, has_run) = attack.load(name, false);
        assert!(!has_run, "{name}: {reason}");
    }
}

#[test]
fn modules_in_the_current_directory_are_not_imported() {
    let Some(attack) = Attack::new() else { return };
    let modules = [
        "json",
        "types",
        "socket",
        "struct",
        "threading",
        "queue",
        "numpy",
        "pathlib",
        "zipfile",
        "cudock_lane",
    ];
    for module in modules {
        write(&attack.models.path("current").join(format!("{module}.py")), attack.code().as_bytes());
    }
    let source = "import json, numpy\nclass Model:\n    def predict(self, rows: list): return rows\n";
    write(&attack.models.path("model.py"), source.as_bytes());
    let current = attack.models.path("current");
    let started = start_by(&attack.settings("model.py", false), LONG, &Printed::default(), |owner| {
        owner.current_dir(&current);
    });
    let is_running = !matches!(started, Err(EngineError::Load { .. }));
    assert!(is_running && !attack.marker.exists(), "{:?}", started.err());
}

#[test]
fn code_beside_a_pretrained_model_never_runs() {
    let Some(attack) = Attack::new() else { return };
    let at = |name: &str| attack.models.path("hub").join(name);
    write(&at("model.safetensors"), b"");
    for name in ["modeling_bert.py", "transformers.py", "torch.py", "json.py"] {
        write(&at(name), attack.code().as_bytes());
    }
    let auto_map = r#""auto_map": {"AutoModel": "modeling_bert.Model"}"#;
    let config =
        r#"{"architectures": ["BertForSequenceClassification"], "_attn_implementation": "hub/kernels""#;
    write(&at("config.json"), format!("{config}, {auto_map}}}").as_bytes());
    let (reason, has_run) = attack.load("hub", false);
    assert!(!has_run && reason.contains("`auto_map`") && reason.contains("--trust"), "{reason}");
    // Trusted or not: the weights go into the class of the library.
    let (reason, has_run) = attack.load("hub", true);
    assert!(!has_run && reason.contains("loaded"), "{reason}");
    write(&at("config.json"), format!("{config}}}").as_bytes());
    let (reason, has_run) = attack.load("hub", false);
    assert!(!has_run && reason.contains("loaded"), "{reason}");
}

#[test]
fn pickled_weights_of_a_pretrained_model_need_trust() {
    let Some(attack) = Attack::new() else { return };
    let at = |name: &str| attack.models.path("hub").join(name);
    write(&at("config.json"), br#"{"architectures": ["BertForSequenceClassification"]}"#);
    write(&at("pytorch_model.bin"), &attack.pickle());
    attack.needs_trust("hub", "weights in a pickle");
    // Beside safetensors they are not read.
    write(&at("model.safetensors"), b"");
    let (reason, has_run) = attack.load("hub", false);
    assert!(!has_run && reason.contains("loaded"), "{reason}");
}

#[test]
fn files_of_a_pretrained_model_are_checked_before_they_are_used() {
    let Some(attack) = Attack::new() else { return };
    let at = |name: &str| attack.models.path("hub").join(name);
    write(&at("model.safetensors"), b"");
    write(&attack.models.path("outside/config.json"), br#"{"pooling_mode_mean_tokens": true}"#);
    let bert = r#"{"architectures": ["BertForSequenceClassification"]}"#;
    let pooling = |path: &str| {
        format!(r#"[{{"type": "m.Transformer", "path": ""}}, {{"type": "m.Pooling", "path": "{path}"}}]"#)
    };
    for (config, modules, problem) in [
        ("{", None, "cannot read config.json"),
        ("[]", None, "config.json is not an object"),
        ("{}", None, "does not name the model's architecture"),
        (r#"{"architectures": ["__import__('os')"]}"#, None, "does not name the model's architecture"),
        (r#"{"architectures": ["BertForMaskedLM"]}"#, None, "is a BertForMaskedLM; cudock serves"),
        (r#"{"architectures": ["osForImageClassification"]}"#, None, "has no model osForImageClassification"),
        (bert, Some("1".to_owned()), "cannot read modules.json"),
        (bert, Some(pooling("../outside")), "the path of Pooling is not a directory in the model's own"),
        (bert, Some(pooling("..")), "the path of Pooling is not a directory in the model's own"),
        (bert, Some(pooling("/etc")), "the path of Pooling is not a directory in the model's own"),
        (bert, Some(r#"[{"type": "hub.Code"}]"#.to_owned()), "modules.json has the steps Code"),
    ] {
        write(&at("config.json"), config.as_bytes());
        let _ = std::fs::remove_file(at("modules.json"));
        if let Some(modules) = &modules {
            write(&at("modules.json"), modules.as_bytes());
        }
        let (reason, has_run) = attack.load("hub", false);
        assert!(!has_run && reason.contains(problem), "{config} {modules:?}: {reason}");
    }
}
