//! Classes with `predict`: signatures and results.

use cudock_engine::{Engine, EngineError, InvalidRow, Provider, RowCheck, check_rows};
use cudock_tensor::{DType, TensorSpec};

use crate::support::{LONG, Models, Worker, as_floats, floats, spec, strings};

const DOUBLE: &str = "class Double:
    def predict(self, x: floats(-1, 2)) -> floats(-1, 2):
        return x * 2
";

#[test]
fn a_class_is_described_by_its_annotations() {
    let Some(models) = Models::new() else { return };
    let mut worker = models.start(DOUBLE);
    let signature = worker.engine.signature();
    assert_eq!(signature.inputs, [spec("x", DType::F32, &[-1, 2])]);
    assert_eq!(signature.outputs, [spec("output", DType::F32, &[-1, 2])]);
    assert!(signature.batched);
    let device = worker.engine.device();
    assert_eq!((device.provider, device.name.as_str()), (Provider::Cpu, "cpu"));
    assert!(device.engine.starts_with("Python 3."), "{device:?}");
    for rows in [1, 3, 1, 100_000, 2] {
        let values: Vec<f32> =
            (0..2 * rows).map(|value| f32::from(u16::try_from(value % 999).unwrap())).collect();
        let doubled: Vec<f32> = values.iter().map(|value| value * 2.0).collect();
        assert_eq!(worker.run_floats(&values).unwrap(), doubled);
    }
}

#[test]
fn outputs_without_annotations_are_found_by_running_the_model() {
    let cases: [(&str, Vec<TensorSpec>); 5] = [
        ("return x.sum(axis=1)", vec![spec("output", DType::F32, &[-1])]),
        (
            "return x.astype('int64'), x > 0",
            vec![spec("output_0", DType::I64, &[-1, -1, 3]), spec("output_1", DType::Bool, &[-1, -1, 3])],
        ),
        (
            "return {'mean': x.mean(axis=(1, 2), keepdims=True), 'top': np.zeros((len(x), 5))}",
            vec![spec("mean", DType::F32, &[-1, 1, 1]), spec("top", DType::F64, &[-1, 5])],
        ),
        ("return [str(one.shape) for one in x]", vec![spec("output", DType::String, &[-1])]),
        ("return x.sum()", vec![spec("output", DType::F32, &[])]),
    ];
    let Some(models) = Models::new() else { return };
    for (body, outputs) in cases {
        let axes = if body.contains("axis=1)") { "-1, 3" } else { "-1, -1, 3" };
        let source = format!("class Model:\n    def predict(self, x: floats({axes})):\n        {body}\n");
        let worker = models.start(&source);
        assert_eq!(worker.engine.signature().outputs, outputs, "{body}");
        assert_eq!(worker.engine.signature().batched, !outputs[0].shape.is_empty(), "{body}");
    }
}

#[test]
fn several_inputs_and_outputs_go_by_their_names() {
    let Some(models) = Models::new() else { return };
    let source = "class Outputs(TypedDict):
    difference: floats(-1, 2)
    lengths: Annotated[np.ndarray, 'int64[-1]']
class Model:
    def predict(self, a: floats(-1, 2), b: floats(-1, 2), texts: Annotated[np.ndarray, 'string[-1]']) -> Outputs:
        return {'lengths': np.array([len(one) for one in texts]), 'difference': a - b, 'unused': 1}
";
    let mut worker = models.start(source);
    let names: Vec<_> = worker.engine.signature().inputs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "texts"]);
    let (a, b) = (floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), floats(&[2, 2], &[0.5; 4]));
    let outputs = worker.run(&[a.clone(), b.clone(), strings(&["äö", ""])]).unwrap();
    assert_eq!(as_floats(&outputs[0]), [0.5, 1.5, 2.5, 3.5]);
    assert_eq!(outputs[1].1, [[2, 0, 0, 0, 0, 0, 0, 0], [0; 8]].concat());
    // Declared in another order than that of the parameters.
    let declared = models
        .try_start(source, |settings| {
            settings.kind.inputs = vec![
                spec("b", DType::F32, &[-1, 2]),
                spec("texts", DType::String, &[-1]),
                spec("a", DType::F32, &[-1, 2]),
            ];
        })
        .unwrap()
        .run(&[b, strings(&["äö", ""]), a]);
    assert_eq!(declared.unwrap(), outputs);
}

#[test]
fn rows_of_json_are_decoded_and_results_encoded() {
    let Some(models) = Models::new() else { return };
    let source = "from dataclasses import dataclass
@dataclass
class Person:
    age: int
    name: str = 'nobody'
@dataclass
class Score:
    name: str
    risk: float
class Model:
    def predict(self, rows: list[Person]) -> list:
        return [Score(row.name, np.float32(row.age) / 2 if row.age >= 0 else float('nan')) for row in rows]
";
    let mut worker = models.start(source);
    let signature = worker.engine.signature();
    let json = TensorSpec { json: true, ..spec("json", DType::String, &[-1]) };
    assert_eq!((&signature.inputs, &signature.outputs), (&vec![json.clone()], &vec![json]));
    // Rows that pad a batch are empty.
    let rows = strings(&[r#"{"age": 3, "name": "x"}"#, r#"{"age": -1}"#, ""]);
    let expected = strings(&[r#"{"name": "x", "risk": 1.5}"#, r#"{"name": "nobody", "risk": null}"#, "null"]);
    assert_eq!(worker.run(&[rows]).unwrap(), [expected]);
    // All rows that do not fit are named, and nothing is run.
    let rows = [r#"{"age": 3, "weight": 1}"#, r#"{"age": 3}"#, "{", "[1, 2]", "", r#"{"name": "x"}"#];
    let Err(EngineError::InvalidRows(invalid)) = worker.run(&[strings(&rows)]) else { panic!("all fit") };
    let reasons = [
        (0, "got an unexpected keyword argument 'weight'"),
        (2, "Expecting property name"),
        (3, "argument after ** must be a mapping"),
        (5, "missing 1 required positional argument: 'age'"),
    ];
    assert_eq!(invalid.len(), reasons.len(), "{invalid:?}");
    for (InvalidRow { row, reason }, (expected, text)) in invalid.iter().zip(reasons) {
        assert!(*row == expected && reason.contains(text), "{row}: {reason}");
    }
    assert_eq!(
        worker.run(&[strings(&rows[1..2])]).unwrap(),
        [strings(&[r#"{"name": "nobody", "risk": 1.5}"#])]
    );
    let mut plain =
        models.start("class M:\n    def predict(self, rows: list):\n        return [len(r) for r in rows]\n");
    assert_eq!(plain.run(&[strings(&["[1, 2]", "{}"])]).unwrap(), [strings(&["2", "0"])]);
}

#[test]
fn nan_and_infinity_pass_through() {
    let Some(models) = Models::new() else { return };
    let mut worker = models.start(DOUBLE);
    let results = worker.run_floats(&[f32::NAN, f32::INFINITY]).unwrap();
    assert!(results[0].is_nan() && results[1] == f32::INFINITY);
}

#[test]
fn load_runs_once_and_before_predict_in_the_same_thread() {
    let Some(models) = Models::new() else { return };
    let source = "import threading
class Model:
    def load(self):
        self.thread, self.loads = threading.get_ident(), getattr(self, 'loads', 0) + 1
    def predict(self, x: floats(-1, 2)) -> floats(-1, 2):
        return np.full_like(x, self.loads if threading.get_ident() == self.thread else -1)
";
    assert_eq!(models.start(source).run_floats(&[5.0, 6.0]).unwrap(), [1.0, 1.0]);
}

/// Doubles into an array that the next batch reuses, and takes its time until the result is read.
const REUSED: &str = "import time
class Result:
    def __init__(self, array):
        self.array = array
    def numpy(self):
        time.sleep(0.0002)
        return self.array
class Double:
    def load(self):
        self.buffer = np.zeros((8, 2), np.float32)
    def predict(self, x: floats(-1, 2)) -> floats(-1, 2):
        return Result(np.multiply(x, 2, out=self.buffer[:len(x)]))
";

#[test]
fn lanes_do_not_mix_up() {
    let Some(models) = Models::new() else { return };
    for source in [DOUBLE, REUSED] {
        check_lanes(models.try_start(source, |settings| settings.lanes = 3).unwrap());
    }
}

/// Runs batches on three lanes at once, each with other numbers.
fn check_lanes(worker: Worker) {
    assert_eq!(worker.lanes.len(), 3);
    std::thread::scope(|scope| {
        for (number, mut lane) in worker.lanes.into_iter().enumerate() {
            scope.spawn(move || {
                for turn in 0..500_u16 {
                    let value = f32::from(turn) + 1000.0 * f32::from(u8::try_from(number).unwrap());
                    let rows = 1 + usize::from(turn % 7);
                    let input = floats(&[rows, 2], &vec![value; 2 * rows]);
                    let outputs = crate::support::run(&mut *lane, &[input], LONG).unwrap();
                    assert_eq!(outputs, [floats(&[rows, 2], &vec![2.0 * value; 2 * rows])]);
                }
            });
        }
    });
}

#[test]
fn dependent_rows_are_noticed() {
    let Some(models) = Models::new() else { return };
    for (body, is_independent) in [("x * 2", true), ("x / x.sum()", false)] {
        let source = format!(
            "class M:\n    def predict(self, x: floats(-1, 2)) -> floats(-1, 2):\n        return {body}\n"
        );
        let mut worker = models.start(&source);
        let check = check_rows(&mut *worker.lanes[0], worker.engine.signature(), LONG).unwrap();
        assert_eq!(check == RowCheck::Independent, is_independent, "{body}: {check:?}");
    }
}
