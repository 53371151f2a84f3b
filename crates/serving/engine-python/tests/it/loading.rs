//! What can be loaded, and what is reported about the rest.

use cudock_engine::EngineSettings;
use cudock_engine_python::PythonSettings;
use cudock_tensor::DType;

use crate::support::{Models, reason, spec, start};

#[test]
fn a_missing_module_is_named_with_the_line_that_installs_it() {
    let Some(models) = Models::new() else { return };
    let pip = format!("install it: {} -m pip install", models.python().display());
    for (import, package) in [
        ("import no_such_module.part", "no_such_module"),
        ("from cv2 import imread", "opencv-python-headless"),
    ] {
        let error = models.load_error(&format!("{import}\n"));
        assert!(
            error.starts_with("ModuleNotFoundError: ") && error.ends_with(&format!("{pip} {package}")),
            "{error}"
        );
    }
}

#[test]
fn a_class_that_cannot_be_served_is_explained() {
    let cases = [
        ("", "model.py must have one class with a method `predict`, found none"),
        ("class A:\n    def predict(self, x): pass\nclass B(A): pass\n", "found A, B; name one with `class`"),
        (
            "class A:\n    def predict(self, image): pass\n",
            "\n[[serve.inputs]]\nname = \"image\"\ndtype = \"float32\"",
        ),
        (
            "class A:\n    def predict(self, x: Annotated[np.ndarray, 'float31[-1]']): pass\n",
            "cannot read the annotation 'float31[-1]' of `x`",
        ),
        (
            "class A:\n    def predict(self, x: floats(-1, 2)):\n        raise ValueError('zeros')\n",
            "the model fails on zeros of [1, 2] (ValueError: zeros); declare them in cudock.toml as [[serve.outputs]]",
        ),
        (
            "class A:\n    def load(self): raise KeyError('weights')\n    predict = load\n",
            "KeyError: 'weights'",
        ),
        ("import sys\nsys.exit('no license')\n", "SystemExit: no license"),
        ("syntax error\n", "SyntaxError: "),
    ];
    let Some(models) = Models::new() else { return };
    for (source, expected) in cases {
        let error = models.load_error(source);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_class_is_chosen_by_name_and_tensors_are_declared() {
    let Some(models) = Models::new() else { return };
    let source =
        "class A:\n    def predict(self, x): return x\nclass B:\n    def predict(self, x): return x + 1\n";
    std::fs::write(models.path("other.py"), "class C:\n    def predict(self, x): return x + 2\n").unwrap();
    let with_class = |class: &str| {
        models.try_start(source, |settings| {
            settings.kind.class = Some(class.to_owned());
            settings.kind.inputs = vec![spec("x", DType::F32, &[-1, 2])];
        })
    };
    for (class, result) in [("A", 1.0), ("model.py:B", 2.0), ("other.py:C", 3.0), ("other:C", 3.0)] {
        let mut worker = with_class(class).unwrap_or_else(|error| panic!("{class}: {error}"));
        assert_eq!(worker.run_floats(&[1.0, 1.0]).unwrap(), [result, result], "{class}");
    }
    for (class, expected) in [
        ("model.py:D", "model.py has no class `D`"),
        ("missing.py:D", "missing.py not found, which `class` names"),
    ] {
        let error = reason(with_class(class));
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_file_that_runs_code_when_loaded_must_be_trusted() {
    let Some(models) = Models::new() else { return };
    // `Linear` must be importable by the worker, as scikit-learn is.
    std::fs::write(
        models.path("linear.py"),
        "class Linear:\n    n_features_in_ = 2\n    def predict(self, x): return x.sum(axis=1)\n",
    )
    .unwrap();
    let pickle = b"clinear\nLinear\n)\x81.";
    std::fs::write(models.path("model.pkl"), pickle).unwrap();
    let trusting = |trust| start(&models.settings("model.pkl", |settings| settings.kind.trust = trust));
    assert!(reason(trusting(false)).contains("pass --trust"));
    let mut worker = trusting(true).unwrap();
    let input = (vec![1, 2], [1.5_f64, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect());
    assert_eq!(worker.run(&[input]).unwrap(), [(vec![1], 3.5_f64.to_le_bytes().to_vec())]);
}

#[test]
fn an_interpreter_that_does_not_start_is_reported() {
    let python = Some("/nonexistent/python".into());
    let kind = PythonSettings { python, ..PythonSettings::default() };
    let reason = reason(start(&EngineSettings::new("model.py", kind)));
    assert!(reason.starts_with("cannot start the engine process"), "{reason}");
}
